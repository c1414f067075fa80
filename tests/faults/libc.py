"""Calls of the C library that fail, fall short, or are the last of their process, in a repair."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.cli.support import Done
from tests.envs.nms_cuda.case import REPAIRED
from tests.faults.cases import Case
from tests.faults.room import Room, Skipped, told
from tests.faults.shim import Shim, with_shim
from tests.support.venvs import site_packages

KILL, SHORT = -1, 0
_EVERY = -1
CALLS = {
    "write": (errno.EIO, errno.ENOSPC, SHORT),
    "copy_file_range": (errno.EIO, SHORT),
    "fsync": (errno.EIO,),
    "syncfs": (errno.EIO,),
    "rename": (errno.EIO,),
    "renameat2": (errno.EIO, errno.EINVAL),
    "link": (errno.EIO, errno.EMLINK),
    "mkdir": (errno.EIO, errno.EDQUOT),
    "unlink": (errno.EIO,),
    "rmdir": (errno.EIO,),
}
"""Each call with what it is made to do."""
EVERY = (("write", SHORT), ("copy_file_range", SHORT), ("copy_file_range", errno.EOPNOTSUPP), ("link", errno.EMLINK))
"""What a repair lives with though each call does it."""
_SAMPLES = 3


@dataclass
class Faulty:
    """A room, and the library."""

    room: Room
    shim: Shim

    def run(self, call: str, number: int, do: int, below: Path | None = None) -> Done:
        """Repair while a call beside the environment, or on paths that begin with `below`, does what it is told to do."""
        self.shim.reset()
        user = self.room.user.having(**self.shim.variables(call, number, do, below or self.room.prefix.parent))
        return user.envmedic(*self.room.repairing())

    def counted(self, call: str) -> int:
        """How often an undisturbed repair makes the call."""
        done = self.run(call, 1 << 40, errno.EIO)
        assert done.code == 0, done.told()
        self.room.take_back()
        return self.shim.count

    def survives(self, call: str, number: int, do: int) -> tuple[str, str]:
        """Repair under the fault, and see what is there."""
        with self.room.given_back():
            return self._survives(call, number, do)

    def refuses_without_record(self) -> tuple[str, str]:
        """Every write of a RECORD fails, which uv does not tell: the repair must see it."""
        record = site_packages(self.room.prefix) / f"torchvision-{REPAIRED}.dist-info" / "RECORD"
        with self.room.given_back():
            done = self.run("write", _EVERY, errno.EIO, record)
            assert self.shim.faults, "nothing was written there"
            said = told(done, 1, ("RECORD",))
            side = self.room.settled()
            assert side == "old", done.told()
            self.room.take_back()
            return side, said

    def _survives(self, call: str, number: int, do: int) -> tuple[str, str]:
        done = self.run(call, number, do)
        if not self.shim.faults:
            raise Skipped("fewer calls this time")
        said = self._said(done)
        if self.room.new is None and done.code == 0:
            self.room.new = self.room.now()
        self.room.side()
        self.room.whole("recover")
        side = self.room.settled()
        assert done.code != 0 or side == "new", done.told()
        assert number != _EVERY or side == "new", done.told()
        self.room.take_back()
        return side, said

    def _said(self, done: Done) -> str:
        if done.code == -9:
            return "killed"
        assert done.code in {0, 1, 4, 6}, done.told()
        return "repaired all the same" if done.code == 0 else told(done, done.code)


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Calls that fail, fall short, or are the last of their process, spread over all of each kind in a repair."""
    return with_shim(folder, "failing calls", partial(_cases, folder, short=short))


def _cases(folder: Path, shim: Shim, *, short: bool) -> Iterator[Case]:
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    faulty = Faulty(room, shim)
    for call, do in EVERY[:1] if short else EVERY:
        yield f"every {call}: {name_of(do)}", partial(faulty.survives, call, _EVERY, do)
    yield "every write of a RECORD: EIO", faulty.refuses_without_record
    for call in () if short else CALLS:
        count = faulty.counted(call)
        for number in _spread(count, _SAMPLES):
            for do in (*CALLS[call], KILL):
                yield f"{call} {number + 1} of {count}: {name_of(do)}", partial(faulty.survives, call, number, do)


def _spread(count: int, most: int) -> list[int]:
    """Numbers from the first to the last of `count`."""
    return list(range(count)) if count <= most else [step * (count - 1) // (most - 1) for step in range(most)]


def name_of(do: int) -> str:
    """What a call is made to do, in a word."""
    return {KILL: "SIGKILL", SHORT: "half"}.get(do) or errno.errorcode[do]
