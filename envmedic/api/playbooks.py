"""Playbooks: which there are, one of them, and the mistakes of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envmedic.api.settings import Settings
from envmedic.errors import InvalidPlaybook
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook import library, loader


def is_playbook_file(reference: str) -> bool:
    """Whether ``--playbook`` names a file rather than an id."""
    return loader.is_path(reference)


def load_playbooks(settings: Settings) -> tuple[LoadedPlaybook, ...]:
    """Every playbook: shipped, the user's, and those named as files."""
    return loader.load_all(tuple(Path(name) for name in settings.playbook_files))


def find_playbook(settings: Settings, reference: str) -> LoadedPlaybook:
    """The playbook with this id or file. Raises UnknownPlaybook."""
    return loader.find(reference, load_playbooks(settings))


def list_playbooks(settings: Settings) -> library.Listing:
    """Every playbook found, by id."""
    return library.Listing(playbooks=library.listing(load_playbooks(settings)))


def show_playbook(settings: Settings, reference: str) -> tuple[LoadedPlaybook, str]:
    """The playbook with this id or file, and its YAML."""
    found = find_playbook(settings, reference)
    return found, library.source(found)


def validate_playbooks(files: Sequence[str]) -> tuple[str, ...]:
    """Every mistake of every file, as ``file:line:column: key: message``."""
    return tuple(mistake for name in files for mistake in _mistakes(Path(name)))


def _mistakes(path: Path) -> tuple[str, ...]:
    try:
        loader.load_file(path, "file")
    except InvalidPlaybook as error:
        return error.details
    return ()


def playbook_schema() -> dict[str, object]:
    """The JSON schema of playbooks."""
    from envmedic.playbook.schema import schema  # noqa: PLC0415  # loads a schema library

    return schema()
