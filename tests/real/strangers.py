"""``python -m tests.real.strangers CHECKOUT PREFIX``: somebody's repository, before and after repairs.

The environment at PREFIX holds what the repository's own files ask for. Each module that the code imports from outside is
imported in a process of its own, and with ``--cuda`` torch is asked for the GPU. Then `apply --log` gets the text of each
that fails, and all is counted again. With ``--undo`` every repair is taken back, and the tree compared with that before.
All other options are those of `apply`. Exit status 1 where something that worked does not any more, or an undo brought back another tree.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import ast
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envmedic.tree.walk import digest
from tests.gpu.replays.room import Done, run

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {".git", "build", "dist", ".venv", "venv", "node_modules"}
CUDA = {
    "cuda: the build fits the driver": (
        "import ctypes, torch; n = ctypes.c_int(); ctypes.CDLL('libcuda.so.1').cuDriverGetVersion(ctypes.byref(n));"
        "built = torch.version.cuda; assert built, 'torch is built without CUDA';"
        "major = int(built.split('.')[0]); assert major <= n.value // 1000, f'CUDA {built} and driver {n.value}'"
    ),
    "cuda: a GPU is available": "import torch; assert torch.cuda.is_available()",
    "cuda: a kernel runs": (
        "import torch; a = torch.arange(4096., device='cuda').reshape(64, 64);"
        "assert torch.allclose((a @ a).cpu(), a.cpu() @ a.cpu(), rtol=1e-3)"
    ),
    "cuda: torchvision's kernel runs": (
        "import torch, torchvision; b = torch.tensor([[0., 0, 9, 9], [1, 1, 9, 9], [20, 20, 30, 30]], device='cuda');"
        "assert torchvision.ops.nms(b, torch.tensor([.9, .8, .7], device='cuda'), .5).tolist() == [0, 2]"
    ),
}
"""What ResearchEnvBench asks for is the second; the others say whether that GPU can be used."""


def outside(checkout: Path) -> list[str]:
    """Modules that the code imports and that are neither the standard library's nor named like one of its own."""
    asked: set[str] = set()
    own: set[str] = set()
    for path in checkout.rglob("*.py"):
        parts = path.relative_to(checkout).parts
        if LEFT_OUT.intersection(parts):
            continue
        own.update(parts[:-1], (path.stem,))
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        asked.update(_imported(tree))
    return sorted(asked - own - sys.stdlib_module_names)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def failures(python: Path, programs: Mapping[str, str]) -> dict[str, str]:
    """What the programs that fail print, each run in a process of its own, away from the checkout."""
    found = {}
    with tempfile.TemporaryDirectory() as empty:
        for name, text in programs.items():
            done = run((str(python), "-c", text), {}, limit_s=180, cwd=Path(empty))
            if done.code != 0:
                found[name] = done.text + (f"\nended by signal {-done.code}\n" if done.code < 0 else "")
    return found


def envmedic(prefix: Path, verb: str, *options: str, limit_s: float = 1500) -> Done:
    """Run the command of this checkout."""
    argv = (sys.executable, "-m", "envmedic", verb, "-p", str(prefix), *options, "--yes")
    return run(argv, {}, limit_s=limit_s, cwd=ROOT)


def main(arguments: Sequence[str]) -> int:
    """Count, repair and count again; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--cuda", action="store_true", help="ask torch for the GPU too")
    parser.add_argument("--tries", type=int, default=12, help="texts that are handed in at most (12)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further repair after this time")
    parser.add_argument("--undo", action="store_true", help="take every repair back at the end")
    parser.add_argument("--out", type=Path, required=True, help="directory for texts and answers")
    given, options = parser.parse_known_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    prefix, python = given.prefix.absolute(), given.prefix.absolute() / "bin" / "python"
    programs = {name: f"import {name}" for name in outside(given.checkout)} | (CUDA if given.cuda else {})
    started = time.monotonic()
    before, tree = failures(python, programs), digest(prefix)
    print(f"{given.checkout.name}: {len(programs) - len(before)} of {len(programs)} pass", flush=True)
    repairs = 0
    for number, name in enumerate(list(before)[::-1][: given.tries]):
        if time.monotonic() - started > given.seconds:
            print("  no time for more repairs")
            break
        text = failures(python, {name: programs[name]}).get(name)
        if text is None:
            print(f"  {name}: passes by an earlier repair", flush=True)
            continue
        log = given.out / f"{number:02}-{name.split()[-1]}.txt"
        log.write_text(text, encoding="utf-8")
        at = time.monotonic()
        done = envmedic(prefix, "apply", "--log", str(log), "--json", *options)
        log.with_suffix(".json").write_text(done.out, encoding="utf-8")
        log.with_suffix(".err").write_text(done.err, encoding="utf-8")
        repairs += done.code in (0, 7)
        passes = not failures(python, {name: programs[name]})
        now = "passes" if passes else "fails"
        print(f"  {name}: exit {done.code}, {now}, {time.monotonic() - at:.0f} s: {_said(done)}", flush=True)
    after = failures(python, programs)
    broken = sorted(set(after) - set(before))
    print(f"{given.checkout.name}: {len(programs) - len(after)} of {len(programs)} pass after {repairs} repairs")
    print(f"  fixed: {', '.join(sorted(set(before) - set(after)))}\n  broken: {', '.join(broken) or 'none'}")
    print(f"  still failing: {', '.join(sorted(after))}", flush=True)
    for _ in range(repairs if given.undo else 0):
        envmedic(prefix, "undo")
    same = not given.undo or digest(prefix) == tree
    print(f"  undone: {'byte for byte' if same else 'another tree'}" if given.undo else "")
    return 1 if broken or not same else 0


def _said(done: Done) -> str:
    """The answer in a line."""
    try:
        document = json.loads(done.out)
    except ValueError:
        return done.text.strip()[-200:]
    plan, failure = document.get("plan") or {}, document.get("failure") or document
    return str(plan.get("title") or failure.get("summary") or "")[:160] + (
        f" ({failure['summary'][:160]})" if plan and failure.get("summary") else ""
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
