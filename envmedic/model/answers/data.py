"""The compatibility tables in use: the answer of ``envmedic data``."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model

DATA_SCHEMA: Final = "envmedic.data/1"


class IgnoredFile(Model, frozen=True, kw_only=True):
    """A data file that is not used."""

    path: str
    reason: str
    """Why."""
    damaged: bool
    """Whether it should have been usable; one that is merely older is not."""


class Data(Model, frozen=True, kw_only=True):
    """The document of ``envmedic data status|update|pin --json``."""

    schema: Literal["envmedic.data/1"] = DATA_SCHEMA
    version: str
    """Of the tables in use."""
    origin: Literal["shipped", "installed", "fetched"]
    """``shipped`` with envmedic, ``installed`` beside it as `envmedic-data`, or ``fetched`` by `envmedic data update`."""
    path: str | None = None
    """The data file, null for the shipped tables."""
    sha256: str | None = None
    """Of that file."""
    shipped: str
    """Version of the shipped tables."""
    pinned: str | None = None
    """The version that is pinned, null without a pin."""
    tables: dict[str, str]
    """The day (ISO 8601) on which each table was written."""
    newest_torch: str
    """The newest torch release in the tables."""
    directory: str
    """Where data files are kept."""
    ignored: tuple[IgnoredFile, ...] = ()
    """Files that are not used, and why."""
    changed: bool = False
    """Whether this command has changed which tables are used."""
    told: str = ""
    """What the command did, in a sentence; empty for `status`."""
