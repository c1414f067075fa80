"""Which patterns can match at all in a part of a log, found by literals that their matches must contain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from envmedic.playbook.matching.derived import derived
from envmedic.playbook.matching.gate import Gate
from envmedic.playbook.matching.lines import squeezed
from envmedic.playbook.matching.patterns import bytewise

_KEPT = 4096
"""Texts of which it is kept what is in them."""
_KEPT_BYTES = 2048
"""Of the longest of these."""
_ONE_TEXT = 512
_ONE_BY_ONE_BYTES = 1 << 14
"""What is searched for one literal after the other before the two programs of all are compiled, which takes 0.05 s."""
_REACHING = re.compile(rb"^[a-f]+|(?<=x)[a-f]+")
"""Where a literal may begin in an address, or go on into it."""


class Prefilter:
    """The literals of some patterns: the rarest of each in one program, all of them for what that finds."""

    def __init__(self, patterns: Sequence[str]) -> None:
        found = derived(patterns)
        self._needs = found.needs
        self._always = frozenset(index for index, need in enumerate(found.needs) if need is None)
        """Patterns of which nothing is known are tried everywhere."""
        self._indexes = found.indexes
        self._atoms = tuple(found.indexes)
        self._gate_pattern = found.gate
        self._met = lru_cache(maxsize=_KEPT)(self._in)
        """Lines that differ in numbers are the same once squeezed."""
        self._may_meet = lru_cache(maxsize=_KEPT)(self._any_in)
        self._searched = 0
        """Bytes in which the literals were looked for one by one, with what each text costs however short."""

    @cached_property
    def gate(self) -> Gate | None:
        """What finds suspicious lines in large blocks; None where every line is one."""
        return None if self._always or not self._atoms else Gate(self._gate_pattern)

    @cached_property
    def _any(self) -> Any | None:
        return None if self._always else _alternation(self._atoms)

    @cached_property
    def _set(self) -> Any:
        return _set(self._atoms)

    def may_match(self, content: bytes) -> bool:
        """Whether a part of a log, of any length, holds a literal that some match needs."""
        text = squeezed(content)
        return (self._may_meet if len(text) <= _KEPT_BYTES else self._any_in)(text)

    def candidates(self, content: bytes) -> frozenset[int]:
        """Indexes of the patterns that may match in a few lines."""
        return self._met(squeezed(content))

    def possible(self, content: bytes) -> frozenset[int]:
        """Indexes of the patterns that may match in lines like a few masked ones, whose addresses have any letters."""
        text = squeezed(content)
        program, reaching = self._reaching
        begun = [reaching[place] for place in program.Match(text) or ()] if reaching else []
        numbers = {number for number, pieces in begun if all(piece in text for piece in pieces)}
        atoms = [self._atoms[number] for number in numbers.union(self._present(text))]
        return self._always.union(*(self._indexes[atom] for atom in atoms))

    @cached_property
    def _reaching(self) -> tuple[Any, list[tuple[int, list[bytes]]]]:
        """The literals that may reach into an address, by their numbers, with what must stand outside of it.

        Before them the program that finds the longest such piece of each.
        """
        found = [(number, _REACHING.split(atom)) for number, atom in enumerate(self._atoms) if _REACHING.search(atom)]
        return _set([max(pieces, key=len) for _, pieces in found]), found

    def _any_in(self, text: bytes) -> bool:
        if self._always:
            return True
        if self._one_by_one(text):
            return any(atom in text for atom in self._atoms)
        return self._any is None or self._any.search(text) is not None

    def _one_by_one(self, text: bytes) -> bool:
        """Whether so little was searched so far that compiling the programs would take longer."""
        self._searched += _ONE_TEXT + len(text)
        return self._searched <= _ONE_BY_ONE_BYTES

    def _in(self, text: bytes) -> frozenset[int]:
        met = {
            index
            for number in self._present(text)
            for index in self._indexes[self._atoms[number]]
            if (need := self._needs[index]) is not None and need.met(text)
        }
        return self._always.union(met)

    def _present(self, text: bytes) -> Sequence[int]:
        if not self._atoms:
            return ()
        if self._one_by_one(text):
            return [number for number, atom in enumerate(self._atoms) if atom in text]
        found: Sequence[int] = self._set.Match(text) or ()
        return found


@lru_cache(maxsize=16)
def prefilter(patterns: tuple[str, ...]) -> Prefilter:
    """The prefilter of `patterns`, made once."""
    return Prefilter(patterns)


def _alternation(atoms: Sequence[bytes]) -> Any | None:
    """One program that finds any of `atoms`; None where there is none, and nothing can be said."""
    import re2  # noqa: PLC0415

    return re2.compile(b"|".join(map(re2.escape, atoms)), bytewise()) if atoms else None


def _set(atoms: Sequence[bytes]) -> Any:
    import re2  # noqa: PLC0415

    found = re2.Set.SearchSet(bytewise())
    for atom in atoms:
        found.Add(re2.escape(atom))
    found.Compile()
    return found
