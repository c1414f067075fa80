"""``python -m tests.gallery``: break, repair, prove, undo; print a table. Some GB, and a minute or two for each fault."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gallery.faults import EVERYTHING, FAULTS, Fault
from tests.gallery.room import Room, base, copy, run

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".gallery"
Listing = dict[str, tuple[int, int, int, str]]


@dataclass(frozen=True)
class Result:
    """How a repair ended."""

    fault: Fault
    code: int
    found: str
    """Class of the finding that was repaired, or what was said instead."""
    works: bool
    """Whether the program that failed works now, and everything that worked before still does."""
    unchanged: bool
    """Whether the environment is as it was before the repair."""
    undone: bool | None
    """Whether undo restored it; None where there was nothing to undo."""
    rounds: int
    seconds: float
    said: str

    @property
    def ok(self) -> bool:
        """Whether it ended as it should."""
        if self.fault.ending == "untouched":
            return self.unchanged
        return self.code == 0 and self.works and self.undone is not False

    @property
    def damaged(self) -> bool:
        """Whether the environment is changed without being repaired, or cannot be brought back."""
        return (not self.unchanged and not (self.code == 0 and self.works)) or self.undone is False


def main(arguments: Sequence[str]) -> int:
    """Run the faults that are named (all by default)."""
    options = parse(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    origin = base(options.folder)
    chosen = [fault for fault in FAULTS if not options.names or any(name in fault.name for name in options.names)]
    results = []
    for fault in chosen:
        results.append(attempt(fault, origin, options.folder / "env", options.folder / "record.json"))
        say(line(results[-1]))
    say(summary(results))
    return 0 if all(result.ok for result in results) else 1


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Which faults, and where."""
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names (default: every fault)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where environments are made")
    return parser.parse_args(arguments)


def attempt(fault: Fault, origin: Room, prefix: Path, record: Path) -> Result:
    """Break a copy, repair it, prove it, undo it."""
    room = copy(origin, prefix)
    try:
        fault.make(room)
        log = provoke(fault, room)
        before = listing(room.prefix)
        started = time.monotonic()
        done = envmedic("apply", "-p", str(prefix), *log_options(log, prefix), "--yes", "--no-gpu", "--json")
        seconds = time.monotonic() - started
        record.write_text(done.stdout)
        document = read(done)
        unchanged = listing(room.prefix) == before
        works = all(room.smoke(code).returncode == 0 for code in (fault.program, EVERYTHING))
        undone = None if unchanged else undo(room, before)
        said = summary_of(document)
        return Result(
            fault, done.returncode, fault_of(document), works, unchanged, undone, rounds(document), seconds, said
        )
    finally:
        shutil.rmtree(prefix.parent / ".envmedic", ignore_errors=True)
        shutil.rmtree(prefix, ignore_errors=True)


def provoke(fault: Fault, room: Room) -> str | None:
    """The error text: what the program really says in the broken environment."""
    if fault.log is not None or fault.silent:
        return fault.log
    failed = room.smoke(fault.program)
    if failed.returncode == 0:
        raise AssertionError(f"{fault.name}: the program does not fail, so the fault is not there")
    return failed.stdout + failed.stderr


def log_options(log: str | None, prefix: Path) -> list[str]:
    """Options that give envmedic the error text."""
    if log is None:
        return []
    path = prefix.parent / "error.txt"
    path.write_text(log)
    return ["--log", str(path)]


def envmedic(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return run([sys.executable, "-m", "envmedic", *arguments])


def undo(room: Room, before: Listing) -> bool:
    """Undo, and whether everything is as before."""
    done = envmedic("undo", "-p", str(room.prefix), "--yes", "--json")
    return done.returncode == 0 and listing(room.prefix) == before


def listing(root: Path) -> Listing:
    """Size, mode, time and target of every file."""
    found = {}
    for path in root.rglob("*"):
        info = path.lstat()
        target = str(path.readlink()) if path.is_symlink() else ""
        if not path.is_dir() or path.is_symlink():
            found[str(path.relative_to(root))] = (info.st_size, info.st_mode, info.st_mtime_ns, target)
    return found


def read(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The document on stdout."""
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"summary": (done.stdout + done.stderr)[-300:]}
    return document


def fault_of(document: dict[str, Any]) -> str:
    """The class that was repaired, or the verdict."""
    plan = document.get("plan") or {}
    return str(plan.get("fault") or document.get("verdict") or document.get("code") or "-")


def rounds(document: dict[str, Any]) -> int:
    """Rounds that the repair took."""
    return len(document.get("rounds") or ())


def summary_of(document: dict[str, Any]) -> str:
    """What was said of a failure."""
    failure = document.get("failure") or document
    return f"{failure.get('summary', '')}: {failure.get('cause', '')}" if failure.get("summary") else ""


def line(result: Result) -> str:
    """One row of the table."""
    state = "ok" if result.ok else "DAMAGED" if result.damaged else "FAILED"
    undone = {True: "undone", False: "UNDO DIFFERS", None: "unchanged"}[result.undone]
    more = "" if result.ok else f"  {result.said[:300]}"
    return (
        f"{state:8}{result.fault.name:42}{result.found:28}exit {result.code}  rounds {result.rounds}  "
        f"{undone:10}  {result.seconds:5.0f} s{more}"
    )


def summary(results: Iterable[Result]) -> str:
    """The figures."""
    every = list(results)
    broken = [result for result in every if result.fault.ending == "repaired"]
    controls = [result for result in every if result.fault.ending == "untouched"]
    return (
        f"repaired {sum(result.ok for result in broken)} of {len(broken)}, "
        f"damaged {sum(result.damaged for result in every)}, "
        f"controls untouched {sum(result.ok for result in controls)} of {len(controls)}"
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
