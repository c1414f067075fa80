"""A file that unpacks a Python of its own, with the core and uv in it, and starts envmedic by that Python."""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.venvs import uv

MACHINES = {62: "x86_64", 183: "aarch64"}
"""By the number in an ELF header."""
HEAD = 20
"""Bytes of a file that tell."""
_ELF = b"\x7fELF"
OLDEST = 10
_FIRST_DAY = 315532800
"""Of 1980, as in archives that are made again byte for byte."""
_STDLIB = re.compile(r"python/lib/python3\.(\d+)/os\.py")
_LEFT_OUT = re.compile(
    r"python/(include|share)/|python/lib/(lib)?(tcl|tk|itcl|thread)\d|python/lib/pkgconfig/"
    r"|python/lib/python3\.\d+/(site-packages|config-[^/]+|test|idlelib|tkinter|turtledemo|ensurepip|lib2to3)/"
)
"""Of an archive: what envmedic never loads. Its pip is not needed beside uv."""


class UnitError(Exception):
    """The file cannot be made."""


@dataclass(frozen=True)
class PythonArchive:
    """A Python as python-build-standalone's archives `install_only` have it."""

    path: Path
    machine: str
    minor: int


def read(path: Path, sha256: str | None) -> PythonArchive:
    """What is in an archive. Raises UnitError where it is another file than `sha256` tells, or no such Python."""
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UnitError(f"the archive of a Python cannot be read: {path}: {error.strerror}") from error
    if sha256 and found != sha256.lower():
        raise UnitError(f"{path} is another file than was asked for: its SHA-256 is {found}, and not {sha256}")
    try:
        with tarfile.open(path) as archive:
            names = archive.getnames()
            minors = [int(match[1]) for match in map(_STDLIB.fullmatch, names) if match]
            program = archive.extractfile("python/bin/python3")
            machine = machine_of(program.read(HEAD)) if program else None
    except (tarfile.TarError, OSError, EOFError, KeyError) as error:
        raise UnitError(f"{path} is no archive with python/bin/python3, as install_only has it: {error}") from error
    if machine is None or len(minors) != 1 or minors[0] < OLDEST:
        raise UnitError(f"{path} has no Python 3.{OLDEST} or newer for one of: {', '.join(MACHINES.values())}")
    return PythonArchive(path, machine, minors[0])


def make(archive: PythonArchive, wheel: Path, place: Path) -> Path:
    """Make the file in a directory. Raises UnitError where the index has no wheel for that Python and machine."""
    out = place / f"envmedic-node-{archive.machine}.run"
    with tempfile.TemporaryDirectory(prefix="envmedic-unit-") as room:
        packages, payload = Path(room, "packages"), Path(room, "payload")
        _install(archive, wheel, packages)
        _pack(archive, packages, payload)
        need_machine(_heads(payload), archive.machine)
        joined(payload, archive.machine, out)
    return out


def joined(payload: Path, machine: str, out: Path) -> None:
    """Write the file: the script that unpacks, and after its last line a compressed tar archive with `python/bin/python3`."""
    script = Path(__file__).with_name("start.sh").read_text()
    digest = hashlib.sha256(payload.read_bytes()).hexdigest()[:16]
    values = {"@MACHINE@": machine, "@DIGEST@": digest, "@LINE@": str(script.count("\n") + 1)}
    for name, value in values.items():
        script = script.replace(name, value)
    with out.open("wb") as file, payload.open("rb") as rest:
        file.write(script.encode())
        shutil.copyfileobj(rest, file)
    out.chmod(0o755)


def machine_of(head: bytes) -> str | None:
    """The machine that a compiled file is for, by its first bytes; None for another one, and for what is not compiled."""
    return MACHINES.get(int.from_bytes(head[18:20], "little")) if head.startswith(_ELF) else None


def need_machine(files: Iterable[tuple[str, bytes]], machine: str) -> None:
    """Raise UnitError where a compiled file, by its name and first bytes, is for another machine."""
    for name, head in files:
        if head.startswith(_ELF) and machine_of(head) != machine:
            raise UnitError(f"{name} is not for {machine}")


def _install(archive: PythonArchive, wheel: Path, packages: Path) -> None:
    target = ("--python-platform", f"{archive.machine}-manylinux_2_28", "--python-version", f"3.{archive.minor}")
    words = ("pip", "install", "--quiet", "--only-binary", ":all:", "--target", str(packages), *target)
    done = subprocess.run([uv(), *words, str(wheel), "uv"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise UnitError(f"uv cannot install the core for Python 3.{archive.minor} on {archive.machine}: {done.stderr}")
    # they begin with the path of the Python that builds
    for script in (packages / "bin").iterdir():
        if script.read_bytes()[:2] == b"#!":
            script.unlink()


def _pack(archive: PythonArchive, packages: Path, payload: Path) -> None:
    """The same bytes for the same archive and wheels, whenever and by whomever it is made."""
    with (
        gzip.GzipFile(payload, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as made,
        tarfile.open(archive.path) as given,
    ):
        for member in given:
            if member.name.startswith("python/") and not _LEFT_OUT.match(member.name):
                made.addfile(_plain(member), given.extractfile(member) if member.isreg() else None)
        made.add(packages, f"python/lib/python3.{archive.minor}/site-packages", filter=_of_first_day)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _of_first_day(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = _FIRST_DAY
    return _plain(member)


def _heads(payload: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(payload) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if content:
                yield member.name, content.read(HEAD)
