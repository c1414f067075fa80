"""The answer of ``envmedic data``."""

from __future__ import annotations

from envmedic.model.answers.data import Data
from envmedic.render.text import Line, line, section, table

_ORIGINS = {"shipped": "shipped with envmedic", "installed": "installed beside envmedic", "fetched": "fetched"}


def data_lines(found: Data) -> list[Line]:
    """What was done, the tables in use with their days, and what is not used."""
    rows = [
        ("version", f"{found.version}, {_ORIGINS[found.origin]}"),
        *([("file", found.path)] if found.path is not None else []),
        *([("shipped", found.shipped)] if found.origin != "shipped" else []),
        *([("pinned", found.pinned)] if found.pinned is not None else []),
        ("newest torch", found.newest_torch),
    ]
    days = [(name.replace("_", " "), f"of {day}") for name, day in found.tables.items()]
    return [
        *([line(found.told, "good" if found.changed else "plain"), line("")] if found.told else []),
        line("Compatibility tables in use", "bold"),
        *table(rows),
        *section("Tables", table(days)),
        *section(
            "Not used",
            [line(f"  {item.path}: {item.reason}", "warn" if item.damaged else "plain") for item in found.ignored],
        ),
    ]
