"""Derivation of the literals (atoms) that every match of a pattern must contain, for the prefilter.

RE2 derives such atoms too but does not return them, and they would have to survive `squeezed`, by which one search
finds wrapped, quoted and boxed messages. If the reader does not know a construct it gives up, and the pattern is tried
on every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from envmedic.playbook.matching.lines import squeezed_literal
from envmedic.playbook.matching.ordinary import ORDINARY

MINIMUM = 4
"""Least useful length of an atom in bytes; shorter ones are too frequent. Bytes beyond ASCII count one and a half."""
_MOST_ALTERNATIVES = 64
"""Limit of spellings of a run, which ends there: `(?:a|b)(?:c|d)` has four."""
_MOST_CLASS_MEMBERS = 8
_BEYOND_ASCII = 0x80

_REPEAT = re.compile(r"([*+?])\??|\{(\d+)(?:,\d*)?\}\??")
_GROUP_START = re.compile(r"\(\?(?:P?<\w+>|:|[imsU-]+:)")
_FLAGS = re.compile(r"\(\?[imsU-]+\)")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{\w+\}|\\.|[^\]\\])*\]", re.DOTALL)
_NOTHING = re.compile(r"\\[dsbBAzfnrtv]|[\^$]")
"""Constructs that match only squeezed-away characters, or nothing."""
_ANYTHING = re.compile(r"\\(?:x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|[pP]\{\^?\w+\}|[pP]\w|[DwWSCa])|\.")
_MEMBER = re.compile(r"\\(.)|([^\\])(?:-([^\\\]]))?", re.DOTALL)
_ESCAPED_RANGE = re.compile(r"\\.-.|-\\")
_BLANK = frozenset("dsnrtfv")
_WIDE = frozenset("wWDSpPxQEaAbBzC")
_PLAIN = re.compile(r"[^\\\[\](){}.*+?|^$]+(?![*+?{])")
_LITERAL_ESCAPE = re.compile(r"\\([^\w\s])")

Strings = frozenset[bytes]
_EMPTY: Strings = frozenset({b""})


@dataclass(frozen=True)
class Need:
    """A requirement on every match: one of `atoms`, all of `parts`, or with `any` one of `parts`."""

    atoms: Strings = frozenset()
    parts: tuple[Need, ...] = ()
    any: bool = False

    def met(self, present: Strings) -> bool:
        """Whether a text that contains exactly the atoms `present`, of those in the requirement, satisfies it."""
        if self.atoms:
            return not self.atoms.isdisjoint(present)
        return (any if self.any else all)(part.met(present) for part in self.parts)

    def every_atom(self) -> Strings:
        """Return all atoms in the requirement, frequent ones too."""
        return self.atoms.union(*(part.every_atom() for part in self.parts))

    def rarest(self) -> Strings:
        """Return atoms of which every match contains one: the set that is rarest in ordinary logs."""
        if self.atoms:
            return self.atoms
        if self.any:
            return frozenset().union(*(part.rarest() for part in self.parts))
        return min((part.rarest() for part in self.parts), key=_frequency)


def needs(pattern: str) -> Need | None:
    """Return the requirement on every squeezed match of `pattern`; None without a useful one."""
    reader = _Reader(pattern)
    try:
        found = reader.alternatives()
    except (_Unsure, RecursionError):  # RE2 accepts a thousand nested groups, more than Python's stack
        return None
    return found.need() if reader.at_end() else None


def atoms(pattern: str) -> Strings | None:
    """Return squeezed literals of which every match contains one; None without useful ones."""
    found = needs(pattern)
    return None if found is None else found.rarest()


def _frequency(found: Strings) -> tuple[int, float]:
    """Return a sort key for the expected frequency of `found`: atoms in ordinary logs first, then by length."""
    # each further byte makes a hit four times as rare, a rough guess for lower-case text
    return sum(atom in ORDINARY for atom in found), sum(4.0 ** -_weight(atom) for atom in found)


def _weight(atom: bytes) -> float:
    return len(atom) + sum(byte >= _BEYOND_ASCII for byte in atom) / 2


class _Unsure(Exception):
    """The pattern has a construct that the reader does not know."""


@dataclass
class _Sequence:
    """A concatenation: literals with their spellings, other requirements, and unknown parts (None)."""

    items: list[Strings | Need | None] = field(default_factory=list)

    def spellings(self) -> Strings | None:
        """Return all its spellings; None if they are unknown or too many."""
        run = _EMPTY
        for item in self.items:
            if not isinstance(item, frozenset) or len(run) * len(item) > _MOST_ALTERNATIVES:
                return None
            run = _product(run, item)
        return run

    def need(self) -> Need | None:
        """Return its requirement; None if nothing is required."""
        parts: list[Need] = []
        run = _EMPTY
        # the None at the end closes the last run
        for item in [*self.items, None]:
            if isinstance(item, frozenset) and len(run) * len(item) <= _MOST_ALTERNATIVES:
                run = _product(run, item)
                continue
            if min(map(_weight, run)) >= MINIMUM:
                parts.append(Need(atoms=run))
            run = item if isinstance(item, frozenset) else _EMPTY
            parts += (item,) if isinstance(item, Need) else ()
        return _combined(parts, any_of=False)


def _product(before: Strings, after: Strings) -> Strings:
    if before == _EMPTY:
        return after
    return frozenset(first + second for first in before for second in after)


def _combined(parts: Iterable[Need], *, any_of: bool) -> Need | None:
    distinct = tuple(dict.fromkeys(parts))
    if len(distinct) == 1:
        return distinct[0]
    return Need(parts=distinct, any=any_of) if distinct else None


def _either(branches: Sequence[_Sequence]) -> _Sequence:
    """Combine alternatives into one sequence: their spellings if all are known, else one of their requirements."""
    spelt = [branch.spellings() for branch in branches]
    known = [spelling for spelling in spelt if spelling is not None]
    spellings = frozenset().union(*known)
    if len(known) == len(branches) and len(spellings) <= _MOST_ALTERNATIVES:
        return _Sequence([spellings])
    # one alternative without a requirement means that the whole has none
    needed = [branch.need() for branch in branches]
    found = [need for need in needed if need is not None]
    return _Sequence([None, _combined(found, any_of=True) if len(found) == len(branches) else None, None])


class _Reader:
    """A recursive-descent reader of RE2 syntax that keeps only the required parts."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def at_end(self) -> bool:
        """Whether the whole pattern was read."""
        return self._at == len(self._pattern)

    def alternatives(self) -> _Sequence:
        """Read alternatives up to the end of the group."""
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else _either(branches)

    def _sequence(self) -> _Sequence:
        sequence = _Sequence()
        while not self.at_end() and self._pattern[self._at] not in "|)":
            # flags change no atom: squeezing lowers the case, and (?s) only concerns unknown characters
            if self._match(_FLAGS):
                continue
            self._append(sequence, self._group() if self._pattern[self._at] == "(" else self._element())
        return sequence

    def _append(self, sequence: _Sequence, inner: _Sequence) -> None:
        """Add `inner` with the repetition that follows it."""
        least, most = self._repeated()
        spellings = inner.spellings()
        if least == most == 1:
            sequence.items += inner.items
        elif spellings is not None and most == 1:
            sequence.items.append(spellings | _EMPTY)
        # a None after it ends the run: the number of repetitions is unknown. What is squeezed to nothing, such as
        # `\s*`, adds nothing however often it is repeated, and does not end a run.
        elif spellings != _EMPTY:
            once = [None] if not least else [spellings] if spellings is not None else [None, inner.need()]
            sequence.items += [*once, None]

    def _group(self) -> _Sequence:
        if not self._match(_GROUP_START):
            self._take("(")
            if self._pattern[self._at : self._at + 1] == "?":
                raise _Unsure
        inside = self.alternatives()
        if not self._take(")"):
            raise _Unsure
        return inside

    def _element(self) -> _Sequence:
        plain = self._match(_PLAIN)
        if plain:
            return _Sequence([_spelling(plain.group())])
        escaped = self._match(_LITERAL_ESCAPE)
        if escaped:
            return _Sequence([_spelling(escaped.group(1))])
        if self._match(_NOTHING):
            return _Sequence()
        if self._match(_ANYTHING):
            return _Sequence([None])
        listed = self._match(_CLASS)
        if listed:
            return _Sequence([_members(listed.group())])
        if self._pattern[self._at] in "\\[*+?":
            raise _Unsure
        self._at += 1
        return _Sequence([_spelling(self._pattern[self._at - 1])])

    def _repeated(self) -> tuple[int, int | None]:
        """Read a repetition and return its minimum, and its maximum if that is 1."""
        repeat = self._match(_REPEAT)
        if repeat is None:
            return 1, 1
        if repeat.group(2) is not None:
            return int(repeat.group(2)), None
        return int(repeat.group(1) == "+"), 1 if repeat.group(1) == "?" else None

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._pattern, self._at)
        if found:
            self._at = found.end()
        return found

    def _take(self, character: str) -> bool:
        if self._pattern.startswith(character, self._at):
            self._at += 1
            return True
        return False


def _spelling(literal: str) -> Strings:
    return frozenset({squeezed_literal(literal.encode())})


@lru_cache(maxsize=1024)
def _members(listed: str) -> Strings | None:
    """Return the squeezed members of a character class; None for wide or unknown classes."""
    body = listed[1:-1]
    if not body.isascii() or body.startswith("^") or "[:" in body or _ESCAPED_RANGE.search(body):
        return None
    found: set[bytes] = set()
    for member in _MEMBER.finditer(body):
        escape, first, last = member.groups()
        if escape is not None and escape in _WIDE:
            return None
        plain = "" if escape is not None and escape in _BLANK else escape or first
        codes = range(ord(plain), ord(last or plain) + 1) if plain else ()
        found.update(squeezed_literal(bytes([code])) for code in codes)
        found.update((b"",) if not plain else ())
    return frozenset(found) if 0 < len(found) <= _MOST_CLASS_MEMBERS else None
