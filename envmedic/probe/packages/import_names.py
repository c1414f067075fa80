"""Import names of a distribution: pure functions of its metadata, except `on_disk`.

``top_level.txt`` lists every directory at the top of the source tree, built or not, so its names count only
where recorded files confirm them. A name whose recorded files are missing counts: it should be importable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from envmedic.probe.readable import is_directory, is_file, names

_EXTENSION = re.compile(r"(?P<module>[^./]+)(?:\.(?P<tag>[^./]+))?\.so")
_HOOK = ".pth"
_DEPTH = 3
"""Levels of directories that are searched for the first module of a namespace package."""


class Modules(msgspec.Struct, frozen=True):
    """The module files that one interpreter reads."""

    soabi: str | None = None
    """Tag of its extension modules, such as ``cpython-311-x86_64-linux-gnu``; None takes every tag."""

    def name(self, file: str) -> str | None:
        """The module that a file of this name holds, None for anything else."""
        if file.endswith(".py"):
            stem = file[:-3]
        elif found := _EXTENSION.fullmatch(file):
            stem = found["module"]
            if not self._fits(stem, found["tag"]):
                return None
        else:
            return None
        return stem if stem.isidentifier() else None

    def _fits(self, module: str, tag: str | None) -> bool:
        if tag is None:  # ``libfoo.so`` is a library that others link
            return not module.startswith("lib")
        return tag in {"abi3", self.soabi} or self.soabi is None


def from_metadata(top_level: bytes | None, paths: Iterable[str], modules: Modules) -> tuple[str, ...]:
    """Names from top_level.txt that the recorded paths bear out; without such, the names of the recorded modules."""
    recorded = tuple(paths)
    stated = read_top_level(top_level)
    if stated and not all("/" in path for path in recorded if path.endswith(_HOOK)):
        # a .pth file can add any directory to sys.path, so RECORD cannot refute the names
        return stated
    found = _top(recorded, modules)
    return tuple(name for name in stated if _recorded(name, recorded, found, modules)) or tuple(sorted(found))


def read_top_level(data: bytes | None) -> tuple[str, ...]:
    """The names in top_level.txt; nested ones, which some list as paths, with dots."""
    listed = (data or b"").decode("utf-8", "replace").split()
    return tuple(dict.fromkeys(name.replace("/", ".") for name in listed))


def on_disk(stated: tuple[str, ...], site: Path, modules: Modules) -> tuple[str, ...]:
    """Those of `stated` that are importable from `site`; all of them when none is, since one ought to be."""
    return tuple(name for name in stated if _exists(site, name, modules)) or stated


def _top(paths: tuple[str, ...], modules: Modules) -> frozenset[str]:
    """Top-level names with a module file at or below them."""
    found = {name for path in paths if "/" not in path and (name := modules.name(path)) is not None}
    below = {path.partition("/")[0] for path in paths if "/" in path}
    wanted = {name for name in below if name.isidentifier()}
    for path in paths:
        # most packages are confirmed by one of their first files: the rest of a long RECORD is not read
        if not wanted:
            break
        head, slash, rest = path.partition("/")
        if slash and head in wanted and (rest.endswith(".py") or modules.name(rest.rpartition("/")[2]) is not None):
            wanted.remove(head)
            found.add(head)
    return frozenset(found)


def _recorded(name: str, paths: tuple[str, ...], top: frozenset[str], modules: Modules) -> bool:
    if "." not in name:
        return name in top
    folder, _, last = name.replace(".", "/").rpartition("/")
    for path in paths:
        where, _, file = path.rpartition("/")
        if where == folder and modules.name(file) == last:
            return True
        if path.startswith(f"{folder}/{last}/") and (file.endswith(".py") or modules.name(file) is not None):
            return True
    return False


def _exists(site: Path, name: str, modules: Modules) -> bool:
    *parents, last = name.split(".")
    folder = site.joinpath(*parents)
    # the usual case without a directory listing
    if is_file(folder / last / "__init__.py") or is_file(folder / f"{last}.py"):
        return True
    return any(modules.name(file) == last for file in names(folder)) or _holds(folder / last, modules, _DEPTH)


def _holds(folder: Path, modules: Modules, depth: int) -> bool:
    """Whether `folder`, or a package at most `depth` levels below it, has a module."""
    listed = names(folder)
    if any(modules.name(file) is not None for file in listed):
        return True
    below = (folder / name for name in listed if name.isidentifier() and is_directory(folder / name))
    return depth > 0 and any(_holds(path, modules, depth - 1) for path in below)
