"""Parsers of the files that installers write beside a distribution: pure functions of file content.

Formats: core metadata, RECORD and WHEEL (PyPA specifications "Core metadata", "Recording installed
projects", "Binary distribution format"), direct_url.json (PEP 610), pyvenv.cfg (PEP 405). A whole scan
takes milliseconds this way; `email` and `importlib.metadata` take fifty times as long.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from typing import cast
from urllib.parse import unquote, urlsplit

import msgspec

from envmedic import limits
from envmedic.model.facts import Origin
from envmedic.redact import redact_url

_SEPARATORS = re.compile(r"[-_.]+")
_FIELD = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*):[ \t]?(.*)")
_COLUMNS = 3
"""Of RECORD: path, hash, size."""
_SIZE_DIGITS = 19
"""Of the largest file that Linux can hold."""
_PARENTHESES = re.compile(r"\(([^()]*)\)")


def normalise(name: str) -> str:
    """Name of a distribution in its normal form (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


class CoreMetadata(msgspec.Struct, frozen=True):
    """The header fields of METADATA or PKG-INFO that matter here; None or () where absent."""

    name: str | None
    version: str | None
    requires: tuple[str, ...]
    requires_python: str | None


def parse_core(data: bytes) -> CoreMetadata:
    """Read the header; whatever follows the first empty line, and anything unreadable, is left out."""
    fields: dict[str, list[str]] = {}
    for line in _header_lines(data):
        match = _FIELD.fullmatch(line)
        if match:
            fields.setdefault(match[1].lower(), []).append(match[2].strip())
    return CoreMetadata(
        name=_first(fields, "name"),
        version=_first(fields, "version"),
        requires=tuple(_plain(limits.requirement(item)) for item in fields.get("requires-dist", ())),
        requires_python=_first(fields, "requires-python"),
    )


def _plain(requirement: str) -> str:
    """``torch (==2.3.1)``, the form of old metadata, as ``torch==2.3.1``; markers stay as they are."""
    wanted, semicolon, marker = requirement.partition(";")
    found = _PARENTHESES.search(wanted)
    if found is not None:
        wanted = wanted[: found.start()].rstrip() + found[1] + wanted[found.end() :]
    return wanted + semicolon + marker


def _header_lines(data: bytes) -> Iterator[str]:
    header = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0]
    return iter(header.decode("utf-8", "replace").splitlines())


def _first(fields: dict[str, list[str]], name: str) -> str | None:
    # distutils wrote UNKNOWN for every field that setup.py left out
    values = [value for value in fields.get(name, ()) if value and value != "UNKNOWN"]
    return values[0] if values else None


def name_and_version(directory: str) -> tuple[str, str] | None:
    """What the name of a ``.dist-info`` or ``.egg-info`` entry says; None when it says no version."""
    stem = re.sub(r"\.(dist-info|egg-info)$", "", directory)
    parts = re.sub(r"-py\d\.\d+.*$", "", stem).split("-")
    return (parts[0], parts[1]) if len(parts) > 1 and parts[0] and parts[1] else None


def parse_wheel_tags(data: bytes) -> tuple[str, ...]:
    """The tags in WHEEL, in its order."""
    lines = data.decode("utf-8", "replace").splitlines()
    return tuple(line[4:].strip() for line in lines if line.lower().startswith("tag:"))


class RecordFile(msgspec.Struct, frozen=True):
    """The content of RECORD: paths relative to site-packages, and the sum of the recorded sizes."""

    paths: tuple[str, ...]
    size_bytes: int
    error: str | None = None
    """What is wrong with it; what could be read is kept."""
    hashes: tuple[str, ...] = ()
    """Of each of `paths`, as written: ``sha256=`` and its base64, or nothing."""
    sizes: tuple[str, ...] = ()
    """In bytes, as written; nothing for what changes, as RECORD itself."""


def parse_record(data: bytes) -> RecordFile:
    """Read RECORD. Lines that are no ``path,hash,size`` are counted in `error`."""
    text = data.decode("utf-8", "replace")
    lines = text.splitlines()
    paths, hashes, sizes = _plain_columns(lines) or _columns(text)
    wrong = len(lines) - lines.count("") - len(paths)
    error = f"{wrong} lines are not 'path,hash,size'" if wrong else None
    return RecordFile(
        paths=paths,
        size_bytes=_sum(sizes),
        error=error or ("not UTF-8" if "\ufffd" in text else None),
        hashes=hashes,
        sizes=sizes,
    )


def _sum(sizes: Sequence[str]) -> int:
    """Sum of the recorded sizes. One test of the joined text replaces thousands of single tests in the usual case."""
    if "".join(sizes).isdecimal() and max(map(len, sizes)) <= _SIZE_DIGITS:
        return sum(map(int, filter(None, sizes)))
    return sum(map(int, filter(_is_size, sizes)))


def _is_size(text: str) -> bool:
    """Whether a size is written there; longer ones than any file has are damage."""
    return len(text) <= _SIZE_DIGITS and text.isdecimal()


def recorded_size(text: str) -> int:
    """The size that a RECORD states, in bytes; 0 where it states none."""
    return int(text) if _is_size(text) else 0


_Columns = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _plain_columns(lines: list[str]) -> _Columns | None:
    """The columns of an ordinary RECORD: two commas and no quote on each line, no line without a path."""
    text = ",".join(lines)
    if '"' in text or [line.count(",") for line in lines].count(_COLUMNS - 1) != len(lines):
        return None
    cells = text.split(",") if lines else []
    paths = tuple(cells[0::_COLUMNS])
    return (paths, tuple(cells[1::_COLUMNS]), tuple(cells[2::_COLUMNS])) if all(paths) else None


def _columns(text: str) -> _Columns:
    rows = [row for row in _rows(text) if len(row) == _COLUMNS and row[0]]
    return tuple([row[0] for row in rows]), tuple([row[1] for row in rows]), tuple([row[2] for row in rows])


def _rows(text: str) -> list[list[str]]:
    """Rows of comma-separated text; the csv module (strict about NUL and size) only where it is needed."""
    lines = [line for line in text.splitlines() if line]
    if '"' not in text:
        return [line.split(",") for line in lines]
    try:
        return list(csv.reader(line.replace("\0", "") for line in lines))
    except csv.Error:
        return [line.split(",") for line in lines]


def parse_direct_url(data: bytes) -> Origin:
    """Where a distribution came from by its direct_url.json; ``unknown`` when it cannot be read."""
    try:
        content: object = json.loads(data)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return Origin(kind="unknown")
    if not isinstance(content, dict) or not _is_url(content.get("url")):
        return Origin(kind="unknown")
    url = redact_url(content["url"])
    vcs, directory = _table(content, "vcs_info"), _table(content, "dir_info")
    inside = _word(content, "subdirectory")
    if vcs is not None:
        revision = _word(vcs, "commit_id") or _word(vcs, "requested_revision")
        return Origin(kind="vcs", url=url, revision=revision, subdirectory=inside)
    if directory is not None:
        return Origin(kind="editable" if directory.get("editable") is True else "directory", url=url)
    sha256 = _sha256(_table(content, "archive_info") or {})
    return Origin(kind="archive", url=url, subdirectory=inside, sha256=sha256)


def _is_url(value: object) -> bool:
    """Whether it is a URL that can be taken apart, and whose path may be one of a file."""
    try:
        return isinstance(value, str) and "\0" not in unquote(urlsplit(value).path)
    except ValueError:
        return False


def _table(content: dict[str, object], key: str) -> dict[str, object] | None:
    value = content.get(key)
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _word(table: dict[str, object], key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None


def _sha256(archive: dict[str, object]) -> str | None:
    hashes = _table(archive, "hashes")
    if hashes is not None and isinstance(hashes.get("sha256"), str):
        return _word(hashes, "sha256")
    algorithm, _, digest = (_word(archive, "hash") or "").partition("=")
    return digest if algorithm == "sha256" and digest else None


def parse_pyvenv(data: bytes) -> dict[str, str]:
    """The settings of pyvenv.cfg, with lower-case keys, as ``site`` reads them."""
    settings: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        key, equals, value = line.partition("=")
        if equals:
            settings[key.strip().lower()] = value.strip()
    return settings
