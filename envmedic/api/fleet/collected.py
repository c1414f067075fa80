"""Use cases ``fleet survey``, ``drift`` and ``status``: documents of many machines, collected by what runs commands there.

A directory has a file for each machine, named after it: the document itself, or what ``ansible --tree`` wrote around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from envmedic.analysis.fleet import machines
from envmedic.analysis.fleet.machines import SentFacts, SentRecord
from envmedic.errors import InputError
from envmedic.locks import reading
from envmedic.model.answers.content import CONTENT_SCHEMA, Content
from envmedic.model.answers.fleet import Drift, FleetStatus, SilentNode, Survey
from envmedic.model.facts import FACTS_SCHEMA, Host, Interpreter
from envmedic.model.lock import Lock
from envmedic.model.record import ERROR_SCHEMA, RECORD_SCHEMA

_LARGEST = 64 << 20
"""Larger files than this are no documents of envmedic."""
T = TypeVar("T")
Sent = Callable[[], bytes]
"""Reads what a machine sent."""


class _Head(msgspec.Struct, frozen=True):
    """What tells the kind of a document, or what Ansible writes in place of one."""

    schema: str = ""
    stdout: str = ""
    msg: str = ""
    summary: str = ""


class _Environment(msgspec.Struct, frozen=True):
    interpreter: Interpreter


class _Facts(msgspec.Struct, frozen=True):
    host: Host
    environment: _Environment | None = None
    content: Content | None = None


class _Unusable(Exception):
    """A file from which nothing can be learnt; the text says why."""


class _Line(msgspec.Struct, frozen=True):
    """A line of results: a machine, and what it printed."""

    node: str
    document: msgspec.Raw = msgspec.Raw()


class SentDocument(msgspec.Struct, frozen=True):
    """What a machine sent."""

    part: SentFacts
    """What classes are made of."""
    data: bytes
    """The whole document, as JSON."""


def survey(folder: Path, expected: Path | None = None) -> Survey:
    """Return the classes of the machines whose facts are in `folder`. Raises InputError."""
    found, silent = _read(_files(folder), expected, _facts)
    return machines.survey(found, silent)


def documents(folder: Path, expected: Path | None = None) -> tuple[Mapping[str, SentDocument], tuple[SilentNode, ...]]:
    """Return the facts of the machines in `folder`, and the machines of which there are none. Raises InputError."""
    return _read(_files(folder), expected, lambda data: SentDocument(_facts(data), _document(data)[1]))


def records(folder: Path) -> tuple[Mapping[str, SentRecord], tuple[SilentNode, ...]]:
    """Return what machines printed for a plan, and those that printed nothing usable. Raises InputError."""
    return _read(_files(folder), None, _record)


def engine_of(words: str) -> tuple[str, str]:
    """Return the engine and its target, of ``ansible:hosts.ini``. Raises InputError."""
    name, _, target = words.partition(":")
    if name not in {"ansible", "slurm"} or not target:
        raise InputError(
            f"--on {words} names neither an inventory nor nodes", hint="Say ansible:hosts.ini, or slurm:gpu[1-64]"
        )
    return name, target


def collecting(engine: str, prefix: str | None, folder: Path, command: Sequence[str]) -> Survey:
    """Return a survey of no machine yet, with what collects its documents; `command` starts envmedic there.

    Raises InputError.
    """
    name, target = engine_of(engine)
    if prefix is None:
        raise InputError("The environment on the machines is not named", hint="Name its path with -p")
    return Survey(classes=(), command=machines.collecting(name, target, prefix, str(folder), command))


def drift(folder: Path, against: str | None, expected: Path | None = None) -> Drift:
    """Return which machines differ from one of them, from a document or lock, or (None) from the largest number of them.

    Raises InputError.
    """
    found, silent = _read(_files(folder), expected, _content)
    if not found:
        raise _nothing(folder)
    if against is None:
        digests = [item.digest for item in found.values()]
        against = max(sorted(found), key=lambda node: digests.count(found[node].digest))
    if against in found:
        return machines.drift(against, found[against], found, silent)
    return machines.drift(against, _wanted(against, folder), found, silent)


def _wanted(against: str, folder: Path) -> Content | Lock:
    """The content or the lock to compare with. Raises InputError."""
    try:
        return _content(_bytes(Path(against)))
    except _Unusable as error:
        if Path(against).is_file():
            return reading.read(Path(against))
        raise InputError(
            f"{against} is neither a machine in {folder} nor a file to compare with",
            cause=str(error),
            hint="Name a machine, a file from `envmedic facts --content --json`, or a lock",
        ) from error


def status(place: Path, expected: Path | None = None) -> FleetStatus:
    """Return how a plan ended, by documents in a directory or in a file of lines. Raises InputError."""
    found, silent = _read(_lines(place) if place.is_file() else _files(place), expected, _record)
    return machines.status(found, silent)


def _nothing(folder: Path) -> InputError:
    return InputError(
        f"No usable document is in {folder}",
        hint="Collect them first: `envmedic fleet survey --on ansible:HOSTS -p PREFIX DIR` prints the command",
    )


def _read(
    sent: Iterable[tuple[str, Sent]], expected: Path | None, decode: Callable[[bytes], T]
) -> tuple[Mapping[str, T], tuple[SilentNode, ...]]:
    """What each machine sent, and the machines of which nothing can be used; the last document of a machine counts."""
    found: dict[str, T] = {}
    silent: dict[str, str] = dict.fromkeys(_names(expected), "it sent nothing")
    for node, load in sent:
        found.pop(node, None)
        silent.pop(node, None)
        try:
            found[node] = decode(load())
        except _Unusable as error:
            silent[node] = str(error)
    return found, tuple(SilentNode(node=node, why=silent[node]) for node in sorted(silent))


def _names(expected: Path | None) -> tuple[str, ...]:
    """Names of machines, one on each line. Raises InputError."""
    if expected is None:
        return ()
    try:
        return tuple(expected.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The list {expected} cannot be read", cause=str(error), hint="Name a file of names"
        ) from error


def _files(folder: Path) -> Iterator[tuple[str, Sent]]:
    """The machines with a file in `folder`, each with its content. Raises InputError."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read", cause=error.strerror, hint="Name the directory with a document of each machine"
        ) from error
    yield from ((path.name.removesuffix(".json"), partial(_bytes, path)) for path in paths)


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise _Unusable("the file is too large for a document")
        return path.read_bytes()
    except OSError as error:
        raise _Unusable(error.strerror or str(error)) from error


def _lines(path: Path) -> Iterator[tuple[str, Sent]]:
    """The documents in a file with one line for each result. Raises InputError for one that cannot be read.

    A last line that was cut off, as by a crash of who wrote it, is left out.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path} cannot be read", cause=error.strerror, hint="Name the file of results") from error
    for number, line in enumerate(lines, start=1):
        found = _line(line, f"{path}:{number}", last=number == len(lines))
        if found is not None:
            yield found.node, partial(bytes, found.document)


def _line(line: bytes, where: str, *, last: bool) -> _Line | None:
    if not line.strip():
        return None
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if last:
            return None
        raise InputError(
            f"{where} is no result",
            cause=str(error),
            hint='Each line is {"node": NAME, "document": what `envmedic apply --json` printed there}',
        ) from error


def _document(data: bytes) -> tuple[_Head, bytes]:
    """The head of a document, and the document, without what Ansible wrote around it."""
    if not data.strip():
        raise _Unusable("the document is empty")
    try:
        head = msgspec.json.decode(data, type=_Head)
        if not head.schema and head.stdout:
            data = head.stdout.encode()
            head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Unusable(f"it is no document: {error}") from error
    if not head.schema:
        raise _Unusable(head.msg or "it is no document of envmedic")
    return head, data


def _decoded(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Unusable(f"it is damaged, or of another version of envmedic: {error}") from error


def _facts(data: bytes) -> SentFacts:
    head, data = _document(data)
    if head.schema != FACTS_SCHEMA:
        raise _Unusable(head.summary or f"it is {head.schema}, not {FACTS_SCHEMA}")
    found = _decoded(data, _Facts)
    if found.environment is None or found.content is None:
        raise _Unusable("its facts are without an environment, or of a version of envmedic before `facts --content`")
    return SentFacts(found.host, found.environment.interpreter, found.content)


def _content(data: bytes) -> Content:
    head, body = _document(data)
    return _decoded(body, Content) if head.schema == CONTENT_SCHEMA else _facts(data).content


def _record(data: bytes) -> SentRecord:
    head, data = _document(data)
    if head.schema not in {RECORD_SCHEMA, ERROR_SCHEMA}:
        raise _Unusable(f"it is {head.schema}, not what `envmedic apply --json` prints")
    return _decoded(data, SentRecord)
