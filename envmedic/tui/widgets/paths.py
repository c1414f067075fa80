"""Completion of paths while they are typed."""

from __future__ import annotations

import os
from pathlib import Path

from textual.suggester import Suggester


class PathSuggester(Suggester):
    """Suggests the first file or directory whose path begins as typed."""

    def __init__(self) -> None:
        # No cache: files come and go while the user types.
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """The whole path, a directory with its slash; None where nothing begins so."""
        return completed(value)


def completed(value: str) -> str | None:
    """`value` completed to the first path that begins so; hidden ones only after a dot."""
    folder, _, start = value.rpartition("/")
    where = Path(os.path.expanduser(folder + "/" if folder or value.startswith("/") else "."))  # noqa: PTH111
    try:
        names = sorted(entry.name for entry in os.scandir(where) if entry.name.startswith(start))
    except OSError:  # nothing to suggest there; opening it tells why
        return None
    names = [name for name in names if start or not name.startswith(".")]
    # a name with control characters could not be typed, and would act on the terminal
    names = [name for name in names if name.isprintable()]
    if not names or value in {"", "~"}:
        return None
    whole = f"{folder}/{names[0]}" if "/" in value else names[0]
    return whole + "/" if (where / names[0]).is_dir() and whole != value else whole
