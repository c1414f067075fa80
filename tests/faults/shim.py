"""The preloaded library that lets calls of the C library fail, fall short, or be the last of their process."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.cases import Case, skipping
from tests.faults.room import Skipped

_SOURCE = Path(__file__).with_name("shim.c")


@dataclass
class Life:
    """A process, by what it told of itself."""

    name: str
    """``0`` is the first process, ``0.2`` the second that it forks, ``+0.2`` the program that this becomes."""
    words: str
    """Its command line when it began, which a fork has from its parent."""
    calls: int | None = None
    """Files opened and writes made, in the end; None where it became another program, or was killed."""
    last_write: int = 0
    """Which of the calls was the last write, from 1; 0: there was none."""


@dataclass
class Shim:
    """The compiled library, and the files that it shares with this process."""

    library: Path
    shared: Path
    told: Path
    lived: Path

    @classmethod
    def build(cls, folder: Path) -> Shim:
        """Compile it. Raises Skipped without a C compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise Skipped("there is no C compiler")
        made = cls(folder / "shim.so", folder / "shared", folder / "told", folder / "lived")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made.library), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        made.reset()
        return made

    def reset(self) -> None:
        """Count from 0 again, by clocks that are right."""
        self.shared.write_bytes(bytes(16))
        self.told.unlink(missing_ok=True)
        self.lived.unlink(missing_ok=True)

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

    def killing(self, process: str, at: int, *, half: bool = False) -> dict[str, str]:
        """What has that process die before its call number `at` (0: as it begins, -1: as it ends), or in the `half` of it."""
        return {
            **self.variables(),
            "FAULT_LIVES": str(self.lived),
            "FAULT_PROCESS": process,
            "FAULT_AT": str(at),
            "FAULT_HALF": "1" if half else "",
        }

    @property
    def lives(self) -> list[Life]:
        """The processes that began, in that order."""
        found: dict[str, Life] = {}
        for line in self._lines():
            what, name, calls, last_write, words = line.split(" ", 4)
            if what == "begins":
                found[name] = Life(name, words)
            elif what == "ends":
                found[name].calls, found[name].last_write = int(calls), int(last_write)
        return list(found.values())

    @property
    def killed(self) -> list[str]:
        """The command lines of those that were killed."""
        return [line.split(" ", 4)[4] for line in self._lines() if line.startswith("killed ")]

    def _lines(self) -> list[str]:
        return self.lived.read_text(errors="replace").splitlines() if self.lived.exists() else []


def with_shim(folder: Path, name: str, cases: Callable[[Shim], Iterator[Case]]) -> Iterator[Case]:
    """`cases` with the library, or one of that `name` which tells why there is none."""
    try:
        shim = Shim.build(folder)
    except Skipped as reason:
        yield name, skipping(reason)
        return
    yield from cases(shim)
