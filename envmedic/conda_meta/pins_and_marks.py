"""Pins, the mark of a frozen environment, and the owning tool of an environment, from files in ``conda-meta``."""

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
"""Files that pixi writes into each environment of a project."""
_PROGRAMS: dict[str, CondaTool] = {"conda": "conda", "mamba": "mamba", "micromamba": "micromamba", "pixi": "pixi"}


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The mark of an environment that must not be changed."""

    message: str | None = None
    """The maker's text for people who want to change it (CEP 22); None without one."""


class _Mark(msgspec.Struct):
    message: str | None = None


def pinned(prefix: Path) -> tuple[str, ...]:
    """Specs in ``conda-meta/pinned``. Raises OSError."""
    return pins((small_files.read(prefix / PINNED) or b"").decode("utf-8", "replace"))


def pins(text: str) -> tuple[str, ...]:
    """Return the specs in a file of pins: one on each line, comments ignored, as conda reads it."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def frozen(prefix: Path) -> Frozen | None:
    """Return the mark of a frozen environment, None without one. Raises OSError.

    The file is empty or JSON with a message (https://conda.org/learn/ceps/cep-0022).
    """
    data = small_files.read(prefix / FROZEN)
    if data is None:
        return None
    try:
        return Frozen(message=msgspec.json.decode(data, type=_Mark).message or None)
    except msgspec.DecodeError:
        # the existence of the file is the mark; a text that is no JSON is shown to the user as it is
        text = data.decode("utf-8", "replace").strip()
        return Frozen(message=text or None)


class CondaProject(msgspec.Struct, frozen=True, kw_only=True):
    """The project whose tool keeps an environment equal to its manifest and lock."""

    tool: Literal["pixi", "conda-workspaces"]
    folder: str | None
    """The project's directory, None for a tool's own environments (``pixi global``) and where it is unknown."""
    environment: str
    """The name by which the tool knows the environment."""


class _Pixi(msgspec.Struct):
    manifest_path: str | None = None
    environment_name: str | None = None


def project(prefix: Path) -> CondaProject | None:
    """Return the project that owns an environment, from its path and the files of pixi; None without one."""
    # both tools put environments at PROJECT/.TOOL/envs/NAME
    root = prefix.parent.parent.parent
    within = prefix.parent.parts[-2:]
    if within == (".pixi", "envs") or any((prefix / name).exists() for name in PIXI):
        try:
            stated = msgspec.json.decode(small_files.read(prefix / PIXI[0]) or b"{}", type=_Pixi)
        except (OSError, msgspec.DecodeError):
            stated = _Pixi()  # a newer pixi may write other content; the path still names the project
        by_path = str(root) if within == (".pixi", "envs") and _has_manifest(root) else None
        # the manifest counts first: pixi can put environments outside the project (`detached-environments`)
        folder = str(Path(stated.manifest_path).parent) if stated.manifest_path else by_path
        return CondaProject(tool="pixi", folder=folder, environment=stated.environment_name or prefix.name)
    if within == (".conda", "envs") and _has_manifest(root):
        return CondaProject(tool="conda-workspaces", folder=str(root), environment=prefix.name)
    return None


def made_by(prefix: Path, revisions: tuple[Revision, ...]) -> CondaTool:
    """Return the tool that owns an environment: its project's, else the program of its first known revision."""
    owner = project(prefix)
    if owner is not None:
        return owner.tool
    return next((tool for item in revisions if (tool := _program(item.command))), "unknown")


def _has_manifest(folder: Path) -> bool:
    """Whether `folder` is a project of pixi or conda-workspaces."""
    # needed besides the path: `~/.conda/envs` belongs to plain conda, and `~/.pixi/envs` to `pixi global`
    if any((folder / name).is_file() for name in ("conda.toml", "pixi.toml")):
        return True
    try:
        text = small_files.read(folder / "pyproject.toml") or b""
    except OSError:
        return False
    return b"[tool.conda." in text or b"[tool.pixi." in text


def _program(command: tuple[str, ...]) -> CondaTool | None:
    """Return the tool in the command line of a revision."""
    # conda writes sys.argv: its program, or `python …/site-packages/conda/__main__.py`; mamba writes `mamba create`
    for word in command[:3]:
        path = Path(word)
        name = path.parent.name if path.name == "__main__.py" else path.name
        if name in _PROGRAMS:
            return _PROGRAMS[name]
    return None
