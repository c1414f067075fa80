"""The answer to ``envmedic check``: would a requirement work in this environment, on this host."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.plan import Change

CHECK_SCHEMA: Final = "envmedic.check/1"

# `needs-build` is neither yes nor no: it depends on a compiler and a CUDA toolkit, so it has no exit code 0.
Verdict = Literal["works", "works-with-changes", "needs-build", "does-not-work"]


class Consideration(Model, frozen=True, kw_only=True):
    """One thing that the answer rests on."""

    speaks: Literal["for", "against", "note"]
    """An argument for the requirement, one against it, or a note."""
    text: str
    """What it is."""
    source: str = ""
    """Where that is known from."""


class WheelsTogether(Model, frozen=True, kw_only=True):
    """Whether wheels of all that is asked for exist for one torch, where no way to install it was found."""

    lacking: tuple[str, ...] = ()
    """Which have no wheel here, or none together, a sentence each."""
    nearest: tuple[str, ...] = ()
    """The nearest set that has wheels, as exact versions with torch first; empty where none is known."""
    without_wheel: tuple[str, ...] = ()
    """Distributions that have no wheel here in any version: they must be left out or built."""
    build: str | None = None
    """What a build takes, instead of another set; null where that is not known."""


class Compatibility(Model, frozen=True, kw_only=True):
    """The document of ``envmedic check --json``."""

    schema: Literal["envmedic.check/1"] = CHECK_SCHEMA
    prefix: str
    """The environment."""
    requirements: tuple[str, ...]
    """As they were asked."""
    verdict: Verdict
    """``works-with-changes``: other distributions would change, and nothing would break by it."""
    summary: str
    """The answer in one sentence."""
    considerations: tuple[Consideration, ...] = ()
    """What it rests on."""
    changes: tuple[Change, ...] = ()
    """What installing it would install or change; nothing has been."""
    breaks: tuple[str, ...] = ()
    """What would no longer work, a sentence each."""
    variant: str | None = None
    """CUDA variant to take, null where there is none to choose."""
    index: str | None = None
    """URL of the index, page or directory to take it from, null for the one that is configured."""
    together: WheelsTogether | None = None
    """What is known of the set, null where a way was found or nothing of it is in the tables."""
    command: tuple[str, ...] = ()
    """How to install it by hand, with exact versions; empty where that would not work."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""

    @property
    def yes(self) -> bool:
        """Whether the answer is yes."""
        return self.verdict in {"works", "works-with-changes"}
