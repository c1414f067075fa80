"""The power is cut at every flush of a disk that a virtual machine with Debian's kernel writes to.

A repair, an undo or a redo in there changes the file system. For each flush there is the disk that has all that was written
before it, and one that has only some of what was written since the flush before, as if the power had gone before this one
was over. Each is mounted here, at the same path, and recovered as after any crash.
"""

from __future__ import annotations

import filecmp
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from envmedic.tree import fingerprint
from tests.cli.support import ROOT
from tests.engine.test_crashes import small_world
from tests.faults import disks
from tests.faults.cases import Case
from tests.faults.machine import Write, recorded
from tests.faults.powercut import OPERATIONS, recovered, world_at

_MEBIBYTES = {"ext4": 160, "xfs": 320, "btrfs": 256}
_SEED = 16
_WHOLE = 4096
"""Bytes that a disk writes whole or not at all: btrfs relies on it for its superblock."""
_RUN = """
import sys
from pathlib import Path
from tests.faults import powercut
record = getattr(powercut.world_at(Path(sys.argv[2])), sys.argv[1])()
assert record.failure is None, record.failure
"""
_VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/run",
    "TMPDIR": "/run",
    "PYTHONPATH": str(ROOT),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every operation on each file system; it is too much for a short run."""
    for kind in () if short else _MEBIBYTES:
        for operation in OPERATIONS:
            yield f"{operation}, {kind}", partial(survive, folder, operation, kind)


def survive(folder: Path, operation: str, kind: str) -> tuple[str, str]:
    """Let a machine do the operation, cut the power at each flush of it, and recover from every state."""
    image, before, cut = (folder / f"{name}.disk" for name in ("now", "before", "cut"))
    # not in memory, which is none of the files that the machine sees
    with tempfile.TemporaryDirectory(prefix="envmedic-flushes-") as place:
        where = Path(place) / "disk"
        disks.make_image(image, kind, _MEBIBYTES[kind])
        with disks.mounted(where, "-o", "loop", image):
            world = small_world(where)
            old = fingerprint.manifest(world.prefix)
            for earlier in OPERATIONS[: OPERATIONS.index(operation)]:
                getattr(world, earlier)()
        _copy(image, before)
        writes = recorded(image, kind, where, [sys.executable, "-c", _RUN, operation, str(where)], _VARIABLES)
        sides: Counter[str] = Counter()
        for _ in _states(before, cut, writes):
            with disks.mounted(where, "-o", "loop", cut):
                sides[recovered(world_at(where), old)] += 1
    assert filecmp.cmp(image, before, shallow=False), "the recorded writes do not give the machine's disk"
    for path in (image, before, cut):
        path.unlink()
    flushes = sum(write.flush for write in writes)
    return "whole", f"{flushes} flushes, {sides.total()} states, {sides['old']} old, {sides['new']} new"


def _states(before: Path, cut: Path, writes: Sequence[Write]) -> Iterator[None]:
    """Make in `cut`, one after the other, what the disk may hold, and all of it in `before`, which has what it held at first."""
    chance = random.Random(_SEED)
    since: list[Write] = []
    for write in writes:
        since += [write] if write.data else []
        if not write.flush or not since:
            continue
        if len(since) > 1:
            _copy(before, cut)
            _write(cut, _in_part(since, chance))
            yield
        _write(before, since)
        since = []
        _copy(before, cut)
        yield
    _write(before, since)


def _in_part(writes: Sequence[Write], chance: random.Random) -> list[Write]:
    """Some of these writes, the last of them in part."""
    *kept, last = [write for write in writes[:-1] if chance.random() < 0.5] or writes[:1]
    blocks = chance.randrange(1, max(len(last.data) // _WHOLE, 1) + 1)
    return [*kept, Write(last.offset, last.data[: blocks * _WHOLE], flush=False)]


def _write(disk: Path, writes: Sequence[Write]) -> None:
    with disk.open("r+b") as file:
        for write in writes:
            file.seek(write.offset)
            file.write(write.data)


def _copy(disk: Path, copy: Path) -> None:
    disks.run("cp", "--sparse=always", disk, copy)
