"""Disk cache of compiled playbooks, and of data derived from sets of them.

Validating all shipped playbooks takes five seconds, deriving the literals of all patterns 0.2 s; reading either from
the cache takes some ten milliseconds. Two directories are read: what was compiled together with the package, which
nothing writes later, and the user's cache. Files are compressed with zlib, to a third of their size.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import zlib
from pathlib import Path

import msgspec

import envmedic
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


def prepared_root() -> Path:
    """Return the directory of what was compiled with the package: in a wheel, or made by ``make`` in a checkout."""
    package = Path(envmedic.__file__).resolve().parent
    installed = package / "compiled"
    return installed if installed.is_dir() else package.parent / "build" / "compiled"


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


def playbook_file(root: Path, key: str) -> Path:
    """Return the file of the compiled playbook `key` in a cache."""
    return root / "playbooks" / f"{key}.json.z"


def derived_file(root: Path, key: str) -> Path:
    """Return the file of the derived data `key` in a cache."""
    return root / "derived" / key


def read_playbook(key: str) -> Playbook | None:
    """Return the playbook stored under `key`; None if it is missing or damaged."""
    for root in (prepared_root(), user_root()):
        # the caller reads the YAML again where no file is whole
        with contextlib.suppress(OSError, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
            entry = msgspec.json.decode(zlib.decompress(playbook_file(root, key).read_bytes()), type=_Entry)
            if entry.key == key and entry.digest == hashlib.sha256(entry.playbook).hexdigest():
                return msgspec.json.decode(entry.playbook, type=Playbook)
    return None


def write_playbook(key: str, playbook: Playbook, root: Path | None = None) -> None:
    """Store `playbook` under `key` in the user's cache, or in `root`. Raises OSError for the latter alone."""
    encoded = msgspec.json.encode(playbook)
    entry = _Entry(key=key, digest=hashlib.sha256(encoded).hexdigest(), playbook=msgspec.Raw(encoded))
    # a full disk or a read-only home makes the next start slower, and is no error
    with contextlib.nullcontext() if root else contextlib.suppress(OSError):
        _replace(playbook_file(root or user_root(), key), msgspec.json.encode(entry))


def read_bytes(key: str) -> bytes | None:
    """Return the bytes that `write_bytes` stored under `key`; None if they are missing or damaged."""
    for root in (prepared_root(), user_root()):
        try:
            content = zlib.decompress(derived_file(root, key).read_bytes())
        except (OSError, zlib.error):
            continue  # the caller derives it again
        digest, stored = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if digest == _digest(key, stored):
            return stored
    return None


def write_bytes(key: str, content: bytes, root: Path | None = None) -> None:
    """Store `content` under `key` and drop the oldest entries. Failures count as with playbooks."""
    with contextlib.nullcontext() if root else contextlib.suppress(OSError):
        file = derived_file(root or user_root(), key)
        _replace(file, _digest(key, content) + content)
        _drop_oldest(file.parent)


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
