"""What a package manager's command line would do to an environment, and whether that harms it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.plan import Change

GUARD_SCHEMA: Final = "envmedic.guard/1"

GuardVerdict = Literal["harmless", "undoes-repair", "breaks", "fails", "unanswered"]
HarmKind = Literal[
    "undoes-repair", "constraint", "pin", "requirement", "torch-family", "bound", "second-owner", "environment"
]
PackageTool = Literal["pip", "uv", "conda", "mamba", "micromamba", "poetry", "pdm", "pixi"]


@dataclass(frozen=True)
class PipCommand:
    """A parsed ``pip install`` or ``pip uninstall``, or uv's equivalent."""

    tool: Literal["pip", "uv"]
    verb: Literal["install", "uninstall", "sync"]
    requirements: tuple[str, ...] = ()
    """Requirements, URLs and paths as they were written; of ``sync`` the files."""
    files: tuple[str, ...] = ()
    """Requirements files."""
    editables: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    """Files."""
    upgrade: Literal["no", "named", "all"] = "no"
    """``named``: only the named requirements, pip's default strategy."""
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False
    only_wheels: bool = False
    """Whether source archives are out of the question anyway."""
    isolated: bool = False
    """Whether pip reads neither its files nor its variables."""
    options: tuple[str, ...] = ()
    """Further options for uv's dry run, each with its value joined by ``=``."""
    sources: tuple[str, ...] = ()
    """Those of `options` that say where distributions come from, and which."""
    python: str | None = None
    """The interpreter that the command names."""
    user: bool = False
    """Whether it installs into the user's own site-packages."""


@dataclass(frozen=True)
class CondaCommand:
    """A parsed ``conda install``, ``update`` or ``remove``, or the equivalent of mamba or micromamba."""

    tool: PackageTool
    verb: Literal["install", "update", "remove"]
    specs: tuple[str, ...] = ()
    """Match specs, of ``remove`` names."""
    channels: tuple[str, ...] = ()
    """Given with ``-c``, strongest first."""
    override_channels: bool = False
    offline: bool = False
    options: tuple[str, ...] = ()
    """Further options for its dry run."""
    name: str | None = None
    prefix: str | None = None
    files: tuple[str, ...] = ()
    """Files with specs, a line each."""
    environment_file: str | None = None
    """The ``environment.yml`` that ``conda env update`` follows."""
    prune: bool = False
    """Whether packages go that the file does not ask for."""


@dataclass(frozen=True)
class ProjectCommand:
    """A command that follows manifest and lock of a project, or writes them."""

    tool: PackageTool
    verb: str
    words: tuple[str, ...] = ()
    """What is given beside the verb."""

    @property
    def files_alone(self) -> bool:
        """Whether it writes manifest or lock, and leaves the environment to the next sync."""
        writes = self.verb in {"add", "remove", "update"} and not _FILES_ALONE.isdisjoint(self.words)
        return self.verb == "lock" or (writes and self.tool != "pixi")


_FILES_ALONE = frozenset({"--no-sync", "--lock", "--frozen"})
"""Options of uv, poetry and PDM; each has the one or two that it knows."""


@dataclass(frozen=True)
class OtherPlaceCommand:
    """A command that leaves every environment as it is, or makes another one."""

    tool: PackageTool
    why: str
    """What it changes in its place, as a sentence's end."""
    name: str | None = None
    prefix: str | None = None
    """The environment that it makes or removes, by name or place; None where it is about none."""


# Dataclasses, not models: parsed commands are not part of a document. `Guard.command` has the words as given.
GuardedCommand = PipCommand | CondaCommand | ProjectCommand | OtherPlaceCommand


class Harm(Model, frozen=True, kw_only=True):
    """One reason against the command."""

    kind: HarmKind
    """``bound``: it is compiled for the replaced torch. ``second-owner``: pip and conda would both own it.

    ``environment``: the environment itself would be removed or made anew.
    """
    name: str
    """The distribution or package that is harmed."""
    text: str
    """What would happen, in one sentence."""
    source: str = ""
    """Where that is known from: a transaction, a file, metadata, the address of a rule."""


class Guard(Model, frozen=True, kw_only=True):
    """The document of ``envmedic guard --json``."""

    schema: Literal["envmedic.guard/1"] = GUARD_SCHEMA
    prefix: str
    """The environment."""
    command: tuple[str, ...]
    """As it was given, in words, without credentials."""
    tool: PackageTool
    """Whose command it is."""
    verdict: GuardVerdict
    """``fails``: it would end in an error and change nothing. ``unanswered``: only carrying it out would tell."""
    summary: str
    """The answer in one sentence."""
    transaction: str | None = None
    """The last repair of the environment, null where there is none."""
    changes: tuple[Change, ...] = ()
    """What it would install, change or remove; nothing has been."""
    harms: tuple[Harm, ...] = ()
    """What speaks against it, the repair first."""
    notes: tuple[str, ...] = ()
    """What else there is to know."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""

    @property
    def ok(self) -> bool:
        """Whether it is known that the command harms nothing."""
        return self.verdict == "harmless"
