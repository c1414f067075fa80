"""What else `conda-meta` holds: pins, the mark of a frozen environment, and traces of the tool that owns it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from envmedic.conda_meta import small_files
from envmedic.model.conda import CondaTool

if TYPE_CHECKING:
    from envmedic.conda_meta.history import Revision

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
    return pins((small_files.read(prefix / PINNED) or b"").decode("utf-8", "replace"))


def pins(text: str) -> tuple[str, ...]:
    """Specs in a file of pins, as conda reads it: a line each, comments apart."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def frozen(prefix: Path) -> Frozen | None:
    """The mark of a frozen environment, None without one.

    An empty file is one, as is JSON with a message (https://conda.org/learn/ceps/cep-0022); of anything else the
    text is the message. Raises OSError.
    """
    data = small_files.read(prefix / FROZEN)
    if data is None:
        return None
    try:
        return Frozen(message=msgspec.json.decode(data, type=_Mark).message or None)
    except msgspec.DecodeError:
        text = data.decode("utf-8", "replace").strip()
        return Frozen(message=text or None)


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The project whose tool keeps an environment as its manifest and lock say."""

    tool: Literal["pixi", "conda-workspaces"]
    folder: str | None
    """The project's directory, None for a tool's own environments (``pixi global``) and where nothing tells."""
    environment: str
    """The name by which the tool knows the environment."""


class _Pixi(msgspec.Struct):
    manifest_path: str | None = None
    environment_name: str | None = None


def project(prefix: Path) -> Project | None:
    """The project that an environment belongs to, by its place and by what pixi leaves in it; None for others."""
    root = prefix.parent.parent.parent
    within = prefix.parent.parts[-2:]
    if within == (".pixi", "envs") or any((prefix / name).exists() for name in PIXI):
        told = _told_by_pixi(prefix)
        beside = str(root) if within == (".pixi", "envs") and _has_manifest(root) else None
        folder = str(Path(told.manifest_path).parent) if told.manifest_path else beside
        return Project(tool="pixi", folder=folder, environment=told.environment_name or prefix.name)
    if within == (".conda", "envs") and _has_manifest(root):
        return Project(tool="conda-workspaces", folder=str(root), environment=prefix.name)
    return None


def _told_by_pixi(prefix: Path) -> _Pixi:
    """What pixi's own file says; empty where there is none, or one that a newer pixi writes otherwise."""
    try:
        return msgspec.json.decode(small_files.read(prefix / PIXI[0]) or b"{}", type=_Pixi)
    except (OSError, msgspec.DecodeError):
        return _Pixi()


def made_by(prefix: Path, revisions: tuple[Revision, ...]) -> CondaTool:
    """The tool that owns an environment: that of its project, else the program of its first revision."""
    owner = project(prefix)
    if owner is not None:
        return owner.tool
    return next((tool for item in revisions if (tool := _program(item.command))), "unknown")


def _has_manifest(folder: Path) -> bool:
    """Whether a project is there; ``~/.conda/envs`` is a directory of plain conda's, ``~/.pixi/envs`` pixi's own."""
    if any((folder / name).is_file() for name in ("conda.toml", "pixi.toml")):
        return True
    try:
        text = small_files.read(folder / "pyproject.toml") or b""
    except OSError:
        return False
    return b"[tool.conda." in text or b"[tool.pixi." in text


def _program(command: tuple[str, ...]) -> CondaTool | None:
    """The tool by the command line of a revision: its own program, or ``python …/site-packages/conda/__main__.py``."""
    for word in command[:3]:
        path = Path(word)
        name = path.parent.name if path.name == "__main__.py" else path.name
        if name in _PROGRAMS:
            return _PROGRAMS[name]
    return None
