"""Places outside of an environment that an install writes to: undo does not reach them, so they are named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from envmedic import xdg
from envmedic.planner.guard.installer_commands import InstallerCommand

_WATCHED_DEPTH = 2
_LISTED = 5


class WatchedPlaces:
    """Places outside of the environment that an install may write to."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._before = {folder: _listed(folder) for folder in folders}

    @classmethod
    def of(cls, command: InstallerCommand) -> WatchedPlaces:
        """The project directories that the words name, and the user's own site-packages."""
        words = (word.partition("=")[2] if word.startswith("-") else word for word in command.words)
        named = {Path(os.path.realpath(word.partition("[")[0])) for word in words if word and "/" in f"{word}/"}
        user = [xdg.home() / ".local" / "bin", *(xdg.home() / ".local" / "lib").glob("python3*/site-packages")]
        folders = [folder for folder in named if _is_project(folder)]
        return cls([*folders, *((Path.cwd(),) if command.of_project else ()), *user])

    def told(self, command: InstallerCommand) -> tuple[str, ...]:
        """What was written there since, in sentences."""
        new = [str(folder / name) for folder, known in self._before.items() for name in sorted(_listed(folder) - known)]
        found = []
        if new:
            more = f" and {len(new) - _LISTED} more" if len(new) > _LISTED else ""
            found.append(
                f"Written outside of the environment, where undo does not reach: {', '.join(new[:_LISTED])}{more}"
            )
        if not command.verb.endswith(("uninstall", "remove")):
            found.append(f"What was downloaded stays in the cache of {command.tool}, where undo does not reach")
        return tuple(found)


def _is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg"))


def _listed(folder: Path, depth: int = _WATCHED_DEPTH) -> set[str]:
    """Paths below `folder`, with their times of change: what was written again counts too."""
    found: set[str] = set()
    try:
        entries = list(os.scandir(folder))
    except OSError:  # not there, or not readable: nothing is written there either
        return found
    for entry in entries:
        if entry.name in {".git", ".venv", "__pycache__"}:
            continue
        found.add(entry.name)
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            found |= {f"{entry.name}/{name}" for name in _listed(Path(entry.path), depth - 1)}
    return found
