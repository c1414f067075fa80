"""Use cases on playbooks: list, show, copy, validate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import envmedic
from envmedic.api.context.settings import Settings
from envmedic.errors import InputError, InvalidPlaybook
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.schema import library, loader


def is_playbook_file(reference: str) -> bool:
    """Whether ``--playbook`` names a file rather than an id."""
    return loader.is_path(reference)


def load_playbooks(settings: Settings) -> tuple[LoadedPlaybook, ...]:
    """Return every playbook: shipped, the user's, and those given as files."""
    return loader.load_all(tuple(Path(name) for name in settings.playbook_files))


def find_playbook(settings: Settings, reference: str) -> LoadedPlaybook:
    """Return the playbook with this id or file. Raises UnknownPlaybook."""
    return loader.find(reference, load_playbooks(settings))


def list_playbooks(settings: Settings) -> library.Listing:
    """Return the listing of all playbooks, by id."""
    return library.Listing(playbooks=library.listing(load_playbooks(settings)))


@dataclass(frozen=True)
class PlaybookSurvey:
    """Every valid playbook, and the error of each invalid file."""

    playbooks: tuple[LoadedPlaybook, ...]
    invalid: tuple[InvalidPlaybook, ...]


def survey_playbooks(settings: Settings) -> PlaybookSurvey:
    """Return the valid playbooks even if other files are invalid."""
    return PlaybookSurvey(*loader.survey(tuple(Path(name) for name in settings.playbook_files)))


def own_playbook_files() -> tuple[Path, ...]:
    """The files of the user's own directory of playbooks. Raises InputError where it cannot be listed."""
    return tuple(path for path, origin in loader.playbook_files() if origin == "user")


def copy_playbook(settings: Settings, reference: str) -> Path:
    """Copy a playbook into the user's directory, where it replaces the shipped one with its id.

    Returns the new file. Raises InputError if it exists already or cannot be written.
    """
    found, text = show_playbook(settings, reference)
    path = loader.user_directory() / f"{found.playbook.id}.yaml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # "x": an edited copy is never overwritten
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        hint = "Edit the one that is there" if isinstance(error, FileExistsError) else "Make the directory writable"
        raise InputError(f"The playbook cannot be copied to {path}", cause=error.strerror, hint=hint) from error
    return path


def show_playbook(settings: Settings, reference: str) -> tuple[LoadedPlaybook, str]:
    """Return the playbook with this id or file, and its YAML."""
    found = find_playbook(settings, reference)
    return found, library.source(found)


def validate_playbooks(files: Sequence[str]) -> tuple[str, ...]:
    """Return every mistake of all files, as ``file:line:column: key: message``."""
    return tuple(mistake for name in files for mistake in _mistakes(Path(name)))


def _mistakes(path: Path) -> tuple[str, ...]:
    try:
        loader.load_file(path, "file")
    except InvalidPlaybook as error:
        return error.details
    except InputError as error:
        return (f"{path}:1:1: {error.cause}",)
    return ()


def playbook_schema() -> dict[str, object]:
    """Return the shipped JSON schema of playbooks."""
    text = (Path(envmedic.__file__).parent / "schemas" / "playbook-1.json").read_bytes()
    document: dict[str, object] = msgspec.json.decode(text)
    return document
