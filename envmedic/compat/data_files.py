"""Data files: compatibility tables of their own version, which a user fetches between releases of envmedic.

A data file is one JSON document. It brings rows of `table_rows` and nothing else: its texts have the forms that these
types state, and there is no place in it for code, for the address of an index, for a path or for a command. It counts
where it is newer than the shipped tables, or pinned; one that is older or cannot be read is ignored, and said to be.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

import envmedic
from envmedic import safe_io, xdg
from envmedic.compat import table_forms, versions
from envmedic.model.base import Model

SCHEMA = "envmedic.tables/1"
DISTRIBUTION = "envmedic-data"
MEMBER = "envmedic_data/tables.json"
"""The data file in a wheel of `DISTRIBUTION`, and below site-packages where that is installed beside envmedic."""
LARGEST = 8 << 20
"""Bytes of a data file; the tables of 2026 have 0.4 million."""
PIN = "pin"
_LARGEST_PIN = 64
_VERSION = re.compile(r"\d{4}\.\d{1,2}\.\d{1,2}(?:\.\d{1,4})?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(rf"({_VERSION.pattern})-([0-9a-f]{{64}})\.json")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

Origin = Literal["shipped", "installed", "fetched"]


class NotUsable(ValueError):
    """Why a file is no data file that can be used; the message is a sentence without its end."""


class DataFile(Model, frozen=True, kw_only=True):
    """A data file that was read."""

    version: str
    sha256: str
    days: dict[str, str]
    """The day (ISO 8601) on which each table was written."""
    tables: dict[str, Any]


class Ignored(Model, frozen=True, kw_only=True):
    """A file in a place of data files that is not used."""

    path: str
    reason: str
    damaged: bool
    """Whether it should have been usable; an older one merely is not."""


class Chosen(Model, frozen=True, kw_only=True):
    """The tables in use."""

    found: DataFile | None = None
    """None for the shipped tables."""
    origin: Origin = "shipped"
    path: str | None = None
    pinned: str | None = None
    """The version that the user pinned, in use or not."""
    ignored: tuple[Ignored, ...] = ()


class _Document(msgspec.Struct, frozen=True):
    schema: str
    version: str = ""
    tables: dict[str, msgspec.Raw] = {}


class _Meta(msgspec.Struct, frozen=True):
    generated: str


class _Dated(msgspec.Struct, frozen=True):
    meta: _Meta


def version_of(day: str) -> str:
    """Return the version of tables that were written on a day (ISO 8601): ``2026.11.4``."""
    return ".".join(str(int(part)) for part in day.split("-"))


def is_version(text: str) -> bool:
    """Whether `text` is the version of a data file."""
    return _VERSION.fullmatch(text) is not None


def _require_version(text: str) -> None:
    if not is_version(text):
        raise NotUsable(f"{text[:60]!r} is no version of a data file")


def parse(content: bytes, kinds: Mapping[str, type[Any]]) -> DataFile:
    """Return the data file that `content` is. Raises `NotUsable`."""
    if len(content) > LARGEST:
        raise NotUsable(f"it has more than {LARGEST} bytes")
    try:
        document = msgspec.json.decode(content, type=_Document)
        if document.schema != SCHEMA:
            raise NotUsable(f"its schema is {document.schema[:60]!r}, and this envmedic reads {SCHEMA}")
        _require_version(document.version)
        missing = sorted(set(kinds) - set(document.tables))
        if missing:
            raise NotUsable(f"it lacks the tables {', '.join(missing)}")
        raw = {name: bytes(document.tables[name]) for name in kinds}
        tables = {name: msgspec.json.decode(raw[name], type=kind) for name, kind in kinds.items()}
        days = {name: msgspec.json.decode(raw[name], type=_Dated).meta.generated for name in kinds}
        wrong = [table_forms.misshapen(msgspec.json.decode(content)) for content in raw.values()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotUsable(str(error) or type(error).__name__) from error
    wrong += [f"{day[:60]!r} is no day" for day in days.values() if not _DAY.fullmatch(day)]
    if any(wrong):
        raise NotUsable(next(text for text in wrong if text))
    if not tables["torch_releases"].releases:
        raise NotUsable("it has no release of torch")
    return DataFile(version=document.version, sha256=hashlib.sha256(content).hexdigest(), days=days, tables=tables)


def directory() -> Path:
    """Where the user's data files are."""
    return xdg.data() / "envmedic" / "tables"


def file_name(found: DataFile) -> str:
    """Return the name of a data file in `directory`, which says what its content must be."""
    return f"{found.version}-{found.sha256}.json"


def choose(kinds: Mapping[str, type[Any]], shipped: Callable[[], str]) -> Chosen:
    """Return the data file to use: the pinned one, else the newest one that is newer than the shipped tables."""
    ignored: list[Ignored] = []
    there = sorted(_candidates(ignored), key=lambda one: versions.parsed(one[0]), reverse=True)
    pinned = read_pin(ignored)
    if not there and pinned is None:
        return Chosen(ignored=tuple(ignored))
    own = shipped()
    for version, path, origin in there:
        if version == own if pinned is None else version != pinned:
            continue
        if pinned is None and versions.parsed(version) < versions.parsed(own):
            reason = f"it is of version {version}, and the shipped tables are newer: {own}"
            ignored.append(Ignored(path=str(path), reason=reason, damaged=False))
            continue
        if pinned == own:
            break
        try:
            found = parse(_content(path, origin), kinds)
        except (OSError, NotUsable) as error:
            ignored.append(Ignored(path=str(path), reason=told(error), damaged=True))
            continue
        return Chosen(found=found, origin=origin, path=str(path), pinned=pinned, ignored=tuple(ignored))
    if pinned not in {None, own}:
        reason = f"version {pinned} is pinned and cannot be used: the shipped tables are, of version {own}"
        ignored.append(Ignored(path=str(directory() / PIN), reason=reason, damaged=True))
    return Chosen(pinned=pinned, ignored=tuple(ignored))


def _candidates(ignored: list[Ignored]) -> Iterator[tuple[str, Path, Origin]]:
    """Yield every file that may be a data file, with the version that its name or its beginning states."""
    installed = Path(envmedic.__file__).parent.parent / MEMBER
    if installed.exists():
        try:
            stated = msgspec.json.decode(safe_io.read(installed, LARGEST), type=_Document).version
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            ignored.append(Ignored(path=str(installed), reason=told(error), damaged=True))
        else:
            yield stated, installed, "installed"
    yield from ((version, path, "fetched") for version, path in stored(ignored))


def stored(ignored: list[Ignored] | None = None) -> tuple[tuple[str, Path], ...]:
    """Return version and path of each file in `directory` that has the name of a data file, the newest first."""
    folder = directory()
    try:
        require_own(os.lstat(folder), "directory")
        matches = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    except FileNotFoundError:
        return ()
    except (OSError, NotUsable) as error:
        if ignored is not None:
            ignored.append(Ignored(path=str(folder), reason=told(error), damaged=True))
        return ()
    by_age = sorted(matches, key=lambda match: (versions.parsed(match[1]), match[0]), reverse=True)
    return tuple((match[1], folder / match[0]) for match in by_age)


def _content(path: Path, origin: Origin) -> bytes:
    """Return what is in a file. Raises `NotUsable` and OSError."""
    if origin == "installed":
        return safe_io.read(path, LARGEST)
    content = read_own(path, LARGEST)
    stated = _NAME.fullmatch(path.name)
    if stated is None or hashlib.sha256(content).hexdigest() != stated[2]:
        raise NotUsable("its content is not what its name says: it is damaged, or was edited")
    return content


def read_own(path: Path, limit: int) -> bytes:
    """Return the content of a file that only this user or root can have written, and that is no link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        require_own(os.fstat(descriptor), "file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise NotUsable(f"it has more than {limit} bytes")
    return content


def require_own(status: os.stat_result, kind: Literal["file", "directory"]) -> None:
    """Raise `NotUsable` for what another user made or can change, and for what is no such file or directory."""
    is_kind = stat.S_ISREG if kind == "file" else stat.S_ISDIR
    if not is_kind(status.st_mode):
        raise NotUsable(f"it is no {'regular ' if kind == 'file' else ''}{kind}")
    if status.st_uid not in {os.geteuid(), 0}:
        raise NotUsable(f"it belongs to another user, number {status.st_uid}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise NotUsable(f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o})")


def read_pin(ignored: list[Ignored] | None = None) -> str | None:
    """Return the version that the user pinned, None without one."""
    path = directory() / PIN
    try:
        text = read_own(path, _LARGEST_PIN).decode("ascii", "replace").strip()
        _require_version(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, NotUsable) as error:
        if ignored is not None:
            ignored.append(Ignored(path=str(path), reason=told(error), damaged=True))
        return None
    return text


def told(error: Exception) -> str:
    """Return why a file cannot be used."""
    if isinstance(error, OSError):
        return "it is a symbolic link" if error.errno == errno.ELOOP else (error.strerror or str(error))
    return str(error)
