"""The layout in which an environment is a symbolic link: its path stays, and each of its trees lies beside it.

``<parent>/<name>`` leads to ``.envmedic-trees/<name>/<tree>``, and not into the store, which backups leave out and other
users cannot enter. Programs, scripts and documents name the link; where it
leads changes with each exchange. Other links, as administrators make them, are resolved like any link.
"""

from __future__ import annotations

import os
from pathlib import Path

STORE = ".envmedic"
"""Directory beside an environment that holds what envmedic keeps for it."""
TREES = ".envmedic-trees"
"""Directory beside such environments with their trees."""


def real_prefix(prefix: str | os.PathLike[str]) -> Path:
    """The path of an environment without symbolic links, but for the one that the environment is in this layout.

    A path into its live tree gives the same.
    """
    real = Path(os.path.realpath(prefix))
    own = real.parent  # .envmedic-trees/<name>
    if own.parent.name != TREES:
        return real
    place = own.parent.parent / own.name
    return place if linked_tree(place) == real else real


def linked_tree(place: Path) -> Path | None:
    """The tree to which `place`, in a real directory, leads; None where it is no link of this layout."""
    try:
        text = os.readlink(place)  # noqa: PTH115  # exact text
    except OSError:
        return None
    name = text.rpartition("/")[2]
    known = text == link_text(place, name) and name not in {"", ".", ".."}
    return place.parent / text if known else None


def link_text(place: Path, tree: str) -> str:
    """What the link at `place` says where it leads to the tree called `tree`. It is relative: other machines may mount the parent elsewhere."""
    return f"{TREES}/{place.name}/{tree}"


def live_tree(place: Path) -> Path:
    """The directory of the tree that is at `place`, whatever the layout."""
    return linked_tree(place) or place
