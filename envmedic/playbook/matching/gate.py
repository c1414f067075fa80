"""A first look at large logs: one program that runs over raw bytes, and tells the lines that need a second look.

It looks for a short, rare window of each literal that some match needs, with all that logs put
between its characters allowed there, so that nothing has to be copied. Other threads run meanwhile.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from math import sqrt
from threading import Lock
from typing import Any

from envmedic.playbook.matching.blocks import Begin
from envmedic.playbook.matching.escapes import BETWEEN, beyond, past_escapes
from envmedic.playbook.matching.lines import views
from envmedic.playbook.matching.ordinary import ORDINARY
from envmedic.playbook.matching.patterns import bytewise

WINDOW_BYTES = 6
"""Longer windows make a larger program, which takes longer to compile; shorter ones are in ordinary logs."""
_BEGUN_COST = 0.02
"""Of a window's first character being met, against two of its characters."""
_MET_COST = 1000
"""Of a window's being met in ordinary logs: the line is then read in full."""
_MARKS = (b"\\", b"\x1b")
"""What escapes begin with."""
_LARGE_BYTES = 1 << 18
"""Of contents for which the program that passes over escapes, four times as large, is compiled."""

_Tree = dict[int, "_Tree"]
"""Windows by their characters; a leaf has none."""


class Gate:
    """The compiled program of `gate_pattern`."""

    def __init__(self, pattern: bytes) -> None:
        self._pattern = pattern
        self._program = _program(pattern)
        self._lock = Lock()
        self._tolerant: Any | None = None

    def lines(self, content: bytes) -> tuple[int, ...]:
        """Numbers, from 0, of the lines of `content` in which a window begins; it may end on a later one."""
        return tuple(number for number, _ in self.begun(content))

    def begun(self, content: bytes) -> tuple[Begin, ...]:
        """The same lines, with where they begin. Some more may be told where a large `content` has escapes."""
        return tuple(self._begun(content, None))

    def few(self, content: bytes, most: int) -> tuple[Begin, ...] | None:
        """The same, or None where these are more than `most`."""
        found = tuple(islice(self._begun(content, most), most + 1))
        return found if len(found) <= most else None

    def _begun(self, content: bytes, most: int | None) -> Iterable[Begin]:
        """The same. Where it is several views that are searched, no more than `most` and one in each."""
        escaped = any(mark in content for mark in _MARKS)
        if escaped and len(content) >= _LARGE_BYTES and beyond().search(content) is None:
            return _begun(self._past_escapes(), content)
        seen = views(content)
        if seen == (content,):
            return _begun(self._program, content)
        limit = None if most is None else most + 1
        return _placed(content, {number for view in seen for number, _ in islice(_begun(self._program, view), limit)})

    def _past_escapes(self) -> Any:
        with self._lock:
            if self._tolerant is None:
                self._tolerant = _program(past_escapes(self._pattern))
            return self._tolerant


def _program(pattern: bytes) -> Any:
    import re2  # noqa: PLC0415

    chosen = bytewise()
    chosen.case_sensitive = False
    return re2.compile(pattern, chosen)


def _begun(program: Any, text: bytes) -> Iterator[Begin]:
    at = number = 0
    while (match := program.search(text, at)) is not None:
        start = match.start()
        number += text.count(b"\n", at, start)
        yield number, text.rfind(b"\n", at, start) + 1 or at
        at = text.find(b"\n", start) + 1
        if not at:
            return
        number += 1


def _placed(content: bytes, numbers: Collection[int]) -> Iterator[Begin]:
    """Where the lines with `numbers` begin."""
    last = max(numbers, default=-1)
    begin = 0
    for number in range(last + 1):
        if number in numbers:
            yield number, begin
        begin = content.find(b"\n", begin) + 1


def gate_pattern(atoms: Iterable[bytes]) -> bytes:
    """An expression, to be read without regard to case, that finds a part of each of `atoms` before it is squeezed."""
    return _written(_tree(windows(atoms)), BETWEEN)


def windows(atoms: Iterable[bytes]) -> frozenset[bytes]:
    """Parts of `atoms`, at least one of each: few, and rare in ordinary logs."""
    parts = {atom: _parts(atom) for atom in atoms}
    shared = Counter(part for found in parts.values() for part in found)
    ordinary = _ordinary()
    chosen: set[bytes] = set()
    for atom in sorted(parts, key=lambda atom: (len(atom), atom)):
        if chosen.isdisjoint(parts[atom]):
            chosen.add(min(parts[atom], key=lambda part: ((_cost(part, ordinary) + 1) / sqrt(shared[part]), part)))
    return frozenset(chosen)


def _parts(atom: bytes) -> frozenset[bytes]:
    return frozenset(atom[start : start + WINDOW_BYTES] for start in range(max(1, len(atom) - WINDOW_BYTES + 1)))


@functools.cache
def _ordinary() -> Mapping[bytes, int]:
    """How often ordinary logs have each part of a window."""
    return Counter(
        ORDINARY[start : start + length]
        for length in range(1, WINDOW_BYTES + 1)
        for start in range(len(ORDINARY) - length + 1)
    )


def _cost(part: bytes, ordinary: Mapping[bytes, int]) -> float:
    """What it costs to look for `part`: how often its beginnings are met, each being a state of the program."""
    begun = sum(ordinary.get(part[:length], 0) for length in range(2, len(part)))
    return begun + _BEGUN_COST * ordinary.get(part[:1], 0) + _MET_COST * ordinary.get(part, 0)


def _tree(found: Iterable[bytes]) -> _Tree:
    root: _Tree = {}
    ends: set[int] = set()
    for window in sorted(found, key=lambda window: (len(window), window)):
        node = root
        for byte in window:
            node = node.setdefault(byte, {})
            if id(node) in ends:  # what begins with a shorter window is found by that one
                break
        else:
            ends.add(id(node))
    return root


def _written(tree: _Tree, between: bytes) -> bytes:
    branches = [
        b"\\x%02x" % byte + (between + _written(rest, between) if rest else b"") for byte, rest in sorted(tree.items())
    ]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
