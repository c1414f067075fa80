"""What stands outside of an environment about it: its project, and limits on versions in constraints, manifests, locks."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model

PinKind = Literal["constraint", "requirement", "variant", "lock"]


class UserPin(Model, frozen=True, kw_only=True):
    """One statement of the user about one distribution."""

    requirement: str
    """PEP 508, with its marker."""
    source: str
    """File and line, or the variable that holds it."""
    # `requirements-cpu.txt` beside `requirements-gpu.txt`: only one of them is about this environment
    kind: PinKind
    """A constraint limits what is installed, a requirement and a lock also ask for it.

    A variant is a requirement of a file that need not be about this environment.
    """


ProjectTool = Literal["uv", "poetry", "pdm", "hatch", "pixi", "conda-workspaces", "conda-lock", "conda", "pip"]


class LiftedPin(Model, frozen=True, kw_only=True):
    """A pin of the user that a plan walks around, since no plan keeps it and ``--allow pinned`` was given."""

    pin: str
    """What it says: a requirement without marker and extras, or a match spec of conda."""
    source: str
    """File and line, or the variable that holds it."""
    kind: Literal["constraint", "requirement", "variant", "conda"]
    """Whose it is: conda's, or of `UserPin.kind`."""
    instead: str | None = None
    """What has to stand in its place for the repair to stay; null where it has to go. envmedic does not edit it."""


class ProjectSource(Model, frozen=True, kw_only=True):
    """Where the manifest says that a distribution comes from, instead of the default index."""

    name: str
    """Of the distribution."""
    kind: Literal["index", "git", "url", "path", "workspace"]
    value: str
    """Name of the index, URL without credentials, or path; empty for a member of the workspace."""


class ProjectIndex(Model, frozen=True, kw_only=True):
    """An index that the manifest lists."""

    name: str
    url: str
    """Without credentials."""
    explicit: bool = False
    """Whether only those distributions come from it whose source names it."""
    default: bool = False


class Project(Model, frozen=True, kw_only=True):
    """The project that an environment belongs to, by the files of its directory."""

    tool: ProjectTool
    folder: str
    manifest: str | None = None
    """Name of the file that people edit; None without one."""
    lock: str | None = None
    """Name of the file with exact versions; None without one."""
    sync: tuple[str, ...] = ()
    """Command that makes the environment as the lock says; empty where no command of the tool changes this one."""
    exact: bool = False
    """Whether it also removes what the lock does not have."""
    groups: tuple[str, ...] = ()
    """Names of the groups of dependencies, and of the extras."""
    sources: tuple[ProjectSource, ...] = ()
    indexes: tuple[ProjectIndex, ...] = ()


class NextSync(Model, frozen=True, kw_only=True):
    """What the project's own tool would do to an environment after a repair."""

    command: tuple[str, ...]
    """The command that does it."""
    folder: str
    """Where it is run."""
    undoes: tuple[str, ...] = ()
    """What it would change back, with the place that says so; empty where the repair is as the lock says."""
    known: bool = True
    """Whether the versions that the project wants are known; without them it may undo the repair."""
    keeps: tuple[str, ...] = ()
    """Command that lets manifest and lock agree with the repair."""
    more: tuple[tuple[str, ...], ...] = ()
    """Commands that belong to it, where several groups or members of a workspace ask for what was repaired."""
    unedited: str = ""
    """Why envmedic does not offer to make that change itself; empty where it does, or where there is no command."""


class EditedFile(Model, frozen=True, kw_only=True):
    """A file of a project as an edit leaves it."""

    name: str
    """Relative to the folder."""
    before_sha256: str
    after_sha256: str
    after: str
    """Its whole text."""
    diff: str
    """What changes: a unified diff, of a lock the releases by name."""


class ProjectEdit(Model, frozen=True, kw_only=True):
    """Manifest and lock that agree with a repair, made by the project's own tool in a copy of the project."""

    folder: str
    command: tuple[str, ...]
    """What the tool was asked; in the folder it would do the same."""
    more: tuple[tuple[str, ...], ...] = ()
    """What it was asked after that, where several groups or members of a workspace ask for what was repaired."""
    files: tuple[EditedFile, ...]


class FileDifference(Model, frozen=True, kw_only=True):
    """A file of a project that was edited after a repair had written it, and that an undo or redo therefore left."""

    name: str
    since: str = ""
    """Of an undo: a unified diff from what the repair wrote to what stands there."""
    left_out: str
    """What was not done. Of an undo: a unified diff from what the repair wrote to what was there before it; of a repair
    or a redo: from what stands there to what was to be written."""
