"""The preloaded library that lets calls of the C library fail, fall short, or be the last of their process."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cli.support import Done
from tests.faults.cases import Case
from tests.faults.room import Room, Skipped, told

KILL, SHORT = -1, 0
_EVERY = -1
_SOURCE = Path(__file__).with_name("shim.c")
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
class Shim:
    """The compiled library, and the files that it shares with this process."""

    library: Path
    shared: Path
    told: Path

    @classmethod
    def build(cls, folder: Path) -> Shim:
        """Compile it. Raises Skipped without a C compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise Skipped("there is no C compiler")
        made = cls(folder / "shim.so", folder / "shared", folder / "told")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made.library), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        made.reset()
        return made

    def reset(self) -> None:
        """Count from 0 again, by clocks that are right."""
        self.shared.write_bytes(bytes(16))
        self.told.unlink(missing_ok=True)

    def advance(self, seconds: int) -> None:
        """Set all clocks forward, or back; takes effect in processes that run."""
        descriptor = os.open(self.shared, os.O_WRONLY)
        os.pwrite(descriptor, struct.pack("q", seconds), 8)
        os.close(descriptor)

    @property
    def count(self) -> int:
        """Calls counted so far."""
        counted: int = struct.unpack("q", self.shared.read_bytes()[:8])[0]
        return counted

    @property
    def faults(self) -> list[str]:
        """What was made to fail: the call and its path."""
        return self.told.read_text(errors="replace").splitlines() if self.told.exists() else []

    def variables(
        self, call: str = "", number: int = 1 << 40, do: int = errno.EIO, below: Path | None = None
    ) -> dict[str, str]:
        """What has a process, and all that it starts, live with it."""
        return {
            "LD_PRELOAD": str(self.library),
            "FAULT_SHARED": str(self.shared),
            "FAULT_TOLD": str(self.told),
            "FAULT_CALL": call,
            "FAULT_NTH": str(number),
            "FAULT_DO": str(do),
            "FAULT_BELOW": str(below or "/"),
        }


@dataclass
class Faulty:
    """A room, and the library."""

    room: Room
    shim: Shim

    def run(self, call: str, number: int, do: int) -> Done:
        """Repair while a call beside the environment does what it is told to do."""
        self.shim.reset()
        user = self.room.user.having(**self.shim.variables(call, number, do, self.room.prefix.parent))
        return user.envmedic(*self.room.repairing())

    def counted(self, call: str) -> int:
        """How often an undisturbed repair makes the call."""
        done = self.run(call, 1 << 40, errno.EIO)
        assert done.code == 0, done.told()
        self.room.take_back()
        return self.shim.count

    def survives(self, call: str, number: int, do: int) -> tuple[str, str]:
        """Repair under the fault, and see what is there."""
        done = self.run(call, number, do)
        if not self.shim.faults:
            raise Skipped("fewer calls this time")
        said = self._said(done)
        if self.room.new is None and done.code == 0:
            self.room.new = self.room.now()
        self.room.side()
        recovered = self.room.run(*self.room.command("recover"))
        assert recovered.code == 0, recovered.told()
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
    try:
        shim = Shim.build(folder)
    except Skipped as reason:
        why = reason
        yield "failing calls", lambda: skip(why)
        return
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    faulty = Faulty(room, shim)
    for call, do in EVERY[:1] if short else EVERY:
        yield f"every {call}: {name_of(do)}", lambda call=call, do=do: faulty.survives(call, _EVERY, do)  # type: ignore[misc]
    for call in () if short else CALLS:
        count = faulty.counted(call)
        for number in _spread(count, _SAMPLES):
            for do in (*CALLS[call], KILL):
                name = f"{call} {number + 1} of {count}: {name_of(do)}"
                yield name, lambda call=call, do=do, number=number: faulty.survives(call, number, do)  # type: ignore[misc]


def skip(reason: Skipped) -> tuple[str, str]:
    """What a case comes to that cannot be tried."""
    raise reason


def _spread(count: int, most: int) -> list[int]:
    """Numbers from the first to the last of `count`."""
    return list(range(count)) if count <= most else [step * (count - 1) // (most - 1) for step in range(most)]


def name_of(do: int) -> str:
    """What a call is made to do, in a word."""
    return {KILL: "SIGKILL", SHORT: "half"}.get(do) or errno.errorcode[do]
