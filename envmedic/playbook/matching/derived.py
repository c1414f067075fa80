"""Literals that patterns require, derived once for each set of patterns and cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache as cached
from pathlib import Path

import msgspec

from envmedic.playbook.matching import atoms, lines, ordinary
from envmedic.playbook.matching.atoms import Need, needs
from envmedic.playbook.schema import cache

_SOURCES = (atoms, lines, ordinary)
"""The modules whose code decides the result: a change there invalidates the cache."""


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a prefilter for some patterns, in their order."""

    needs: tuple[Need | None, ...]
    """None for patterns without a known literal."""
    indexes: dict[bytes, tuple[int, ...]]
    """The rarest literals, each with the indexes of the patterns that may need it."""


def load_literals(patterns: Sequence[str]) -> Derived:
    """Return the literals of `patterns`, from the cache if possible."""
    # one pattern: the sample of a playbook under validation, which would fill the cache with sets for one use
    if len(patterns) == 1:
        return derive_literals(patterns)
    key = cache_key(patterns)
    stored = None if key is None else cache.read_bytes(key)
    if stored is not None:
        try:
            return msgspec.msgpack.decode(stored, type=Derived)
        except msgspec.DecodeError:
            pass  # undamaged, but written by another version: replaced below
    found = derive_literals(patterns)
    if key is not None:
        cache.write_bytes(key, msgspec.msgpack.encode(found))
    return found


def derive_literals(patterns: Sequence[str]) -> Derived:
    """Return the literals of `patterns` without the cache, in some 0.1 s for the shipped playbooks."""
    found = tuple(needs(pattern) for pattern in patterns)
    indexes: dict[bytes, list[int]] = {}
    for index, need in enumerate(found):
        for atom in need.rarest() if need is not None else ():
            indexes.setdefault(atom, []).append(index)
    return Derived(needs=found, indexes={atom: tuple(indexes[atom]) for atom in sorted(indexes)})


def cache_key(patterns: Sequence[str]) -> str | None:
    """Return a key that changes with the patterns and with the code; None if the code has no files."""
    rules = _rules_digest()
    if rules is None:
        return None
    return hashlib.sha256(msgspec.json.encode([rules, patterns])).hexdigest()


@cached
def _rules_digest() -> str | None:
    files = [Path(name or "") for name in (__file__, *(module.__file__ for module in _SOURCES))]
    # without sources (an archive, byte code alone) a change of the code would go unnoticed: no cache then
    if not all(file.is_file() for file in files):
        return None
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
