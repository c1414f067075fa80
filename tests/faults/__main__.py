"""Does to envmedic and its surroundings what machines do, and prints what is left of the environment.

    python -m tests.faults [--part NAME]… [--short] [--runs N] [--share I/N] [--resume FILE] [--only TEXT]
        [--keep-going] [--json FILE]

Ends with 1 where something did not hold. `--resume` keeps what was tried, and goes on from there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tests.faults import (
    additions,
    armed,
    children,
    clocks,
    disks,
    filesystems,
    flushes,
    installers,
    libc,
    limits,
    memory,
    mutations,
    network,
    old_state,
    powercut,
    renames,
    sharing,
    sigkill,
    tables,
    turns,
)
from tests.faults.cases import Case, Tried, attempt, rows, summary
from tests.faults.room import Room, Skipped
from tests.support.rooms import in_memory

_SIGKILL = "sigkill"
PARTS: dict[str, Callable[..., Iterator[Case]]] = {
    "turns": turns.cases,
    "limits": limits.cases,
    "children": children.cases,
    "memory": memory.cases,
    "calls": libc.cases,
    "clocks": clocks.cases,
    "network": network.cases,
    "installers": installers.cases,
    "filesystems": filesystems.cases,
    "powercut": powercut.cases,
    "flushes": flushes.cases,
    "renames": renames.cases,
    "additions": additions.cases,
    "sharing": sharing.cases,
    "state": old_state.cases,
    "mutations": mutations.cases,
}
_RUNS = 2000
_SHORT_RUNS = 20
_IMAGE_MB = 3000


def main(arguments: Sequence[str]) -> int:
    """Try the parts that are named, all by default."""
    options = _parser().parse_args(arguments)
    armed.adopt_orphans()
    if os.geteuid() == 0:
        disks.own_mounts()
    tried = [item for part in options.part or (_SIGKILL, *PARTS) for item in _part(part, options)]
    for line in summary(tried):
        _say(line)
    if options.json:
        options.json.write_bytes(msgspec.json.encode(tried))
    return int(any(item.failed for item in tried))


def _part(part: str, options: argparse.Namespace) -> list[Tried]:
    with tempfile.TemporaryDirectory(prefix="envmedic-faults-") as otherwise, ExitStack() as stack:
        folder = stack.enter_context(contextmanager(in_memory)(Path(otherwise)))
        return _sigkill(folder, options) if part == _SIGKILL else _cases(part, folder, options)


def _cases(part: str, folder: Path, options: argparse.Namespace) -> list[Tried]:
    """Try what was not tried before, and say what came of it."""
    tried = _earlier(options.resume, part)
    for name, work in PARTS[part](folder, short=options.short):
        if options.only not in name:
            continue
        known = next((item for item in tried if item.case == name), None)
        if known is None:
            known = attempt(part, name, work)
            tried.append(known)
            _keep(options.resume, known)
        _say(next(rows([known])))
        if known.failed and not options.keep_going:
            _say("the rest of this part is not tried: what is there now is not known")
            break
    return tried


def _earlier(file: Path | None, part: str) -> list[Tried]:
    lines = file.read_bytes().splitlines() if file is not None and file.exists() else []
    tried = [msgspec.json.decode(line, type=Tried) for line in lines]
    return [item for item in tried if item.part == part and not item.failed]


def _keep(file: Path | None, tried: Tried) -> None:
    if file is not None:
        with file.open("ab") as written:
            written.write(msgspec.json.encode(tried) + b"\n")


def _sigkill(folder: Path, options: argparse.Namespace) -> list[Tried]:
    """The sweep on a file system with every way to clone, where it can be had."""
    number, of = map(int, options.share.split("/"))
    kept: Path = options.resume or folder / "survived"
    kept.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        where = folder
        if not options.short:
            try:
                where = stack.enter_context(disks.image(folder, "xfs", _IMAGE_MB))
            except Skipped as reason:
                _say(f"not on XFS: {reason}")
        room = Room.build(where / "room", real=not options.short)
        room.learn()
        sweep = sigkill.Sweep(room, short=options.short)
        _say(f"{len(room.old)} files and directories on {disks.described(where)}")
        file, planned = kept / f"{number}.jsonl", kept / "plan.json"
        runs = options.runs or (_SHORT_RUNS if options.short else _RUNS)
        for item in sigkill.survive_all(sweep, file, planned, (number, of), -(-runs // of)):
            if item.failed:
                _say(f"{item.kills} left {item.side}: {item.failed}")
    survived = [item for path in sorted(kept.glob("*.jsonl")) for item in sigkill.read(path)]
    for line in (*tables.by_mode(survived), "", *tables.by_step(survived)):
        _say(line)
    return [_counted(item) for item in survived]


def _counted(item: sigkill.Survived) -> Tried:
    case = f"{item.scenario.number} {', '.join(item.kills)}"
    return Tried(part=_SIGKILL, case=case, outcome="FAILED" if item.failed else item.side, told=item.failed)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=(_SIGKILL, *PARTS))
    parser.add_argument("--short", action="store_true", help="a few cases of each part, on a small environment")
    parser.add_argument("--runs", type=int, help=f"SIGKILLs, {_RUNS} by default")
    parser.add_argument("--share", default="0/1", help="I/N: the Ith of N processes that share the SIGKILLs, from 0")
    parser.add_argument(
        "--resume", type=Path, help="what was tried is kept here (SIGKILLs: a folder, else a file), and not tried again"
    )
    parser.add_argument("--only", default="", help="the cases whose name has this in it (SIGKILLs apart)")
    parser.add_argument(
        "--keep-going", action="store_true", help="try what comes after a case that failed, SIGKILLs apart"
    )
    parser.add_argument("--json", type=Path, help="write what was tried, as a JSON document")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
