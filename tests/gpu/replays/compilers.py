"""A compiler that looks in its own folders alone, as conda's: the system's, moved elsewhere with a root of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.gpu.replays.replay import NotHere
from tests.gpu.replays.room import Room

SCRIPT = """\
#!/bin/sh
GCC_EXEC_PREFIX='{home}/lib/gcc/' exec {program} --sysroot='{home}/root' "$@"
"""
"""Where a compiler was moved to, and what it takes for / (gcc, Environment Variables and Directory Options)."""
LEFT_OUT = "libcuda."


def apart(room: Room) -> tuple[Path, Path]:
    """Its C and its C++ compiler. Its folders have what the system's have, but for the driver's library.

    Raises NotHere where the system's compiler is not laid out as those of Debian's kind.
    """
    home = room.folder / "compiler"
    machine, version = _said(room, "-dumpmachine"), _said(room, "-dumpversion")
    system = Path("/usr/lib", machine)
    if not system.is_dir():
        raise NotHere(f"the system's compiler does not have its libraries in {system}")
    for parts in ("lib", "libexec"):
        folder = home / parts / "gcc" / machine / version
        for found in ("-print-prog-name=cc1plus", "-print-prog-name=collect2", "-print-libgcc-file-name"):
            _linked(Path(_said(room, found)).parent.iterdir(), folder)
    _linked(system.iterdir(), home / "root" / "usr" / "lib" / machine)
    for place in (home, home / "root" / "usr"):
        (place / "include").symlink_to("/usr/include")
    for name in ("lib", "lib64"):
        (home / "root" / name).symlink_to("usr/lib")
    (home / "bin").mkdir()
    return _script(home, machine, "gcc"), _script(home, machine, "g++")


def _said(room: Room, option: str) -> str:
    return room.run("g++", option).must().out.strip()


def _linked(files: Iterable[Path], folder: Path) -> None:
    """Put symbolic links to `files` into `folder`, which may have some of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        target = folder / file.name
        if not file.name.startswith(LEFT_OUT) and not target.exists():
            target.symlink_to(file)


def _script(home: Path, machine: str, name: str) -> Path:
    """The command of one compiler, named as conda's are."""
    path = home / "bin" / f"{machine}-{name}"
    path.write_text(SCRIPT.format(home=home, program=f"/usr/bin/{name}"), encoding="utf-8")
    path.chmod(0o755)
    return path
