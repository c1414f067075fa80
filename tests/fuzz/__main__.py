"""Fuzz every reader for some time, and print what was tried: ``python -m tests.fuzz [--seconds N] [TARGET…]``.

Each target runs in a process of its own, with limited memory. An input that was read wrongly, or that ended the
process, is kept in ``.fuzz/<target>/``; ``TARGET --input FILE`` reads one again. Exit status 1 where there is any.
"""

# ruff: noqa: T201  # a table for people is what it is for

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from tests.fuzz import driver
from tests.fuzz.targets import TARGETS, guarded

KEPT = Path(".fuzz")
_CURRENT = "current"
_TALLY = "tally.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", help="which; all by default")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each target (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the mutations (default: the time)")
    parser.add_argument("--child", metavar="TARGET", help=argparse.SUPPRESS)
    parser.add_argument("--input", metavar="FILE", help="read this alone, by the one target named")
    options = parser.parse_args(arguments)
    if options.child:
        return _child(options.child, options)
    chosen = [item for item in TARGETS if not options.target or item.name in options.target]
    if unknown := {*options.target} - {item.name for item in chosen}:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    if options.input:
        return _again(chosen[0].name, Path(options.input))
    print(f"{len(chosen)} targets, {options.seconds:.0f} s each, seed {options.seed}", flush=True)
    wrong = sum(_target(item.name, options) for item in chosen)
    print(f"{wrong} ways to be read wrongly" if wrong else "every input was read, or refused in words")
    return 1 if wrong else 0


def _target(name: str, options: argparse.Namespace) -> int:
    """Fuzz one target until its time is over, in as many processes as crashes make necessary; returns what is wrong."""
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + options.seconds
    seed, crashes, done = options.seed, 0, driver.Tally(name)
    while (left := ends - time.monotonic()) > 1 and crashes < 10:
        (folder / _TALLY).unlink(missing_ok=True)
        status = subprocess.run(_argv(name, left, seed), check=False).returncode
        seed += 1
        if (folder / _TALLY).exists():
            done = _sum(done, msgspec.json.decode((folder / _TALLY).read_bytes(), type=driver.Tally))
            break
        if status != 0:
            crashes += 1
            _keep(folder, "crash", (folder / _CURRENT).read_bytes(), f"the process ended with {status}")
    for failure in done.failures.values():
        _keep(folder, "wrong", failure.input, failure.reason)
    print(_line(done, crashes), flush=True)
    return crashes + len(done.failures)


def _argv(name: str, seconds: float, seed: int) -> list[str]:
    return [sys.executable, "-m", "tests.fuzz", "--child", name, "--seconds", str(seconds), "--seed", str(seed)]


def _sum(one: driver.Tally, two: driver.Tally) -> driver.Tally:
    return driver.Tally(one.target, one.seconds + two.seconds, one.inputs + two.inputs, max(one.reached, two.reached),
                        max(one.slowest, two.slowest), {**one.failures, **two.failures})  # fmt: skip


def _line(done: driver.Tally, crashes: int) -> str:
    rate = done.inputs / done.seconds if done.seconds else 0.0
    words = (
        f"{done.target:14} {done.seconds:6.0f} s {done.inputs:9} inputs {rate:8.0f}/s {done.reached:6} steps reached"
    )
    return f"{words}, slowest {done.slowest:5.2f} CPU s, {crashes + len(done.failures)} wrong"


def _keep(folder: Path, word: str, data: bytes, reason: str) -> None:
    file = folder / f"{word}-{driver.named(data)}"
    file.write_bytes(data)
    print(f"  {folder.name}: {reason}\n    {file}", flush=True)


def _child(name: str, options: argparse.Namespace) -> int:
    """Fuzz in this process."""
    target = next(item for item in TARGETS if item.name == name)
    folder = (KEPT / name).resolve()
    driver.watch_effects()
    with tempfile.TemporaryDirectory(prefix="envmedic-fuzz-") as scratch:
        os.environ |= {"XDG_CACHE_HOME": scratch + "/cache", "XDG_CONFIG_HOME": scratch + "/config"}
        fuzzer = driver.Fuzzer(guarded(target), options.seed, Path(scratch))
        driver.limit_memory()
        current = os.open(folder / _CURRENT, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

        def before(data: bytes) -> None:
            os.pwrite(current, data, 0)
            os.ftruncate(current, len(data))

        tally = driver.fuzz(fuzzer, seconds=options.seconds, before=before)
        (folder / "slowest").write_bytes(fuzzer.slowest)
        (folder / _TALLY).write_bytes(msgspec.json.encode(tally))
    return 0


def _again(name: str, file: Path) -> int:
    """Read one input and let its error through."""
    target = next(item for item in TARGETS if item.name == name)
    with tempfile.TemporaryDirectory(prefix="envmedic-fuzz-") as scratch:
        reader = guarded(target).reader(Path(scratch))
        try:
            reader(file.read_bytes())
        except target.promised as error:
            print(f"refused: {type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
