"""``make test-install``: what a stranger gets, on every Python that is here.

Wheel and source archive are built, looked through, and each is installed by ``uv tool`` and by pipx into a home that holds
nothing, with every CPython from 3.10 on that uv finds. Then the commands that must work anywhere are run. Parts that this
machine cannot do are shown as skipped. Exit 1 if anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.install.packages import build, complaints
from tests.install.rooms import InstallError, Room, pythons, tried

INSTALLERS = ("uv", "pipx")


def main(arguments: Sequence[str]) -> int:
    """Install and try every combination, print a line for each, and return 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.install", description=__doc__)
    parser.add_argument(
        "--python", action="append", default=[], help="only this version, such as 3.12; can be repeated"
    )
    parser.add_argument(
        "--installer", action="append", choices=INSTALLERS, default=[], help="only this; can be repeated"
    )
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="envmedic-install-"))
    try:
        return int(any([*_contents(folder), *_installs(folder, chosen)]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _contents(folder: Path) -> Iterator[bool]:
    """Whether each package holds what it should not, or lacks something."""
    for package in build(folder / "dist"):
        wrong = complaints(package)
        _say("failed" if wrong else "passed", f"contents of {package.name}", "; ".join(wrong))
        yield bool(wrong)


def _installs(folder: Path, chosen: argparse.Namespace) -> Iterator[bool]:
    """Whether each combination failed."""
    packages = sorted((folder / "dist").iterdir())
    for version, path in pythons().items():
        if chosen.python and version not in chosen.python:
            continue
        for installer, package in itertools.product(chosen.installer or INSTALLERS, packages):
            what = f"Python {version}, {installer}, {package.name}"
            if path is None:
                _say("skipped", what, "there is no such Python here")
                continue
            yield _failed(what, Room(folder / "room", installer, Path(path)), package)


def _failed(what: str, room: Room, package: Path) -> bool:
    started = time.monotonic()
    try:
        with room.opened():
            room.install(package)
            count = tried(room)
    except InstallError as error:
        _say("failed", what, str(error))
        return True
    _say("passed", what, f"{count} things tried, {time.monotonic() - started:.0f} s")
    return False


def _say(status: str, what: str, more: str) -> None:
    sys.stdout.write(f"{status:<8} {what}{': ' if more else ''}{more}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
