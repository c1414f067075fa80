"""Literals that patterns need, derived once for each set of patterns and cached beside the compiled playbooks."""

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
"""The modules whose code decides the result: a change there makes what is cached stale."""


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a prefilter for some patterns, in their order."""

    needs: tuple[Need | None, ...]
    """None for patterns of which nothing is known."""
    indexes: dict[bytes, tuple[int, ...]]
    """The rarest literals, each with the patterns that need it or another one."""


def derived(patterns: Sequence[str]) -> Derived:
    """The needs of `patterns`, from the cache if it has them undamaged."""
    if len(patterns) == 1:  # of a playbook under test, and not asked for again
        return derive(patterns)
    key = _key(patterns)
    stored = None if key is None else cache.read_bytes(key)
    if stored is not None:
        try:
            return msgspec.msgpack.decode(stored, type=Derived)
        except msgspec.DecodeError:
            pass  # undamaged, but of another version: it is replaced
    found = derive(patterns)
    if key is not None:
        cache.write_bytes(key, msgspec.msgpack.encode(found))
    return found


def derive(patterns: Sequence[str]) -> Derived:
    """The needs of `patterns` without the cache: some 0.2 s for the shipped playbooks."""
    found = tuple(needs(pattern) for pattern in patterns)
    indexes: dict[bytes, list[int]] = {}
    for index, need in enumerate(found):
        for atom in need.rarest() if need is not None else ():
            indexes.setdefault(atom, []).append(index)
    return Derived(needs=found, indexes={atom: tuple(indexes[atom]) for atom in sorted(indexes)})


def _key(patterns: Sequence[str]) -> str | None:
    """Changes with the patterns and with the code that reads them; None where that code cannot be read."""
    rules = _rules_digest()
    if rules is None:
        return None
    return hashlib.sha256(msgspec.json.encode([rules, patterns])).hexdigest()


@cached
def _rules_digest() -> str | None:
    files = [Path(name or "") for name in (__file__, *(module.__file__ for module in _SOURCES))]
    if not all(file.is_file() for file in files):  # run from an archive, or from byte code alone
        return None
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
