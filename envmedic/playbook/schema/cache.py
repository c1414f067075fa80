"""Disk cache of compiled playbooks, and of data derived from sets of them.

Validating all shipped playbooks takes five seconds, deriving the literals of all patterns 0.1 s; reading either from
the cache takes some ten milliseconds. Two places are read: one archive of the playbooks that were compiled together with
the package, which nothing writes later, and the directory of the user's cache, in files compressed with zlib.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

import envmedic
from envmedic import __version__, model, xdg
from envmedic.model.base import Model
from envmedic.model.playbook import Playbook
from envmedic.model.vocabulary.names import FACTS, PACKAGE_FACTS, PLAYBOOK_CHECKS
from envmedic.playbook.schema.schema import schema

PREPARED = "compiled.xz"
"""The name of the archive."""
MOST_DERIVED = 8
"""Number of sets of playbooks whose derived data is kept."""
_DIGEST_BYTES = hashlib.sha256().digest_size


class _Entry(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cache file."""

    key: str
    digest: str
    """SHA-256 of the playbook's JSON, which shows a damaged file."""
    playbook: msgspec.Raw


def prepared_file() -> Path:
    """Return the archive of what was compiled with the package: in a wheel, or made by ``make`` in a checkout."""
    package = Path(envmedic.__file__).resolve().parent
    installed = package / PREPARED
    return installed if installed.is_file() else package.parent / "build" / PREPARED


@functools.cache
def _prepared() -> dict[str, bytes]:
    """Entries of that archive by key; none where it is missing or damaged, and everything is derived again."""
    try:
        import lzma
    except ImportError:  # a Python that was built without it
        return {}
    try:
        packed = lzma.decompress(prepared_file().read_bytes())
        return msgspec.msgpack.decode(packed, type=dict[str, bytes])
    except (OSError, lzma.LZMAError, msgspec.DecodeError):
        return {}


def write_prepared(entries: Mapping[str, bytes], file: Path) -> None:
    """Write that archive. Raises OSError."""
    import lzma

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lzma.compress(msgspec.msgpack.encode(entries), preset=9))


def user_root() -> Path:
    """Return the user's cache: ``$XDG_CACHE_HOME/envmedic``."""
    return xdg.cache() / "envmedic"


@functools.cache
def _rules_digest() -> str:
    """Return a digest that changes with envmedic's version and with the rules of validation."""
    # the code of the model, since in a checkout it changes without the version; generating the schema from it and
    # hashing that takes three times as long
    code = sorted(Path(model.__file__ or "").parent.rglob("*.py"))
    rules: list[object] = [__version__, *(hashlib.sha256(file.read_bytes()).hexdigest() for file in code)]
    # no source files: envmedic runs from an archive, or from byte code alone
    if not code:
        rules += [schema(), list(FACTS.values()), PACKAGE_FACTS, PLAYBOOK_CHECKS]
    return hashlib.sha256(msgspec.json.encode(rules)).hexdigest()


def cache_key(content: bytes, shipped_as: str | None) -> str:
    """Return the key of a file's content."""
    # with the name of a shipped playbook: more rules apply to it, and the same text as a user's file may be valid
    parts = [_rules_digest(), shipped_as or "", hashlib.sha256(content).hexdigest()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_playbook(key: str) -> Playbook | None:
    """Return the playbook stored under `key`; None if it is missing or damaged."""
    for content in (_prepared().get(key), _content(_playbook_file(key))):
        # the caller reads the YAML again where no entry is whole
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            entry = msgspec.json.decode(content or b"", type=_Entry)
            if entry.key == key and entry.digest == hashlib.sha256(entry.playbook).hexdigest():
                return msgspec.json.decode(entry.playbook, type=Playbook)
    return None


def write_playbook(key: str, playbook: Playbook) -> None:
    """Store `playbook` under `key` in the user's cache."""
    # a full disk or a read-only home makes the next start slower, and is no error
    with contextlib.suppress(OSError):
        _replace(_playbook_file(key), playbook_entry(key, playbook))


def playbook_entry(key: str, playbook: Playbook) -> bytes:
    """Return what is stored for `playbook`."""
    encoded = msgspec.json.encode(playbook)
    return msgspec.json.encode(
        _Entry(key=key, digest=hashlib.sha256(encoded).hexdigest(), playbook=msgspec.Raw(encoded))
    )


def read_bytes(key: str) -> bytes | None:
    """Return the bytes that `write_bytes` stored under `key`; None if they are missing or damaged."""
    content = _content(_derived_file(key)) or b""
    digest, stored = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return stored if digest == _digest(key, stored) else None


def write_bytes(key: str, content: bytes) -> None:
    """Store `content` under `key` in the user's cache and drop the oldest entries. Failures count as with playbooks."""
    with contextlib.suppress(OSError):
        file = _derived_file(key)
        _replace(file, _digest(key, content) + content)
        _drop_oldest(file.parent)


def _content(file: Path) -> bytes | None:
    """What a file of the user's cache holds; None where it is missing or damaged."""
    try:
        return zlib.decompress(file.read_bytes())
    except (OSError, zlib.error):
        return None


def _playbook_file(key: str) -> Path:
    return user_root() / "playbooks" / f"{key}.json.z"


def _derived_file(key: str) -> Path:
    return user_root() / "derived" / key


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _drop_oldest(directory: Path) -> None:
    """Remove all but the newest entries."""
    # each edit of a playbook adds an entry of some 100 kB
    entries = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for path in entries[:-MOST_DERIVED]:
        path.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    # renamed into place: other processes read the cache at the same time, and a crash must not leave half a file
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(zlib.compress(content))
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
