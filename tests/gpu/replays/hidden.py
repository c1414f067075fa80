"""A machine without some of its libraries: in a private mount namespace, so that nothing of the machine is changed."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.gpu.replays.replay import NotHere
from tests.gpu.replays.room import Room

SYSTEM = Path("/usr/lib") / f"{platform.machine()}-linux-gnu"
"""Where distributions of Debian's kind have their libraries, the driver's among them."""
SCRIPT = """\
#!/bin/sh
set -e
mount --make-rprivate /
mount --rbind {system} {there}
mount --bind {farm} {system}
mount --bind {cache} /etc/ld.so.cache
exec "$@"
"""


def hide(room: Room, *names: str, keep: tuple[str, ...] = ()) -> None:
    """Start all further commands where the system has no library of these `names`, such as ``libcudnn.so``.

    A name stands for itself and for those that begin with it and a dot, but for those that `keep` stands for. Raises NotHere where mounts are denied, or
    where the linker finds a library elsewhere.
    """
    folder = room.folder / "hidden"
    there, farm, cache = folder / "system", folder / "farm", folder / "ld.so.cache"
    for path in (there, farm):
        path.mkdir(parents=True)
    for entry in sorted(SYSTEM.iterdir()):
        if not _named(entry.name, names) or _named(entry.name, keep):
            (farm / entry.name).symlink_to(there / entry.name)
    _cache(room, cache, () if keep else names)
    script = folder / "enter.sh"
    text = SCRIPT.format(system=SYSTEM, there=there, farm=farm, cache=cache)
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    unshare = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")
    if shutil.which("unshare") is None:
        raise NotHere("there is no unshare here, so that no library of the system can be hidden")
    tried = room.run(*unshare, script, "ls", SYSTEM)
    if tried.code != 0:
        raise NotHere(f"mounts are denied here, so that no library of the system can be hidden: {tried.text[-200:]}")
    room.within.extend((*unshare, str(script)))


def _named(entry: str, names: Iterable[str]) -> bool:
    return any(entry == name or entry.startswith(f"{name}.") for name in names)


def _cache(room: Room, cache: Path, names: tuple[str, ...]) -> None:
    """Write a cache of the loader that knows no directory with one of the libraries, `SYSTEM` apart."""
    listed = room.run("ldconfig", "-p").must().out
    found = re.findall(r"^\s*(\S+) \(.*\) => (\S+)$", listed, re.MULTILINE)
    folders = dict.fromkeys(str(Path(os.path.realpath(path)).parent) for _, path in found)
    hiding = {str(Path(os.path.realpath(path)).parent) for name, path in found if _named(name, names)} - {str(SYSTEM)}
    settings = cache.with_suffix(".conf")
    settings.write_text("\n".join(folder for folder in folders if folder not in hiding) + "\n", encoding="utf-8")
    room.run("ldconfig", "-X", "-C", cache, "-f", settings).must()
