"""The list of environments."""

from __future__ import annotations

from envmedic.model.answers.environments import Environments, FoundEnvironment
from envmedic.render.text import Line, bare, line, table

_HEADS = ("", "NAME", "PYTHON", "TORCH", "KIND", "PREFIX")


def environments_lines(found: Environments) -> list[Line]:
    """A table, the active one marked with a star; then listed environments that no longer exist."""
    if found.environments:
        # laid out first, then toned: the whole row of the active environment has one tone
        head, *rows = map(bare, table([_HEADS, *map(_row, found.environments)], indent=""))
        marked = zip(rows, found.environments, strict=True)
        lines = [line(head, "bold"), *(line(row, "good" if item.active else "plain") for row, item in marked)]
    else:
        lines = [
            line("No environment was found. Name one by its directory with -p, or by its interpreter with --python")
        ]
    return lines + [line(f"{prefix} is listed, and no environment is there") for prefix in found.gone]


def kind_of(item: FoundEnvironment) -> str:
    """The tool that made it where that is known, else its kind."""
    return str(item.tool if item.tool not in {None, "unknown"} else item.kind)


def _row(item: FoundEnvironment) -> tuple[str, ...]:
    mark = "*" if item.active else " "
    return (mark, item.name or "-", item.python or "-", item.torch or "-", kind_of(item), item.prefix)
