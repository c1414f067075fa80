"""Changes of distributions as a table: before, after, who installs them, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.model.plan import Change
from envmedic.render.style import size
from envmedic.render.text import Cell, Line, TextPart, part, table

ARROW = "→"
NOTHING = "none"


def change_lines(changes: Iterable[Change], *, indent: str = "  ") -> list[Line]:
    """A row for each change: name, before and after, builds where conda has a part, owner, size."""
    listed = list(changes)
    # wheels have no build strings: without conda packages the column would be empty
    builds = any(item.by == "conda" for item in listed)
    sizes = ["size unknown" if item.size_bytes is None else size(item.size_bytes) for item in listed]
    widest = max(map(len, sizes), default=0)
    rows: list[tuple[Cell, ...]] = [
        (
            part(item.name, "bold"),
            part(item.before or NOTHING, "bad" if item.before != item.after else "plain"),
            ARROW,
            _after(item),
            *((part(_builds(item), "dim"),) if builds else ()),
            part(_owner(item), "dim"),
            told.rjust(widest),
        )
        for item, told in zip(listed, sizes, strict=True)
    ]
    return table(rows, indent=indent)


def move_text(change: Change) -> str:
    """A change in a few words: ``torchvision 0.18.1 → 0.20.1``."""
    return f"{change.name} {change.before or NOTHING} {ARROW} {_after(change).text}"


def _after(change: Change) -> TextPart:
    if change.kind == "remove":
        return part("removed", "bad")
    # the same version again: its files were changed or removed
    again = " again" if change.before == change.after and change.before_build == change.after_build else ""
    return part(f"{change.after}{again}", "good")


def _builds(change: Change) -> str:
    """The build strings of a conda package."""
    if change.kind == "change" and change.before_build != change.after_build:
        return f"{change.before_build} {ARROW} {change.after_build}"
    return change.after_build or change.before_build


def _owner(change: Change) -> str:
    """The owner, with the channel of a conda package; both owners where ownership changes."""
    if change.by == "conda":
        channel = change.channel.rstrip("/").rpartition("/")[2]
        return f"conda ({channel})" if channel else "conda"
    return f"conda ({change.package}) {ARROW} wheel" if change.package else change.owner
