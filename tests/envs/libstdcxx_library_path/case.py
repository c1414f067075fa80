"""Builds the broken environment of this case: LD_LIBRARY_PATH leads to an older library first. See README.md."""

from __future__ import annotations

import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.support.cxx_runtime import PROGRAM, SONAME, package, runtime
from tests.support.native_case import Done, NativeCase, build_native


@dataclass(frozen=True)
class PathCase:
    """An environment, and the LD_LIBRARY_PATH of the user's shells."""

    native: NativeCase
    older: Path
    newer: Path

    def shell(self) -> dict[str, str]:
        """What the user's profile sets."""
        return {"LD_LIBRARY_PATH": f"{self.older}:{self.newer}"}

    def run_activated(self) -> Done:
        """Run the user's program in a shell that has activated the environment."""
        line = f". {self.native.prefix}/bin/activate && exec python {self.native.program}"
        variables = {**self.native.variables(), **self.shell()}
        done = subprocess.run(["bash", "-c", line], env=variables, capture_output=True, text=True, check=False)
        return Done(done.returncode, done.stdout, done.stderr)


def build(room: Path) -> PathCase:
    """boxes, which needs the compiler's copy of the library, with a simulator's before it."""
    soabi = str(sysconfig.get_config_var("SOABI"))
    native = build_native(room, [package(room / "wheels", soabi)], ["boxes"], PROGRAM)
    older, newer = room / "simulator" / "lib64", room / "compiler" / "lib64"
    for folder, content in ((older, system_copy()), (newer, runtime(new=True))):
        folder.mkdir(parents=True)
        (folder / SONAME).write_bytes(content)
    return PathCase(native, older, newer)


def system_copy() -> bytes:
    """The copy of this machine, which no program here is harmed by."""
    command = ["gcc", f"-print-file-name={SONAME}"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()).read_bytes()
