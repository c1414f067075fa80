"""Search, loading and validation of playbooks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

import envmedic
from envmedic import xdg
from envmedic.errors import InputError, InvalidPlaybook, UnknownPlaybook
from envmedic.model.playbook import LoadedPlaybook, Playbook
from envmedic.playbook.schema import cache
from envmedic.playbook.schema.document import read_document
from envmedic.playbook.schema.mistakes import START, PlaybookMistake, Position, suggestion
from envmedic.playbook.schema.schema import schema_mistakes

Origin = Literal["shipped", "user", "file"]
SIZE_LIMIT_BYTES = 200_000
"""Ten times the largest shipped playbook. ruamel.yaml takes some fifteen seconds for a million bytes."""
SUFFIXES = (".yaml", ".yml")


def load_file(path: str | Path, origin: Origin = "file") -> LoadedPlaybook:
    """Return the playbook in `path`.

    Raises `InvalidPlaybook` with all mistakes, and `InputError` if the file cannot be read.
    """
    file = Path(path)
    content = _content(file)
    shipped_as = file.stem if origin == "shipped" else None
    # by content and not by path and time: an edited file never yields its former playbook
    key = cache.cache_key(content, shipped_as)
    playbook = cache.read_playbook(key)
    if playbook is None:
        playbook = parse(content, str(path), shipped_as=shipped_as)
        cache.write_playbook(key, playbook)
    digest = hashlib.sha256(content).hexdigest()
    return LoadedPlaybook(playbook=playbook, path=str(path), sha256=digest, origin=origin)


def parse(content: bytes, file: str, *, shipped_as: str | None = None) -> Playbook:
    """Return the playbook in the YAML text `content`; mistakes name `file`.

    `shipped_as` is the stem of a shipped playbook's file, which must equal the id. Raises `InvalidPlaybook` with
    every mistake.
    """
    playbook, mistakes = _validated(content, shipped_as)
    if playbook is None:
        raise _invalid([mistake.render(file) for mistake in mistakes], (file,))
    return playbook


def _validated(content: bytes, shipped_as: str | None) -> tuple[Playbook | None, list[PlaybookMistake]]:
    if len(content) > SIZE_LIMIT_BYTES:
        return None, [PlaybookMistake(START, (), f"larger than {SIZE_LIMIT_BYTES} bytes, which no playbook is")]
    # this loads ruamel.yaml, which a cached playbook does not need
    from envmedic.playbook.schema.semantics import semantic_mistakes

    document, mistakes = read_document(content)
    if document is None:
        return None, mistakes
    refused = {mistake.path for mistake in mistakes if mistake.path}
    further = [*schema_mistakes(document), *semantic_mistakes(document, shipped_as=shipped_as)]
    # one mistake per cause: the schema would also complain about a value that the reader refused
    mistakes += [mistake for mistake in further if not any(mistake.path[: len(path)] == path for path in refused)]
    if mistakes:
        unique = dict.fromkeys(mistakes)
        # mistakes of the whole document come after those of a key at the same position
        return None, sorted(unique, key=lambda mistake: (mistake.position, mistake.path == ()))
    try:
        return msgspec.convert(document.plain, Playbook), []
    except msgspec.ValidationError as error:
        return None, [PlaybookMistake(Position(1, 1), (), str(error))]


def _content(file: Path) -> bytes:
    try:
        # one byte more than allowed shows that a file is too large, without reading all of it
        with file.open("rb") as stream:
            return stream.read(SIZE_LIMIT_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"the playbook {file} cannot be read",
            cause=error.strerror or str(error),
            hint="Give the path of a YAML file, or an id that `envmedic playbooks list` shows",
        ) from error


def _invalid(details: Sequence[str], files: Sequence[str]) -> InvalidPlaybook:
    count = f"{len(details)} mistake" + ("s" if len(details) > 1 else "")
    return InvalidPlaybook(
        f"{', '.join(files)}: {count}",
        cause=details[0],
        hint=f"Correct {'them' if len(details) > 1 else 'it'}, then run `envmedic playbooks validate {files[0]}`",
        details=tuple(details),
    )


def shipped_directory() -> Path:
    """Return the directory of the shipped playbooks: in the installed package, or at the root of a checkout."""
    package = Path(envmedic.__file__).resolve().parent
    installed = package / "shipped_playbooks"
    return installed if installed.is_dir() else package.parent / "playbooks"


def user_directory() -> Path:
    """Return the directory of the user's playbooks: ``$XDG_CONFIG_HOME/envmedic/playbooks``."""
    return xdg.config() / "envmedic" / "playbooks"


def playbook_files(extra: Iterable[str | Path] = ()) -> tuple[tuple[Path, Origin], ...]:
    """Return every playbook file with its origin: shipped, the user's, then `extra`."""
    found: list[tuple[Path, Origin]] = [(path, "shipped") for path in _yaml_files(shipped_directory())]
    found += [(path, "user") for path in _yaml_files(user_directory())]
    return (*found, *((Path(path), "file") for path in extra))


def _yaml_files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    try:
        found = sorted(
            path for path in directory.iterdir() if path.suffix in SUFFIXES and not path.name.startswith(".")
        )
        # without FIFOs, whose reading would block; dangling links stay, since their error should be shown
        return [path for path in found if path.is_file() or not path.exists()]
    except OSError as error:
        raise InputError(
            f"the playbooks in {directory} cannot be listed",
            cause=error.strerror or str(error),
            hint="Make the directory readable or remove it",
        ) from error


def survey(extra: Iterable[str | Path] = ()) -> tuple[tuple[LoadedPlaybook, ...], tuple[InvalidPlaybook, ...]]:
    """Return every valid playbook, and the error of each invalid file.

    A playbook given as a file replaces the user's playbook of the same id, which replaces the shipped one.
    """
    loaded: dict[str, LoadedPlaybook] = {}
    errors: list[InvalidPlaybook] = []
    for path, origin in playbook_files(extra):
        try:
            playbook = load_file(path, origin)
        except InvalidPlaybook as error:
            errors.append(error)
            continue
        former = loaded.get(playbook.playbook.id)
        # two files of one origin have no order that the user chose, so neither may win silently
        if former is not None and former.origin == origin and former.path != playbook.path:
            message = f"{path}:1:1: id: {playbook.playbook.id} is the id of {former.path} too"
            errors.append(_invalid([message], (str(path),)))
            continue
        loaded[playbook.playbook.id] = playbook
    return tuple(loaded.values()), tuple(errors)


def load_all(extra: Iterable[str | Path] = ()) -> tuple[LoadedPlaybook, ...]:
    """Return every playbook, shipped ones first. Raises `InvalidPlaybook` with the mistakes of all files."""
    loaded, errors = survey(extra)
    if not errors:
        return loaded
    if len(errors) == 1:
        raise errors[0]
    details = [line for error in errors for line in error.details]
    raise _invalid(details, [error.summary.rpartition(": ")[0] for error in errors])


def is_path(ref: str) -> bool:
    """Whether `ref` names a file rather than an id."""
    return os.sep in ref or ref.endswith(SUFFIXES)


def find(ref: str, playbooks: Iterable[LoadedPlaybook]) -> LoadedPlaybook:
    """Return the playbook with the id `ref`, or from the file `ref`. Raises `UnknownPlaybook` with near matches."""
    if is_path(ref):
        return load_file(ref, "file")
    known = {loaded.playbook.id: loaded for loaded in playbooks}
    if ref in known:
        return known[ref]
    raise UnknownPlaybook(
        f"there is no playbook {ref}{suggestion(ref, known)}",
        cause=f"Known are: {', '.join(sorted(known)) or 'none'}",
        hint="List them with `envmedic playbooks list`, or give the path of a YAML file",
    )
