"""Compiled playbooks by the digest of their content, and what is derived from sets of them.

Loading ruamel.yaml and jsonschema and validating takes 0.3 s, and working out what all patterns need
0.2 s; reading either from here takes a few milliseconds.
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
"""Sets of playbooks whose derived parts are kept."""
_DIGEST_BYTES = hashlib.sha256().digest_size


class _Entry(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cache file."""

    key: str
    digest: str
    """Of the playbook's JSON, so that a damaged file is noticed."""
    playbook: msgspec.Raw


def cache_directory() -> Path:
    """Where compiled playbooks lie: ``$XDG_CACHE_HOME/envmedic/playbooks``."""
    return xdg.cache() / "envmedic" / "playbooks"


@functools.cache
def _rules_digest() -> str:
    """Changes with envmedic's version and with all that a playbook is validated against."""
    # generating the schema takes three times as long as reading the code that it is generated from
    code = sorted(Path(model.__file__ or "").parent.rglob("*.py"))
    rules: list[object] = [__version__, *(hashlib.sha256(file.read_bytes()).hexdigest() for file in code)]
    if not code:  # run from an archive, or from byte code alone
        rules += [schema(), list(FACTS.values()), PACKAGE_FACTS, PLAYBOOK_CHECKS]
    return hashlib.sha256(msgspec.json.encode(rules)).hexdigest()


def cache_key(content: bytes, shipped_as: str | None) -> str:
    """The key of a file's content. A shipped playbook is held to more rules, among them its name."""
    parts = [_rules_digest(), shipped_as or "", hashlib.sha256(content).hexdigest()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(key: str) -> Playbook | None:
    """The playbook stored under `key`; None when there is none or the file is damaged."""
    try:
        entry = msgspec.json.decode((cache_directory() / f"{key}.json").read_bytes(), type=_Entry)
        if entry.key != key or entry.digest != hashlib.sha256(entry.playbook).hexdigest():
            return None
        return msgspec.json.decode(entry.playbook, type=Playbook)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # it is read from YAML again, which says what is wrong if anything is


def write(key: str, playbook: Playbook) -> None:
    """Store `playbook` under `key`. Where that cannot be done, the next start is slower and that is all."""
    encoded = msgspec.json.encode(playbook)
    entry = _Entry(key=key, digest=hashlib.sha256(encoded).hexdigest(), playbook=msgspec.Raw(encoded))
    with contextlib.suppress(OSError):
        _replace(cache_directory() / f"{key}.json", msgspec.json.encode(entry))


def derived_directory() -> Path:
    """Where that lies which is derived from sets of playbooks: ``$XDG_CACHE_HOME/envmedic/derived``."""
    return cache_directory().with_name("derived")


def read_bytes(key: str) -> bytes | None:
    """What `write_bytes` stored under `key`; None when there is nothing or the file is damaged."""
    try:
        content = (derived_directory() / key).read_bytes()
    except OSError:
        return None  # it is derived again
    digest, stored = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return stored if digest == _digest(key, stored) else None


def write_bytes(key: str, content: bytes) -> None:
    """Store `content` under `key` and drop the oldest entries. Where that cannot be done, it is derived every time."""
    with contextlib.suppress(OSError):
        _replace(derived_directory() / key, _digest(key, content) + content)
        _drop_oldest(derived_directory())


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _drop_oldest(directory: Path) -> None:
    """Keep the newest sets: each change of a playbook leaves one of some 200 kB."""
    entries = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for path in entries[:-MOST_DERIVED]:
        path.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
