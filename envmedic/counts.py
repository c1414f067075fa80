"""Numbers with their nouns, for people."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, of which the plural is `many`, by default with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
