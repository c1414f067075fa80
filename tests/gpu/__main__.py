"""``python -m tests.gpu [--prefix PREFIX]``: all that is to be shown on NVIDIA GPUs, one after the other; one table, JSON.

- ``verify``: the three profiles on the environment as it is, against a bare import of torch and torchvision.
- ``checks``: each check seen to fail, in five ways.
- ``several``: each GPU by itself, where there are several.
- ``hosts``: builds for GPUs of two kinds, by the facts of another host.
- ``replays``: genuine faults, repaired.

``--parts`` takes some of them. Exit status 1 where one does not end as it should; without a GPU it says so and ends well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.gpu.replays.__main__ import default_prefix, gpus, say

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Part:
    """One of the programs beside this one."""

    name: str
    module: str
    prefix: str
    """How it takes the environment: ``--prefix``, or as its first argument where this is empty."""
    more: tuple[str, ...] = ()


PARTS = (
    Part("verify", "tests.gpu.timing", ""),
    Part("checks", "tests.gpu.checks", "", ("--no-verify",)),
    Part("several", "tests.gpu.several", ""),
    Part("hosts", "tests.gpu.hosts", ""),
    Part("replays", "tests.gpu.replays", "--prefix"),
)


@dataclass(frozen=True)
class Ended:
    """How a part ended."""

    name: str
    status: int
    seconds: float
    last: str
    """The last line that it printed: its sum."""


def main(arguments: Sequence[str]) -> int:
    """Run the parts; returns the exit status."""
    options = parse(arguments)
    if not gpus():
        say("skipped: no NVIDIA GPU is visible (nvidia-smi lists none)")
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    named = options.parts.split(",") if options.parts else [part.name for part in PARTS]
    ended = [run(part, options) for part in PARTS if part.name in named]
    say("")
    for item in ended:
        say(f"{'ok' if item.status == 0 else 'WRONG':6} {item.name:8} {item.seconds:7.0f} s  {item.last}")
    found = {part.name: document(options, part) for part in PARTS if part.name in named}
    whole = {"gpus": gpus(), "prefix": str(options.prefix), "parts": found}
    (options.folder / "gpu.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")
    return 1 if any(item.status for item in ended) or not ended else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prefix", type=Path, help="a healthy environment with torch (default: that of python3)")
    parser.add_argument("--folder", type=Path, default=ROOT / ".gpu", help="where results go (default: %(default)s)")
    parser.add_argument("--parts", default="", help=f"comma-separated: {', '.join(part.name for part in PARTS)}")
    parser.add_argument("--jobs", type=int, default=1, help="sessions and replays at a time (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.prefix = (options.prefix or default_prefix()).absolute()
    return options


def run(part: Part, options: argparse.Namespace) -> Ended:
    """Run a part, its lines passed on as they come."""
    target = (part.prefix, str(options.prefix)) if part.prefix else (str(options.prefix),)
    jobs = ("--jobs", str(options.jobs)) if part.name in ("checks", "replays") else ()
    result = options.folder / f"{part.name}.json"
    result.unlink(missing_ok=True)
    argv = (sys.executable, "-m", part.module, *target, *part.more, *jobs, "--json", str(result))
    say(f"\n== {part.name}: {' '.join(argv[1:])}")
    started, last = time.monotonic(), ""
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            say(line.rstrip("\n"))
            last = line.strip() or last
    return Ended(part.name, process.returncode, time.monotonic() - started, last)


def document(options: argparse.Namespace, part: Part) -> object:
    """What a part wrote; None where it wrote nothing."""
    result = options.folder / f"{part.name}.json"
    found: object = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else None
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
