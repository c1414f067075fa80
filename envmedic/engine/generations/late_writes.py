"""Changes that other programs make in a tree while it is exchanged."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from envmedic.errors import EnvironmentBusy
from envmedic.tree import fingerprint as tree
from envmedic.wording import counted

LISTED = 10


def late_writes(
    before: tree.Fingerprint, aside: Path, live: Path, *, accepted: Collection[str] = ()
) -> tuple[str, ...]:
    """Paths below `aside` that differ from its fingerprint and would be missed in the tree at `live`.

    Left out are `accepted` paths, and files edited in place through a hard link, which `live` shares. Raises OSError.
    """
    names = tree.changes(before, aside).names
    return tuple(name for name in names if name not in accepted and not _shared(aside / name, live / name))


def _shared(first: Path, second: Path) -> bool:
    try:
        return os.path.samestat(first.lstat(), second.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def changed_meanwhile(prefix: Path, names: Sequence[str], when: str) -> EnvironmentBusy:
    """The refusal of an exchange that would hide changes made `when`."""
    first = tree.readable(names[:LISTED])
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return EnvironmentBusy(
        f"{prefix} was changed {when}",
        cause=f"{counted(len(names), 'file differs', 'files differ')}: {', '.join(first)}{more}",
        hint="The environment is as those changes left it. Run the same command again when nothing else works on it",
        details=first,
    )
