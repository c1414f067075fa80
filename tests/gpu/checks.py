"""Every check of the kernels is seen to pass on an environment, and to fail when what it checks is broken for real.

``python -m tests.gpu.checks PREFIX`` needs envmedic, this checkout and an NVIDIA GPU; no network. First ``envmedic
verify --profile full`` on the environment as it is. Then, in a session each, functions of its own torch are broken in
the processes under test (`sabotage/sitecustomize.py`): wrong results, missing kernels, faults of the GPU, crashes and
hangs. Every check must report what happened. Exit status 1 where one does not.

``--device cpu`` does the same without a GPU, for the checks that run there.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import envmedic

KERNELS = Path(envmedic.__file__).parent / "kernels"
SABOTAGE = Path(__file__).parent / "sabotage"
EXPECTED = {
    "wrong": ("fail", r"^(?!\w*(Error|Exception|Failed)\b)"),
    "missing": ("fail", r"Could not run|not implemented"),
    "fault": ("fail", r"device-side assert|CUDA error"),
    "crash": ("crash", r"ended by SIGSEGV"),
    "hang": ("timeout", r"^(rank .*|counting .*)?no end within"),
}
"""Kind of fault → the status that a check must have, and what its reason must say: a wrong result is no exception."""
MARK = "@envmedic "


@dataclass(frozen=True)
class Victim:
    """One part of a check, and what of torch is broken for it."""

    check: str
    part: str
    target: str
    wrong: str = "wrong"
    """The kind by which its result is wrong."""
    on_cpu: bool = True
    arguments: str = ""
    """Of the check, such as the package that is called."""


VICTIMS = (
    Victim("device-memory", "device-memory", "torch.Tensor.copy_"),
    Victim("matmul", "matmul-fp32", "torch.matmul"),
    Victim("matmul", "matmul-bf16", "torch.matmul"),
    Victim("matmul", "matmul-tf32", "torch.matmul", on_cpu=False),
    Victim("matmul", "matmul-fp16", "torch.matmul", on_cpu=False),
    Victim("matmul", "matmul-fp8", "torch._scaled_mm", on_cpu=False),
    Victim("conv", "conv-fp32", "torch.nn.functional.conv2d"),
    Victim("conv", "conv-bf16", "torch.nn.functional.conv2d"),
    Victim("conv", "conv-fp16", "torch.nn.functional.conv2d", on_cpu=False),
    Victim("fft", "fft", "torch.fft.irfft"),
    Victim("complex-kernels", "complex-kernels", "torch.tan"),
    Victim("complex-kernels", "complex-kernels-own", "torch.cuda.jiterator._create_jit_fn", on_cpu=False),
    Victim("linalg", "linalg", "torch.linalg.cholesky"),
    Victim("sparse", "sparse", "torch.sparse.mm"),
    Victim("attention", "attention", "torch.nn.functional.scaled_dot_product_attention"),
    Victim("attention", "attention-math", "torch.nn.functional.scaled_dot_product_attention", on_cpu=False),
    Victim("attention", "attention-flash", "torch.nn.functional.scaled_dot_product_attention", on_cpu=False),
    Victim("attention", "attention-efficient", "torch.nn.functional.scaled_dot_product_attention", on_cpu=False),
    Victim("attention", "attention-cudnn", "torch.nn.functional.scaled_dot_product_attention", on_cpu=False),
    Victim("autograd", "autograd", "torch.tanh", wrong="gradient"),
    Victim("streams", "streams", "torch.add", on_cpu=False),
    Victim("streams", "streams-graph", "torch.cuda.CUDAGraph.replay", on_cpu=False),
    Victim("all-reduce", "all-reduce", "torch.distributed.all_reduce"),
    Victim("torchvision-nms", "torchvision-nms", "torchvision.ops.nms"),
    Victim("torchvision-roi-align", "torchvision-roi-align", "torchvision.ops.roi_align"),
    Victim("torchaudio-lfilter", "torchaudio-lfilter", "torchaudio.functional.lfilter"),
    Victim("torch-compile", "torch-compile", "torch.compile"),
    Victim("extension-build", "extension-build-cpp", "torch.ops.load_library"),
    Victim("extension-build", "extension-build-cuda", "torch.ops.load_library", on_cpu=False),
)


@dataclass(frozen=True)
class Row:
    """What one check made of one fault."""

    kind: str
    part: str
    device: str
    status: str
    expected: str
    good: bool
    seconds: float
    reason: str


@dataclass(frozen=True)
class Options:
    """The command line."""

    prefix: Path
    device: str
    kinds: tuple[str, ...]
    only: tuple[str, ...]
    timeout_s: float
    hang_s: float
    jobs: int = 1
    """Sessions at a time."""
    on: str = ""
    """The device whose calls are broken, such as ``cuda:1``; by default all of `device`."""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.prefix / "bin/python"

    def victims(self) -> list[Victim]:
        """Those that can be broken on the device."""
        chosen = [item for item in VICTIMS if not self.only or item.check in self.only]
        return [item for item in chosen if self.device == "cuda" or item.on_cpu]


def session(options: Options, kind: str | None, victims: list[Victim]) -> list[dict[str, Any]]:
    """The outcomes of one session of the kernels in which all of `victims` are broken in the way `kind`, None: sound."""
    words = {victim.target: victim.wrong if kind == "wrong" else kind for victim in victims if kind is not None}
    checks = ",".join(dict.fromkeys(victim.check for victim in victims))
    limit = options.hang_s if kind == "hang" else options.timeout_s
    devices = "all" if options.device == "cuda" else "cpu"
    argv = [str(options.python), "-B", str(KERNELS / "driver.py"), "--checks", checks]
    variables = {
        "ENVMEDIC_SABOTAGE": ";".join(f"{word} {target}" for target, word in words.items()),
        "ENVMEDIC_SABOTAGE_ON": options.on or options.device,
        "PYTHONPATH": str(SABOTAGE),
    }
    if any(victim.check == "autograd" for victim in victims):
        variables["ENVMEDIC_SABOTAGE_FP64"] = "1"
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [*argv, "--devices", devices, "--timeout", str(limit)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line[len(MARK) :] for line in done.stdout.splitlines() if line.startswith(MARK + "{")]
    messages = [json.loads(line) for line in lines]
    if not messages or messages[-1] != {"end": True}:
        sys.exit(f"the session ended before its end: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return [message["outcome"] for message in messages if "outcome" in message]


def rows_of(options: Options, kind: str) -> list[Row]:
    """One row for each part of a check on each device that was to be broken, by several sessions at a time."""
    with ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda victims: _rows(options, kind, victims), sessions_of(options))
        return [item for rows in found for item in rows]


def sessions_of(options: Options) -> list[list[Victim]]:
    """The victims by session: as many as run at a time. fp64 on the CPU is broken alone, since references use it."""
    chosen = options.victims()
    alone = [item for item in chosen if options.device == "cpu" and item.check == "autograd"]
    checks = list(dict.fromkeys(item.check for item in chosen if item not in alone))
    parts = [checks[number :: options.jobs] for number in range(options.jobs)]
    groups = [[item for item in chosen if item.check in part] for part in parts]
    return [group for group in (*groups, alone) if group]


def _rows(options: Options, kind: str, victims: list[Victim]) -> list[Row]:
    parts = {victim.part for victim in victims}
    outcomes = [item for item in session(options, kind, victims) if item["check"] in parts]
    return [row(kind, item) for item in outcomes if (item["device"] or "").startswith(options.device)]


def row(kind: str, outcome: dict[str, Any]) -> Row:
    """What came of one part: what is not there or means nothing on this machine is neither good nor bad."""
    status = str(outcome["status"])
    expected, says = EXPECTED[kind]
    return Row(
        kind=kind,
        part=outcome["check"],
        device=outcome["device"],
        status=status,
        expected=expected,
        good=status == "skip" or (status == expected and re.search(says, outcome["reason"]) is not None),
        seconds=round(outcome.get("seconds", 0.0), 2),
        reason=outcome["reason"],
    )


def verified(options: Options) -> dict[str, Any]:
    """``envmedic verify --profile full --json`` on the environment as it is, with how long it took."""
    argv = [sys.executable, "-m", "envmedic", "verify", "--profile", "full", "--json", "-p", str(options.prefix)]
    started = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    if not done.stdout.strip():
        sys.exit(f"envmedic verify: exit status {done.returncode}\n{done.stderr[-2000:]}")
    started = time.monotonic()
    subprocess.run([options.python, "-c", "import torch"], check=False)
    return {
        "exit": done.returncode,
        "seconds": round(seconds, 1),
        "import_torch_seconds": round(time.monotonic() - started, 1),
        "document": json.loads(done.stdout),
    }


def show(rows: list[Row]) -> None:
    """Print the table."""
    for item in rows:
        word = "ok " if item.good and item.status != "skip" else "-  " if item.good else "BAD"
        print(
            f"{word} {item.kind:8} {item.part:24} {item.device:24} {item.status:8} {item.seconds:7.2f} s  {item.reason[:110]}"
        )


def show_verified(found: dict[str, Any]) -> None:
    """Print the outcomes of `verified`, imports apart that passed."""
    document = found["document"]
    for item in document.get("outcomes", ()):
        if item["check"].startswith("import ") and item["status"] == "pass":
            continue
        error = (
            "" if item["max_relative_error"] is None else f"{item['max_relative_error']:.1e} of {item['tolerance']:.1e}"
        )
        print(
            f"{item['status']:8} {item['check']:24} {item['device'] or '-':24} {item['seconds']:7.2f} s  {error:20} {item['reason'][:90]}"
        )
    print(
        f"verify: exit {found['exit']} in {found['seconds']} s; bare import of torch {found['import_torch_seconds']} s"
    )


def parse(argv: list[str]) -> tuple[Options, argparse.Namespace]:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--kinds", default="", help="comma-separated; default: all of the device")
    parser.add_argument("--only", default="", help="comma-separated checks; default: all of them")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for each check (default: %(default)s)")
    parser.add_argument("--hang", type=float, default=12.0, help="the same where it hangs (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="sessions at a time (default: %(default)s)")
    parser.add_argument("--no-verify", action="store_true", help="leave out `envmedic verify`")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    given = parser.parse_args(argv)
    kinds = tuple(given.kinds.split(",")) if given.kinds else tuple(EXPECTED)
    kinds = tuple(kind for kind in kinds if kind != "fault" or given.device == "cuda")
    only = tuple(given.only.split(",")) if given.only else ()
    return Options(given.prefix, given.device, kinds, only, given.timeout, given.hang, given.jobs), given


def main(argv: list[str]) -> int:
    """Run all of it; returns the exit status."""
    options, given = parse(argv)
    found = None if given.no_verify else verified(options)
    if found is not None:
        show_verified(found)
    rows: list[Row] = []
    for kind in options.kinds:
        rows += rows_of(options, kind)
        show([item for item in rows if item.kind == kind])
    bad = [item for item in rows if not item.good]
    seen = sum(item.status != "skip" for item in rows)
    print(f"{seen} faults put in, {seen - len(bad)} reported as they were, {len(rows) - seen} not applicable here")
    if given.json:
        given.json.write_text(json.dumps({"verify": found, "sabotage": [asdict(item) for item in rows]}, indent=2))
    return 1 if bad or not seen or (found is not None and found["exit"] not in (0, 1)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
