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


def with_shim(folder: Path, name: str, cases: Callable[[Shim], Iterator[Case]]) -> Iterator[Case]:
    """`cases` with the library, or one of that `name` which tells why there is none."""
    try:
        shim = Shim.build(folder)
    except Skipped as reason:
        yield name, skipping(reason)
        return
    yield from cases(shim)
