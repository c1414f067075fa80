"""The patterns that can match a part of a log at all, by literals that each of their matches contains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from envmedic.playbook.matching.derived import derived
from envmedic.playbook.matching.lines import squeezed
from envmedic.playbook.matching.patterns import bytewise

_BEGINNING_BYTES = 10
"""How much of each literal the one program looks for: with whole ones it takes four times as long to compile."""
_KEPT = 4096
"""Squeezed texts whose candidates are remembered: lines that differ only in numbers are the same once squeezed."""
_LONGEST_KEPT = 4096
"""Length, in bytes, of these texts."""


class Prefilter:
    """The literals of some patterns: the beginnings of all in one RE2 program, then those that begin so."""

    def __init__(self, patterns: Sequence[str]) -> None:
        found = derived(patterns)
        self._needs = found.needs
        self._always = frozenset(index for index, need in enumerate(found.needs) if need is None)
        """Patterns without a known literal, which are tried everywhere."""
        self._indexes = found.indexes
        # a beginning that is found may belong to no literal there, or to several
        by_beginning: dict[bytes, list[bytes]] = {}
        for literal in found.indexes:
            by_beginning.setdefault(literal[:_BEGINNING_BYTES], []).append(literal)
        self._beginnings = tuple(by_beginning)
        self._literals = tuple(by_beginning.values())
        self._met = lru_cache(maxsize=_KEPT)(self._met_in)

    def may_match(self, content: bytes) -> bool:
        """Whether a part of a log, of any length, holds a literal that some match needs."""
        return bool(self._always) or any(True for _ in self._literals_in(squeezed(content)))

    def candidates(self, content: bytes) -> frozenset[int]:
        """Indexes of the patterns that may match in a few lines."""
        text = squeezed(content)
        return self._met(text) if len(text) <= _LONGEST_KEPT else self._met_in(text)

    def _met_in(self, text: bytes) -> frozenset[int]:
        """Indexes of the patterns all of whose needs are in squeezed `text`."""
        among = {index for literal in self._literals_in(text) for index in self._indexes[literal]}
        met = {index for index in among if (need := self._needs[index]) is not None and need.met(text)}
        return self._always.union(met)

    def _literals_in(self, text: bytes) -> Iterator[bytes]:
        """Literals in squeezed `text`."""
        begun: Sequence[int] = self._program.Match(text) or () if self._literals else ()
        return (literal for number in begun for literal in self._literals[number] if literal in text)

    @cached_property
    def _program(self) -> Any:
        import re2

        found = re2.Set.SearchSet(bytewise())
        for beginning in self._beginnings:
            found.Add(re2.escape(beginning))
        found.Compile()
        return found


@lru_cache(maxsize=16)
def prefilter(patterns: tuple[str, ...]) -> Prefilter:
    """The prefilter of `patterns`, made once."""
    return Prefilter(patterns)
