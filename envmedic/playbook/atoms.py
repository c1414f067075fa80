"""Literals that every match of a pattern must contain, for a prefilter over whole chunks of a log.

RE2 derives such atoms itself but does not tell them, and they would have to survive `squeezed`,
which makes one search see through wrapping, quoting and boxes. Where the reader is not sure of a
construct, it gives up, and the pattern is tried on every line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from envmedic.playbook.lines import squeezed

MINIMUM = 4
"""Shorter atoms, in bytes, would hit too often to be worth a prefilter."""

_REPEAT = re.compile(r"[*+?]\??|\{(\d+)(?:,\d*)?\}\??")
_GROUP_START = re.compile(r"\(\?(?:P?<\w+>|:|[imsU-]+:)")
_FLAGS = re.compile(r"\(\?[imsU-]+\)")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{\w+\}|\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|[pP]\{\^?\w+\}|[pP]\w|[dDwWsSbBAzCaftnrv])")
_LITERAL_ESCAPE = re.compile(r"\\([^\w\s])")

Atoms = frozenset[bytes]


class _Unsure(Exception):
    """A construct that the reader does not follow."""


def atoms(pattern: str) -> Atoms | None:
    """Squeezed literals one of which every match contains; None where no useful ones are found."""
    reader = _Reader(pattern)
    try:
        found = reader.alternatives()
    except _Unsure:
        return None
    return found if reader.at_end() else None


@dataclass
class _Sequence:
    """A concatenation: the literal run being read, and the best atoms so far."""

    run: str = ""
    candidates: list[Atoms] = field(default_factory=list)

    def flush(self) -> None:
        """End the literal run."""
        atom = squeezed(self.run.encode())
        if len(atom) >= MINIMUM:
            self.candidates.append(frozenset({atom}))
        self.run = ""

    def best(self) -> Atoms | None:
        """The candidate whose shortest atom is longest."""
        self.flush()
        return max(self.candidates, key=lambda atoms: min(map(len, atoms)), default=None)


class _Reader:
    """A recursive reader of RE2 syntax that keeps only what must be there."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def at_end(self) -> bool:
        """Whether the whole pattern was read."""
        return self._at == len(self._pattern)

    def alternatives(self) -> Atoms | None:
        """Read up to the end of the group; the union of the branches, None if one has no atom."""
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        if any(branch is None for branch in branches):
            return None
        return frozenset().union(*(branch for branch in branches if branch is not None))

    def _sequence(self) -> Atoms | None:
        sequence = _Sequence()
        while not self.at_end() and self._pattern[self._at] not in "|)":
            if self._match(_FLAGS):
                continue
            if self._pattern[self._at] == "(":
                self._group(sequence)
            else:
                self._element(sequence)
        return sequence.best()

    def _group(self, sequence: _Sequence) -> None:
        sequence.flush()
        if not self._match(_GROUP_START):
            self._take("(")
            if self._pattern[self._at : self._at + 1] == "?":
                raise _Unsure
        inside = self.alternatives()
        if not self._take(")"):
            raise _Unsure
        if self._repeated() != 0 and inside is not None:
            sequence.candidates.append(inside)

    def _element(self, sequence: _Sequence) -> None:
        character = self._literal()
        if character is None:
            sequence.flush()
            self._repeated()
            return
        times = self._repeated()
        if times != 0:
            sequence.run += character
        if times is not None:
            sequence.flush()

    def _literal(self) -> str | None:
        """Read one element; its character when it is a plain one."""
        escaped = self._match(_LITERAL_ESCAPE)
        if escaped:
            return escaped.group(1)
        if self._match(_ESCAPE) or self._match(_CLASS) or self._take(".") or self._take("^") or self._take("$"):
            return None
        if self._pattern[self._at] in "\\[*+?":
            raise _Unsure
        self._at += 1
        return self._pattern[self._at - 1]

    def _repeated(self) -> int | None:
        """Read a repetition; its minimum, None when there is none."""
        repeat = self._match(_REPEAT)
        if repeat is None:
            return None
        if repeat.group(1) is not None:
            return int(repeat.group(1))
        return 1 if repeat.group(0).startswith("+") else 0

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
