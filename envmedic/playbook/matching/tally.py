"""What was found in a log, with repetitions counted."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from envmedic.model.playbook import TextMatch
from envmedic.playbook.matching.signatures import Hit, Key

DISTINCT_MATCHES = 64
"""Matches of one signature with different groups that are told apart; the rest is counted to the first."""


class _Counted:
    """A match and the lines that have it."""

    __slots__ = ("count", "last", "match")

    def __init__(self, match: TextMatch) -> None:
        self.match = match
        self.count = 0
        self.last = -1
        """Where the line begins on which it was last taken."""


class Tally:
    """Matches with repetitions counted."""

    def __init__(self) -> None:
        self._counted: dict[Key, _Counted] = {}
        self._distinct: dict[tuple[str, str], list[_Counted]] = {}

    def add(self, hit: Hit, place: int, number: Callable[[], int], times: int = 1) -> None:
        """Take a match on the line that begins at `place`, and on some more; the same one seen twice there counts once.

        `number` tells which line that is: of the first one only, since that may mean counting.
        """
        counted = self._counted.get(hit.key)
        if counted is None:
            counted = self._new(hit, number)
        counted.count += times - (counted.last == place)
        counted.last = place

    def is_new(self, hit: Hit) -> bool:
        """Whether a match is one that would be told of."""
        return hit.key not in self._counted and len(self._distinct.get(hit.key[:2], ())) < DISTINCT_MATCHES

    def _new(self, hit: Hit, number: Callable[[], int]) -> _Counted:
        known = self._distinct.setdefault(hit.key[:2], [])
        if len(known) >= DISTINCT_MATCHES:
            return known[0]
        counted = _Counted(msgspec.structs.replace(hit.match, line_number=number()))
        known.append(counted)
        self._counted[hit.key] = counted
        return counted

    def matches(self) -> tuple[TextMatch, ...]:
        """By line number, in the order found on a line."""
        found = (msgspec.structs.replace(item.match, count=item.count) for item in self._counted.values())
        return tuple(sorted(found, key=lambda match: (match.line_number, match.part)))
