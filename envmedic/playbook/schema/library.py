"""Listing of playbooks, and the YAML text of one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from envmedic.errors import InputError
from envmedic.model.base import Model
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.registries.faults import Fault

LISTING_SCHEMA: Final = "envmedic.playbooks/1"


class ListingEntry(Model, frozen=True, kw_only=True):
    """A line of ``envmedic playbooks list``."""

    id: str
    fault: Fault | None
    """None for a playbook about problems outside the environment."""
    title: str
    origin: str
    path: str


class Listing(Model, frozen=True, kw_only=True):
    """The document of ``envmedic playbooks list --json``."""

    schema: Literal["envmedic.playbooks/1"] = LISTING_SCHEMA
    playbooks: tuple[ListingEntry, ...]
    """Every playbook found, by id."""


def listing(playbooks: Iterable[LoadedPlaybook]) -> tuple[ListingEntry, ...]:
    """Return one entry for each playbook, sorted by id."""
    entries = (
        ListingEntry(
            id=loaded.playbook.id,
            fault=loaded.playbook.fault,
            title=loaded.playbook.title,
            origin=loaded.origin,
            path=loaded.path,
        )
        for loaded in playbooks
    )
    return tuple(sorted(entries, key=lambda entry: entry.id))


def source(loaded: LoadedPlaybook) -> str:
    """Return the YAML text of `loaded` from its file. Raises `InputError` if the file cannot be read."""
    try:
        return Path(loaded.path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the playbook {loaded.path} cannot be read",
            cause=str(error),
            hint="List the playbooks with `envmedic playbooks list`",
        ) from error
