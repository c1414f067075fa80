"""``python -m tests.gpu.timing PREFIX``: how long ``envmedic verify`` takes by profile, against a bare import of torch.

Each is measured `ROUNDS` times, after one run that is not counted, and the shortest counts. Exit status 1 where a
profile does not pass.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BARE = "import torch, importlib.util\nif importlib.util.find_spec('torchvision'): import torchvision"
CONTEXT = f"{BARE}\ntorch.ones(1, device='cuda').item()"
ROUNDS = 3


def best(argv: Sequence[str | Path], rounds: int) -> tuple[float, subprocess.CompletedProcess[str]]:
    """The shortest time in seconds, and how the last run ended."""
    times = []
    for _ in range(rounds + 1):
        started = time.monotonic()
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        times.append(time.monotonic() - started)
    return min(times[1:] or times), done


def verified(prefix: Path, profile: str, rounds: int) -> dict[str, Any]:
    """One profile: time, exit status and the time of each of its outcomes."""
    argv = (sys.executable, "-m", "envmedic", "verify", "--profile", profile, "--json", "-p", prefix)
    seconds, done = best([str(word) for word in argv], rounds)
    outcomes = json.loads(done.stdout)["outcomes"]
    shown = {f"{item['check']} {item['device'] or ''}".strip(): round(item["seconds"], 2) for item in outcomes}
    return {"seconds": round(seconds, 2), "exit": done.returncode, "outcomes": shown}


def main(arguments: list[str]) -> int:
    """Measure; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--profiles", default="quick,standard", help="comma-separated (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, help="write everything to this file")
    given = parser.parse_args(arguments)
    python = given.prefix / "bin" / "python"
    bare, _ = best((python, "-c", BARE), given.rounds)
    context, _ = best((python, "-c", CONTEXT), given.rounds)
    print(f"bare import of torch and torchvision {bare:.2f} s; with a first tensor on the GPU {context:.2f} s")
    found = {}
    for profile in given.profiles.split(","):
        found[profile] = verified(given.prefix, profile, given.rounds if profile == "quick" else 0)
        seconds = found[profile]["seconds"]
        print(f"{profile:9} {seconds:7.2f} s  {seconds / bare:5.1f} bare imports  exit {found[profile]['exit']}")
        for name, part in sorted(found[profile]["outcomes"].items(), key=lambda item: -item[1])[:12]:
            print(f"          {part:7.2f} s  {name}")
    if given.json:
        given.json.write_text(json.dumps({"bare": bare, "context": context, "profiles": found}, indent=1))
    return 1 if any(item["exit"] for item in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
