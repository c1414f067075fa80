"""Which patterns can match at all in a part of a log, found by literals that their matches must contain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from envmedic.playbook.atoms import Need, needs
from envmedic.playbook.lines import squeezed
from envmedic.playbook.patterns import options

_MEMORY_BYTES = 64 << 20


class Prefilter:
    """The literals of some patterns: the rarest of each in one program, all of them for what that finds."""

    def __init__(self, patterns: Sequence[str]) -> None:
        found = [needs(pattern) for pattern in patterns]
        self._needs: dict[int, Need] = {index: need for index, need in enumerate(found) if need is not None}
        self._always = frozenset(index for index, need in enumerate(found) if need is None)
        """Patterns of which nothing is known are tried everywhere."""
        self._indexes: dict[bytes, set[int]] = {}
        for index, need in self._needs.items():
            for atom in need.rarest():
                self._indexes.setdefault(atom, set()).add(index)
        self._atoms = sorted(self._indexes)
        self._any = None if self._always else _alternation(self._atoms)
        self._set: Any = None
        self._met = lru_cache(maxsize=1024)(self._in)
        """Lines that differ in numbers are the same once squeezed."""

    def may_match(self, content: bytes) -> bool:
        """Whether a part of a log, of any length, holds a literal that some match needs."""
        return self.found_in(squeezed(content))

    def found_in(self, text: bytes) -> bool:
        """The same for a text that has been squeezed. Other threads run meanwhile."""
        return self._any is None or self._any.search(text) is not None

    def candidates(self, content: bytes) -> frozenset[int]:
        """Indexes of the patterns that may match in a few lines."""
        return self._met(squeezed(content))

    def _in(self, text: bytes) -> frozenset[int]:
        met = {
            index
            for number in self._present(text)
            for index in self._indexes[self._atoms[number]]
            if self._needs[index].met(text)
        }
        return self._always.union(met)

    def _present(self, text: bytes) -> Sequence[int]:
        if not self._atoms:
            return ()
        if self._set is None:
            self._set = _set(self._atoms)
        found: Sequence[int] = self._set.Match(text) or ()
        return found


@lru_cache(maxsize=16)
def prefilter(patterns: tuple[str, ...]) -> Prefilter:
    """The prefilter of `patterns`, made once."""
    return Prefilter(patterns)


def _alternation(atoms: Sequence[bytes]) -> Any | None:
    """One program that finds any of `atoms`; None where there is none, and nothing can be said."""
    import re2  # noqa: PLC0415

    return re2.compile(b"|".join(map(re2.escape, atoms)), _bytewise()) if atoms else None


def _set(atoms: Sequence[bytes]) -> Any:
    import re2  # noqa: PLC0415

    found = re2.Set.SearchSet(_bytewise())
    for atom in atoms:
        found.Add(re2.escape(atom))
    found.Compile()
    return found


def _bytewise() -> Any:
    import re2  # noqa: PLC0415

    chosen = options()
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.never_capture = True
    chosen.max_mem = _MEMORY_BYTES
    return chosen
