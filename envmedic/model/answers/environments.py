"""The environments that were found on this machine."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.conda import CondaTool
from envmedic.model.facts import EnvironmentKind

ENVIRONMENTS_SCHEMA: Final = "envmedic.envs/1"


class FoundEnvironment(Model, frozen=True, kw_only=True):
    """An environment as its files tell, without starting its Python."""

    prefix: str
    name: str | None = None
    """What ``-n`` takes; null for one that is named by its prefix only."""
    kind: EnvironmentKind
    tool: CondaTool | None = None
    """What owns it, of conda's environments."""
    # An interpreter is not started for a list: a broken one may hang, and there may be many.
    python: str | None = None
    """Version of its Python, as far as its files tell: ``3.11.7`` or ``3.11``; null where it has none."""
    torch: str | None = None
    """Version of its torch, by the name of its metadata."""
    active: bool = False
    """Whether it is the one that commands take without ``-n`` and ``-p``."""
    base: bool = False
    """Whether conda itself is installed in it."""
    found_by: str
    """Where it is listed: ``envs_dirs``, ``environments.txt``, ``installation``, ``project``, ``pixi global``,
    ``working directory``, the variable that names it, or the tool that keeps it there."""


class Environments(Model, frozen=True, kw_only=True):
    """The document of ``envmedic envs --json``."""

    schema: Literal["envmedic.envs/1"] = ENVIRONMENTS_SCHEMA
    environments: tuple[FoundEnvironment, ...] = ()
    """Environments that ``-n`` finds first, then by the place of discovery."""
    gone: tuple[str, ...] = ()
    """Prefixes that conda lists, or that a variable names, and at which there is no environment."""
