"""What else `conda-meta` holds: pins, the mark of a frozen environment, and traces of the tool that owns it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envmedic.conda_meta import reading
from envmedic.conda_meta.history import Revision
from envmedic.model.conda import CondaTool

PINNED = "conda-meta/pinned"
FROZEN = "conda-meta/frozen"
PIXI = ("conda-meta/pixi", "conda-meta/pixi_env_prefix")
"""What pixi leaves in each environment of a project."""
_PROGRAMS: dict[str, CondaTool] = {"conda": "conda", "mamba": "mamba", "micromamba": "micromamba", "pixi": "pixi"}


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The mark by which an environment asks not to be changed."""

    message: str | None = None
    """What its maker says to those who want to change it (CEP 22), where they do."""


class _Mark(msgspec.Struct):
    message: str | None = None


def pinned(prefix: Path) -> tuple[str, ...]:
    """Specs in ``conda-meta/pinned``. Raises OSError."""
    return pins((reading.read(prefix / PINNED) or b"").decode("utf-8", "replace"))


def pins(text: str) -> tuple[str, ...]:
    """Specs in a file of pins, as conda reads it: a line each, comments apart."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def frozen(prefix: Path) -> Frozen | None:
    """The mark of a frozen environment, None without one.

    An empty file is one, as is JSON with a message (https://conda.org/learn/ceps/cep-0022); of anything else the
    text is the message. Raises OSError.
    """
    data = reading.read(prefix / FROZEN)
    if data is None:
        return None
    try:
        return Frozen(message=msgspec.json.decode(data, type=_Mark).message or None)
    except msgspec.DecodeError:
        text = data.decode("utf-8", "replace").strip()
        return Frozen(message=text or None)


def made_by(prefix: Path, revisions: tuple[Revision, ...]) -> CondaTool:
    """The tool that owns an environment: pixi by its marks, else the program of its first revision."""
    if any((prefix / name).exists() for name in PIXI) or prefix.parent.parts[-2:] == (".pixi", "envs"):
        return "pixi"
    if prefix.parent.parts[-2:] == (".conda", "envs") and _is_workspace(prefix.parent.parent.parent):
        return "conda-workspaces"
    return next((tool for item in revisions if (tool := _program(item.command))), "unknown")


def _is_workspace(folder: Path) -> bool:
    """Whether conda-workspaces has a manifest there; ``~/.conda/envs`` is a directory of plain conda's."""
    if any((folder / name).is_file() for name in ("conda.toml", "pixi.toml")):
        return True
    try:
        return b"[tool.conda." in (reading.read(folder / "pyproject.toml") or b"")
    except OSError:
        return False


def _program(command: tuple[str, ...]) -> CondaTool | None:
    """The tool by the command line of a revision: its own program, or ``python …/site-packages/conda/__main__.py``."""
    for word in command[:3]:
        path = Path(word)
        name = path.parent.name if path.name == "__main__.py" else path.name
        if name in _PROGRAMS:
            return _PROGRAMS[name]
    return None
