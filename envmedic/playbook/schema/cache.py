"""Disk cache of compiled playbooks, and of data derived from sets of them.

Loading ruamel.yaml and jsonschema and validating take 0.3 s, deriving the literals of all patterns 0.2 s; reading
either from the cache takes a few milliseconds.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from pathlib import Path

import msgspec

from envmedic import __version__, model, xdg
from envmedic.model.base import Model
from envmedic.model.playbook import Playbook
from envmedic.model.vocabulary.names import FACTS, PACKAGE_FACTS, PLAYBOOK_CHECKS
from envmedic.playbook.schema.schema import schema

MOST_DERIVED = 8
"""Number of sets of playbooks whose derived data is kept."""
_DIGEST_BYTES = hashlib.sha256().digest_size


class _Entry(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cache file."""

    key: str
    digest: str
    """SHA-256 of the playbook's JSON, which shows a damaged file."""
    playbook: msgspec.Raw


def cache_directory() -> Path:
    """Return the directory of compiled playbooks: ``$XDG_CACHE_HOME/envmedic/playbooks``."""
    return xdg.cache() / "envmedic" / "playbooks"


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
    try:
        entry = msgspec.json.decode((cache_directory() / f"{key}.json").read_bytes(), type=_Entry)
        if entry.key != key or entry.digest != hashlib.sha256(entry.playbook).hexdigest():
            return None
        return msgspec.json.decode(entry.playbook, type=Playbook)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # the caller reads the YAML again


def write_playbook(key: str, playbook: Playbook) -> None:
    """Store `playbook` under `key`."""
    # a full disk or a read-only home makes the next start slower, and is no error
    encoded = msgspec.json.encode(playbook)
    entry = _Entry(key=key, digest=hashlib.sha256(encoded).hexdigest(), playbook=msgspec.Raw(encoded))
    with contextlib.suppress(OSError):
        _replace(cache_directory() / f"{key}.json", msgspec.json.encode(entry))


def derived_directory() -> Path:
    """Return the directory of data derived from sets of playbooks: ``$XDG_CACHE_HOME/envmedic/derived``."""
    return cache_directory().with_name("derived")


def read_bytes(key: str) -> bytes | None:
    """Return the bytes that `write_bytes` stored under `key`; None if they are missing or damaged."""
    try:
        content = (derived_directory() / key).read_bytes()
    except OSError:
        return None  # the caller derives it again
    digest, stored = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return stored if digest == _digest(key, stored) else None


def write_bytes(key: str, content: bytes) -> None:
    """Store `content` under `key` and drop the oldest entries. A failure is no error, as with playbooks."""
    with contextlib.suppress(OSError):
        _replace(derived_directory() / key, _digest(key, content) + content)
        _drop_oldest(derived_directory())


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _drop_oldest(directory: Path) -> None:
    """Remove all but the newest entries."""
    # each edit of a playbook adds an entry of some 200 kB
    entries = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for path in entries[:-MOST_DERIVED]:
        path.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    # renamed into place: other processes read the cache at the same time, and a crash must not leave half a file
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
