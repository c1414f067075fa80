"""A first look at large logs: one program that runs over raw bytes, and tells the lines that need a second look.

It looks for a short, rare window of each literal that some match needs, with all that logs put
between its characters allowed there, so that nothing has to be copied. Other threads run meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

from envmedic.playbook.lines import SQUEEZED_AWAY, views
from envmedic.playbook.ordinary import ORDINARY
from envmedic.playbook.patterns import bytewise

WINDOW_BYTES = 6
"""Longer windows make a larger program, which takes longer to compile; shorter ones are in ordinary logs."""
_BEGUN_COST = 0.02
"""Of a window's first character being met, against two of its characters."""
_MET_COST = 1000
"""Of a window's being met in ordinary logs: the line is then read in full."""

_Tree = dict[int, "_Tree"]
"""Windows by their characters; a leaf has none."""


class Gate:
    """The compiled program of `gate_pattern`."""

    def __init__(self, pattern: bytes) -> None:
        import re2  # noqa: PLC0415

        chosen = bytewise()
        chosen.case_sensitive = False
        self._program: Any = re2.compile(pattern, chosen)

    def lines(self, content: bytes) -> tuple[int, ...]:
        """Numbers, from 0, of the lines of `content` in which a window begins; it may end on a later one."""
        found: set[int] = set()
        for view in views(content):
            found.update(self._begun(view))
        return tuple(sorted(found))

    def _begun(self, text: bytes) -> Iterable[int]:
        at = number = 0
        while (match := self._program.search(text, at)) is not None:
            start = match.start()
            number += text.count(b"\n", at, start)
            yield number
            at = text.find(b"\n", start) + 1
            if not at:
                return
            number += 1


def gate_pattern(atoms: Iterable[bytes]) -> bytes:
    """An expression, to be read without regard to case, that finds a part of each of `atoms` before it is squeezed."""
    return _written(_tree(windows(atoms)), _between())


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


def _between() -> bytes:
    """Any number of what squeezing takes away, as a class of ranges."""
    ranges: list[tuple[int, int]] = []
    for byte in sorted(set(SQUEEZED_AWAY)):
        if ranges and ranges[-1][1] == byte - 1:
            ranges[-1] = (ranges[-1][0], byte)
        else:
            ranges.append((byte, byte))
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % pair for pair in ranges) + b"]*"
