"""Two-stage literal prefilter: one RE2 program of literal beginnings, then exact checks of the found literals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from envmedic.playbook.matching import derived
from envmedic.playbook.matching.lines import squeezed
from envmedic.playbook.matching.patterns import bytewise

_BEGINNING_BYTES = 10
"""Length of the literal beginnings in the program; with whole literals it compiles four times as long."""
_KEPT = 4096
"""Limit of remembered squeezed texts. Lines that differ only in numbers have the same squeezed text."""
_LONGEST_KEPT = 4096
"""Limit of their length in bytes."""


class Prefilter:
    """Finds the patterns that may match a text, by the literals that their matches must contain."""

    def __init__(self, patterns: Sequence[str]) -> None:
        found = derived.load_literals(patterns)
        self._needs = found.needs
        self._always = frozenset(index for index, need in enumerate(found.needs) if need is None)
        """Patterns without a known literal, which are tried on every line."""
        self._indexes = found.indexes
        # several literals can share a beginning
        by_beginning: dict[bytes, list[bytes]] = {}
        for literal in found.indexes:
            by_beginning.setdefault(literal[:_BEGINNING_BYTES], []).append(literal)
        self._beginnings = tuple(by_beginning)
        self._literals = tuple(by_beginning.values())
        self._candidates = lru_cache(maxsize=_KEPT)(self._candidates_in)
        self._among = lru_cache(maxsize=_KEPT)(self._needing)
        self._met = lru_cache(maxsize=_KEPT)(self._met_by)

    def may_match(self, content: bytes) -> bool:
        """Whether `content`, a part of a log of any length, contains a literal that some match needs."""
        return bool(self._always) or any(True for _ in self._literals_in(squeezed(content)))

    def candidates(self, content: bytes) -> frozenset[int]:
        """Return the indexes of the patterns that may match in a few lines."""
        text = squeezed(content)
        return self._candidates(text) if len(text) <= _LONGEST_KEPT else self._candidates_in(text)

    def _candidates_in(self, text: bytes) -> frozenset[int]:
        """Return the indexes of the patterns whose needs are all in squeezed `text`."""
        literals = frozenset(self._literals_in(text))
        among, others = self._among(literals)
        # a failure repeats with other numbers and words, but with the same atoms: the needs are evaluated once for them
        return self._met(among, literals.union(filter(text.__contains__, others)))

    def _needing(self, literals: frozenset[bytes]) -> tuple[frozenset[int], frozenset[bytes]]:
        """Return the indexes of the patterns that may need one of `literals`, and the atoms to look for in the text.

        Atoms that are literals themselves are not among these: all literals of the text are found already.
        """
        among = frozenset(index for literal in literals for index in self._indexes[literal])
        needed = (need for index in among if (need := self._needs[index]) is not None)
        return among, frozenset().union(*(need.every_atom() for need in needed)).difference(self._indexes)

    def _met_by(self, among: frozenset[int], present: frozenset[bytes]) -> frozenset[int]:
        """Return the indexes of `among` whose needs the atoms `present` meet, and those that are always tried."""
        return self._always.union(i for i in among if (need := self._needs[i]) is not None and need.met(present))

    def _literals_in(self, text: bytes) -> Iterator[bytes]:
        """Literals in squeezed `text`."""
        begun: Sequence[int] = self._program.Match(text) or () if self._literals else ()
        return (literal for number in begun for literal in self._literals[number] if literal in text)

    @cached_property
    def _program(self) -> Any:
        import re2

        # compiled on first use: a diagnosis without a text needs none of it
        found = re2.Set.SearchSet(bytewise())
        for beginning in self._beginnings:
            found.Add(re2.escape(beginning))
        found.Compile()
        return found


@lru_cache(maxsize=16)
def prefilter(patterns: tuple[str, ...]) -> Prefilter:
    """Return the prefilter of `patterns`, made once for each process."""
    return Prefilter(patterns)
