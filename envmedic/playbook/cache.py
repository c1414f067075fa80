"""Compiled playbooks by the digest of their content, so that YAML is parsed once per content.

Loading ruamel.yaml and jsonschema and validating takes 0.3 s; reading a cached playbook, 1 ms.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path

import msgspec

from envmedic import __version__
from envmedic.model.base import Model
from envmedic.model.playbook import Playbook
from envmedic.model.vocabulary import FACTS, PACKAGE_FACTS, PLAYBOOK_CHECKS
from envmedic.playbook.schema import schema


class _Entry(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cache file."""

    key: str
    digest: str
    """Of the playbook's JSON, so that a damaged file is noticed."""
    playbook: msgspec.Raw


def cache_directory() -> Path:
    """Where compiled playbooks lie: ``$XDG_CACHE_HOME/envmedic/playbooks``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "envmedic" / "playbooks"


@functools.cache
def _rules_digest() -> str:
    """Changes with envmedic's version and with all that a playbook is validated against."""
    rules = [__version__, schema(), list(FACTS.values()), PACKAGE_FACTS, PLAYBOOK_CHECKS]
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
    except (OSError, RuntimeError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # it is read from YAML again, which says what is wrong if anything is


def write(key: str, playbook: Playbook) -> None:
    """Store `playbook` under `key`. Where that cannot be done, the next start is slower and that is all."""
    encoded = msgspec.json.encode(playbook)
    entry = _Entry(key=key, digest=hashlib.sha256(encoded).hexdigest(), playbook=msgspec.Raw(encoded))
    try:
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(msgspec.json.encode(entry))
            Path(temporary).replace(directory / f"{key}.json")
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return
