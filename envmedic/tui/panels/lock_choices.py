"""Lock formats in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envmedic.model.lock import LockFormat
from envmedic.render.cells import end
from envmedic.render.text import Line, TextPart, line

FORMATS: Final[dict[LockFormat, str]] = {
    "conda-lock": "conda and pip packages; conda-lock installs it",
    "pylock": "wheels with hashes (PEP 751); pip and uv install it",
    "requirements": "wheels with hashes, for pip and uv of any age",
    "environment": "what was asked for, for conda and mamba",
    "dockerfile": "an image that is made from the lock",
}
"""Every format, with what it is for."""
NAMES: Final[dict[LockFormat, str]] = {
    "conda-lock": "conda-lock.yml",
    "pylock": "pylock.toml",
    "requirements": "requirements.txt",
    "environment": "environment.yml",
    "dockerfile": "Dockerfile",
}
"""The names of the files, as `envmedic.locks` gives them."""


INCOMPLETE: Final = "incomplete"
"""The choice below the formats."""
_GAPS: Final = "write also what lacks entries, which are then named in it"


def tick_lines(item: str, *, ticked: bool, cells: int) -> list[Line]:
    """A format, or the choice below them, with its tick."""
    label, about = next(((f"{NAMES[form]:<17} ", text) for form, text in FORMATS.items() if form == item), ("", _GAPS))
    mark = "[x] " if ticked else "[ ] "
    text = end(label + about, max(cells - len(mark), 4))
    return [(TextPart(mark, "good" if ticked else "plain"), TextPart(text, "bold" if ticked else "plain"))]


def replaced_lines(names: Sequence[str]) -> list[Line]:
    """What is there already and would go."""
    return [line(f"! replaces {', '.join(names)}", "warn")] if names else []
