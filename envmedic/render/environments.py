"""The list of environments as text."""

from __future__ import annotations

from envmedic.model.answers.environments import Environments, FoundEnvironment
from envmedic.render.style import Style, plain, table

_HEADS = ("", "NAME", "PYTHON", "TORCH", "KIND", "PREFIX")


def environments_lines(found: Environments, style: Style) -> list[str]:
    """A table, the active one marked with a star; then what is listed and no longer there."""
    if found.environments:
        head, *rows = table([_HEADS, *map(_row, found.environments)], indent="")
        marked = zip(rows, found.environments, strict=True)
        lines = [style(head, "bold"), *(style(row, "good") if item.active else row for row, item in marked)]
    else:
        lines = ["No environment was found. Name one by its directory with -p, or by its interpreter with --python"]
    return lines + [f"{plain(prefix)} is listed, and no environment is there" for prefix in found.gone]


def _row(item: FoundEnvironment) -> tuple[str, ...]:
    kind = item.tool if item.tool not in {None, "unknown"} else item.kind
    cells = (item.name or "-", item.python or "-", item.torch or "-", str(kind), item.prefix)
    return ("*" if item.active else " ", *map(plain, cells))
