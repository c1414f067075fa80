"""What a clone lacks of its original: foreseen before it is made, refused where it matters, told in the record."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envmedic.engine.clone.disk_space import cloned
from envmedic.engine.fs.file_copy import LossKind
from envmedic.errors import PreflightError
from envmedic.model.registries.modes import AllowName, CloneMode
from envmedic.tree import attributes

Losses = Mapping[LossKind, tuple[str, ...]]
"""Paths relative to the prefix, by what their clone lacks."""
_LISTED = 10
_REFUSED: Mapping[AllowName, tuple[LossKind, str, str]] = {
    "ownership": ("ownership", "its owner or group", "Only root may give files to others, and this is {user}"),
    "capabilities": ("capabilities", "its capabilities", "Only root may give files capabilities, and this is {user}"),
}
"""Losses that refuse a repair, by what allows them."""
_TOLD: Mapping[LossKind, str] = {
    "ownership": "Owner or group not kept ({user} has them in the repaired copy, without set-user-ID bits)",
    "capabilities": "Capabilities lost in the repaired copy (root sets them again with setcap)",
    "attributes": "Extended attributes lost in the repaired copy",
    "flags": "Flags of chattr not kept in the repaired copy (chattr sets them again)",
    "links": "Copied in full, since the system refused to share them with the tree from before",
    "vanished": "Removed by another program during the copy",
}


def foreseen(root: Path, mode: CloneMode, workdir: Path) -> Losses:
    """What a clone of `root` in `workdir` will lack of owners and capabilities, as far as it is made without links.

    Hard links that the kernel will refuse are not foreseen. Raises OSError.
    """
    if os.geteuid() == 0:
        return {}
    groups, parent = {os.getegid(), *os.getgroups()}, workdir.stat()
    if parent.st_mode & stat.S_ISGID:  # handed on to everything below
        groups.add(parent.st_gid)
    lost: dict[LossKind, list[str]] = {"ownership": [], "capabilities": []}
    for name, status in _copied(root, mode):
        if status.st_uid != os.geteuid() or status.st_gid not in groups:
            lost["ownership"].append(name)
        if stat.S_ISREG(status.st_mode) and attributes.has_capabilities(root / name):
            lost["capabilities"].append(name)
    return {kind: tuple(sorted(names)) for kind, names in lost.items() if names}


def _copied(root: Path, mode: CloneMode) -> Iterator[tuple[str, os.stat_result]]:
    yield ".", root.stat()
    for base, entry, is_shared in cloned(root, "copy" if mode == "reflink" else mode):  # an inode of its own either way
        if not is_shared:
            try:
                yield base + entry.name, entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed since it was listed
                continue


def refuse(prefix: Path, lost: Losses, allow: Sequence[AllowName]) -> None:
    """Raise PreflightError, with the files in `details`, for losses that `allow` does not name."""
    refused = [name for name, (kind, _, _) in _REFUSED.items() if name not in allow and lost.get(kind)]
    if not refused:
        return
    kind, what, cause = _REFUSED[refused[0]]
    names = lost[kind]
    lift = " ".join(f"--allow {name}" for name in refused)
    hint = f"Use {lift} if the repaired environment may lack it"
    if kind == "ownership":
        hint = f"Run `sudo chown -hR {_user()}: {prefix}` to own all of it, or use {lift}"
    error = PreflightError(
        f"A copy of {prefix} would lose {what} for {_files(names)}, such as {names[0]}",
        cause=cause.format(user=_user()),
        hint=hint,
        details=tuple(f"{name} ({item})" for item in refused for name in lost[_REFUSED[item][0]][:_LISTED]),
    )
    error.allow = refused[0]
    raise error


def notes(lost: Losses) -> Iterator[str]:
    """One line for each kind of loss, with the first of its files."""
    for kind, text in _TOLD.items():
        names = lost.get(kind, ())
        if names:
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"{text.format(user=_user())}: {_files(names)}: {', '.join(names[:_LISTED])}{more}"


def _files(names: Sequence[str]) -> str:
    return f"{len(names)} file{'s' * (len(names) != 1)}"


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
