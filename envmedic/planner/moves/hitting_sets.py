"""Minimal sets of distributions of which every conflict has one member, the least change first. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations

import msgspec

from envmedic.compat.installed_requirements import Demand, satisfying
from envmedic.planner.moves.conflict_graph import Conflicts

_EXPANSIONS = 400
"""Limit on examined sets: an environment with dozens of conflicts has more than can be looked at."""


class MoveSet(msgspec.Struct, frozen=True):
    """Distributions that may move while all others stay."""

    names: tuple[str, ...]
    pins: tuple[str, ...]
    """What the distributions that stay, and the texts, require of those that move."""
    count: int
    """Number of installed distributions among them, the least that a solution changes."""
    weight: int
    """Number of installed distributions that are content with what moves."""

    @property
    def title(self) -> str:
        """The name of the way."""
        return ", ".join(self.pins)


class HittingSets:
    """The sets for some conflicts, in ascending order of `count` and `weight`; `widen` adds sets on the way."""

    def __init__(self, conflicts: Conflicts) -> None:
        """Begin with what the texts ask for."""
        self._conflicts = conflicts
        ends = (*(item.name for item in conflicts.violated), *(item.by.name for item in conflicts.violated))
        self._order = tuple(dict.fromkeys((*conflicts.asked, *ends, *sorted(conflicts.installed))))
        self._queue: list[tuple[tuple[int, int], int, frozenset[str]]] = []
        self._seen: set[frozenset[str]] = set()
        self._given: list[frozenset[str]] = []
        self._widened: set[str] = set()
        self._left = _EXPANSIONS
        self._push(frozenset(conflicts.asked))

    def __iter__(self) -> Iterator[MoveSet]:
        """Yield the sets. A set that contains a given one is left out, unless `widen` made it."""
        while self._queue and self._left > 0:
            self._left -= 1
            (count, weight), _, free = heapq.heappop(self._queue)
            options = self._open(free)
            if options is not None:
                for name in options:
                    self._push(free | {name})
            elif free and (free & self._widened or not any(given < free for given in self._given)):
                self._given.append(free)
                names = tuple(name for name in self._order if name in free)
                yield MoveSet(names, tuple(self._pin(name, free) for name in names), count, weight)

    def widen(self, moves: MoveSet, names: Iterable[str]) -> None:
        """Add sets that also free one of `names`, with which `moves` has no solution as long as they stay."""
        for name in names:
            if name not in self._conflicts.fixed and name not in moves.names:
                self._widened.add(name)
                self._push(frozenset({*moves.names, name}))

    def binding(self, moves: MoveSet) -> tuple[str, ...]:
        """Return what stays and binds the releases of what moves: one of them may have to move along."""
        return tuple(
            dict.fromkeys(item.by.name for name in moves.names for item in self._staying(name, frozenset(moves.names)))
        )

    def only(self, names: Iterable[str]) -> MoveSet:
        """Return the set of these installed distributions, of what is missing, and of what the texts ask for."""
        missing = (item.name for item in self._conflicts.violated if item.found is None)
        free = frozenset({*names, *missing, *self._conflicts.asked})
        ordered = tuple(name for name in (*self._order, *sorted(free.difference(self._order))) if name in free)
        return MoveSet(ordered, tuple(self._requirement(name, free) or name for name in ordered), *self._least(free))

    def every(self) -> MoveSet:
        """Return the set of all that may move and that wheels can replace."""
        return self.only(self._conflicts.installed.keys() - self._conflicts.fixed - self._conflicts.by_conda)

    def _push(self, free: frozenset[str]) -> None:
        if free not in self._seen:
            self._seen.add(free)
            # the length of `_seen` keeps the order of equals: of two ends of a conflict the required one comes first
            heapq.heappush(self._queue, (self._least(free), len(self._seen), free))

    def _least(self, free: Collection[str]) -> tuple[int, int]:
        installed = [name for name in free if name in self._conflicts.installed]
        return len(installed), self._conflicts.weight(free)

    def _open(self, free: frozenset[str]) -> tuple[str, ...] | None:
        """Return the members of a conflict of which the set has none; None where it has one of each."""
        for item in self._conflicts.violated:
            if item.name not in free and item.by.name not in free:
                return self._movable((item.name, item.by.name))
        for name in free:
            held = self._held(name, free)
            if held is None:
                continue
            # what stays excludes itself on this distribution: of two that contradict each other one has to move too
            for pair in (*combinations(held, 2), held):
                if satisfying(name, pair, self._conflicts.asked.get(name, "")) is None:
                    return self._movable(tuple(item.by.name for item in pair))
        return None

    def _movable(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in names if name not in self._conflicts.fixed))

    def _held(self, name: str, free: frozenset[str]) -> tuple[Demand, ...] | None:
        """Return the requirements of what stays on `name` where they exclude each other, else None."""
        return None if self._requirement(name, free) is not None else self._binding(name, free)

    def _requirement(self, name: str, free: frozenset[str]) -> str | None:
        """Return what those that stay require of a distribution that moves; None where they exclude each other."""
        also = self._conflicts.asked.get(name, "")
        held = self._binding(name, free)
        # requirements that are violated today without harm are met too where that is possible
        return satisfying(name, self._staying(name, free), also) or satisfying(name, held, also)

    def _staying(self, name: str, free: frozenset[str]) -> tuple[Demand, ...]:
        """Return the requirements on `name` of what stays, and of code that no distribution owns."""
        every = (item for item in self._conflicts.every if item.name == name)
        return tuple(item for item in every if item.by.name not in free or item.by.name == name)

    def _binding(self, name: str, free: frozenset[str]) -> tuple[Demand, ...]:
        """Return the requirements of what stays on `name` that a repair must meet."""
        return tuple(item for item in self._staying(name, free) if item.met or item in self._conflicts.violated)

    def _pin(self, name: str, free: frozenset[str]) -> str:
        found = self._requirement(name, free) or name
        version = self._conflicts.installed.get(name)
        # in place of what it asks for, which stays, the same release is no answer, however the set was made
        alone = any(item.by.name == name and item.name not in free for item in self._conflicts.violated)
        along = name in self._conflicts.asked or (name in self._widened and not alone)
        if along or not self._conflicts.accepts(found.removeprefix(name), name):
            return found
        # it moves for what it requires itself; where its metadata hide that, an older release is no answer
        other = f"{'>' if name in self._conflicts.newer else '!='}{version}"
        return f"{found}{',' if found != name else ''}{other}"
