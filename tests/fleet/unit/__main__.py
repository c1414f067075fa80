"""``make fleet-unit``: one file of the core and uv for the machines of a fleet.

Without an archive it is a pex for Pythons that the machines have; with one, a file with that Python.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.fleet.unit import bundle
from tests.support.venvs import uv

DIST = Path(__file__).resolve().parents[3] / "dist"
HERE = platform.machine()


def main(arguments: Sequence[str]) -> int:
    """Make the file, look into it, and start it where it is for this machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.unit", description=__doc__)
    parser.add_argument("wheel", type=Path, help="of envmedic")
    parser.add_argument("--python", action="append", default=[], help="that the machines have; can be repeated")
    parser.add_argument("--machine", choices=bundle.MACHINES.values(), help="that it is for, if not this one")
    parser.add_argument("--archive", type=Path, help="of a Python, as python-build-standalone's `install_only`")
    parser.add_argument("--sha256", help="of the archive")
    given = parser.parse_args(arguments)
    DIST.mkdir(exist_ok=True)
    try:
        archive = given.archive and bundle.read(given.archive, given.sha256)
        machine = archive.machine if archive else given.machine or HERE
        out = bundled(archive, given.wheel, given.machine) if archive else pex(given.wheel, given.python, machine, DIST)
    except bundle.UnitError as error:
        parser.exit(1, f"error: {error}\n")
    say(f"{out.relative_to(DIST.parent)}: {out.stat().st_size / 1e6:.0f} MB, for {machine}")
    if machine != HERE:
        say(f"it was not run: this machine is {HERE}")
        return 0
    with tempfile.TemporaryDirectory(prefix="envmedic-unit-") as room:
        variables = {**os.environ, "PEX_ROOT": room, "ENVMEDIC_NODE_ROOT": room}
        return subprocess.run([out, "--version"], env=variables, check=False).returncode


def bundled(archive: bundle.PythonArchive, wheel: Path, machine: str | None) -> Path:
    """Make one with the Python of an archive. Raises UnitError where that is for another machine than was asked for."""
    if machine not in (None, archive.machine):
        raise bundle.UnitError(f"{archive.path} has a Python for {archive.machine}, not for {machine}")
    return bundle.make(archive, wheel, DIST)


def pex(wheel: Path, pythons: Sequence[str], machine: str, place: Path) -> Path:
    """Make one for Pythons by their names. Raises UnitError where another machine's have no version in their names."""
    out = place / ("envmedic-node.pex" if machine == HERE else f"envmedic-node-{machine}.pex")
    targets = [word for python in pythons for word in _target(python, machine)]
    tool = (uv(), "tool", "run", "--quiet", "--from", "pex>=2.33", "pex", "--resolver-version", "pip-2020-resolver")
    form = ("--venv", "prepend", "--python-shebang", "/usr/bin/env python3", "-c", "envmedic", "-o", str(out))
    done = subprocess.run([*tool, *targets, *form, f"envmedic @ {wheel.resolve().as_uri()}", "uv"], check=False)
    if done.returncode:
        raise bundle.UnitError("pex has failed, and says why above")
    if machine != HERE:
        with zipfile.ZipFile(out) as made:
            bundle.need_machine(((name, made.open(name).read(bundle.HEAD)) for name in made.namelist()), machine)
    return out


def _target(python: str, machine: str) -> tuple[str, str]:
    if machine == HERE:
        return ("--python", python)
    match = re.search(r"(?:^|python)3\.(\d+)$", python)
    if match is None:
        raise bundle.UnitError(f"which Pythons do those machines have? Name versions, as in python3.12, not {python}")
    return ("--platform", f"manylinux_2_28_{machine}-cp-3{match[1]}-cp3{match[1]}")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
