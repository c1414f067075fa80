"""Paths that a plan names, taken inside a clone and nowhere else.

A plan may come from a file, and an environment may hold links: ``..``, an absolute path or a symbolic
link in the middle must never lead a deletion or a write out of the clone, least of all into the original.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from envmedic.engine.fs.durable import write_durably
from envmedic.errors import InputError


def locate(tree: Path, relative: str) -> Path:
    """Where `relative` lies in `tree`. A link as its last part is not followed; links before it must stay inside.

    Raises InputError when it would lie anywhere else.
    """
    pure = PurePosixPath(relative)
    if pure.is_absolute() or not pure.parts or ".." in pure.parts or "\0" in relative:
        raise _outside(relative, "it is not a plain path below the prefix")
    # The last part is not resolved: removing a link must remove the link, not its target.
    root = Path(os.path.realpath(tree))
    parent = Path(os.path.realpath(root.joinpath(*pure.parts[:-1])))
    if not parent.is_relative_to(root):
        raise _outside(relative, f"a symbolic link leads to {parent}")
    return parent / pure.name


def replace_file(tree: Path, relative: str, content: bytes) -> Path:
    """Write a file of the clone as a new inode, keeping the mode of the one it replaces; makes its directories."""
    path = locate(tree, relative)
    _make_parents(Path(os.path.realpath(tree)), path.parent)
    mode = path.stat().st_mode & 0o7777 if path.is_file() and not path.is_symlink() else 0o644
    write_durably(path, content, mode=mode)
    return path


def _make_parents(root: Path, directory: Path) -> None:
    missing = [path for path in (directory, *directory.parents) if path.is_relative_to(root) and not path.is_dir()]
    for path in reversed(missing):
        path.mkdir(mode=0o755)


def _outside(relative: str, why: str) -> InputError:
    return InputError(
        f"The plan names {relative!r}, which is not inside the environment",
        cause=why,
        hint="Make the plan again with `envmedic plan`",
    )
