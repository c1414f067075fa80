"""Comparison of the ways out of a conflict by what they move. Pure: a port resolves each way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from envmedic.compat.versions import version
from envmedic.model.plan import Change, MoveCost, Plan, PlanAlternative, PlanChoice
from envmedic.planner.moves.conflict_graph import Conflicts
from envmedic.planner.moves.hitting_sets import HittingSets, MoveSet

LIMIT = 6
"""Most ways that are resolved for one plan: each asks the index, and the best come first."""


_LAST = 2
"""How many times as many ways are resolved where none has a solution."""

_PROGRAMS = 5
"""How many dependents the programs of the user count as, for what they alone use and what gets another major release.

No metadata says whether they go with it. For a library, its dependents state the releases with which they go.
"""


class ResolvedMoves(msgspec.Struct, frozen=True):
    """The answer of the resolver for one way."""

    changes: tuple[Change, ...] | None
    """All changes of a solution; None without one."""
    held: tuple[str, ...] = ()
    """Installed distributions that stayed and stood in the way of a solution."""


class ResolvesMoves(Protocol):
    """The port to the resolver."""

    def __call__(self, moves: MoveSet) -> ResolvedMoves:
        """Solve with the distributions of `moves` free and all others as installed."""


class RankedWay(msgspec.Struct, frozen=True):
    """A way with a solution."""

    moves: MoveSet
    cost: MoveCost


class Comparison(msgspec.Struct, frozen=True):
    """The ways that were looked at."""

    ways: tuple[RankedWay, ...]
    """Those with a solution, the least change first."""
    unsolved: tuple[MoveSet, ...]
    """Those without a solution."""
    larger: MoveSet | None
    """The smallest of the ways that move more than the best in any case, and so were not resolved."""
    cut: bool
    """Whether the limit left further ways unresolved that might move less."""

    def choice(self, taken: RankedWay) -> PlanChoice:
        """Return why that way is taken."""
        return PlanChoice(
            cost=taken.cost,
            why="; ".join((_told(taken.cost), *self._others(taken))),
            resolved=len(self.ways) + len(self.unsolved),
            cut=self.cut,
        )

    def explained(self, plan: Plan, taken: RankedWay, failed: Mapping[str, str]) -> Plan:
        """Return the plan of a way with the reason for it, and with the other ways and `failed`, reasons against some."""
        others = (
            PlanAlternative(
                title=item.moves.title,
                why_not=failed.get(item.moves.title) or f"it {_told(item.cost, taken.cost)}",
                feasible=item.moves.title not in failed,
            )
            for item in self.ways
            if item != taken
        )
        unsolved = (
            PlanAlternative(title=item.title, why_not=failed.get(item.title, "it has no solution"), feasible=False)
            for item in self.unsolved
        )
        return msgspec.structs.replace(
            plan, choice=self.choice(taken), alternatives=(*others, *unsolved, *plan.alternatives)
        )

    def _others(self, taken: RankedWay) -> Iterable[str]:
        others = [item for item in self.ways if item != taken]
        if others:
            yield f"the {'next best' if len(others) > 1 else 'other'} way would {_told(others[0].cost, taken.cost).replace('moves', 'move', 1)}"
        if self.unsolved:
            count = len(self.unsolved)
            yield f"{count} other way{'s have' if count > 1 else ' has'} no solution"
        if self.larger is not None and not others:
            names, more = ", ".join(self.larger.names), self.larger.count > len(taken.cost.moves)
            yield f"another way would move {'at least' if more else 'also'} {self.larger.count} ({names})" + (
                "" if more else ", on which more depends"
            )
        if self.cut:
            count = len(self.ways) + len(self.unsolved)
            yield f"only {count} ways were resolved, and there are more"


def compare(conflicts: Conflicts, resolves: ResolvesMoves, *, limit: int = LIMIT) -> Comparison:
    """Resolve the ways out of `conflicts`, at most `limit` of them, and rank those that have a solution."""
    sets = HittingSets(conflicts)
    ways: list[RankedWay] = []
    unsolved: list[MoveSet] = []
    larger: MoveSet | None = None
    cut = together = False
    for moves in sets:
        best = min((item.cost for item in ways), key=_rank, default=None)
        if best is not None and (moves.count, moves.weight) > _rank(best)[:2]:
            larger = moves
            break
        tried = len(ways) + len(unsolved)
        if tried == limit and not ways and not together:
            # some of a chain of requirements alone have no solution: what all have shows which belong to it
            together = True
            ways += _together(conflicts, sets, resolves)
        # a refusal is the alternative, so that more are looked at
        if tried >= (limit if ways else _LAST * limit):
            cut = True
            break
        found = resolves(moves)
        if found.changes is None:
            unsolved.append(moves)
            sets.widen(moves, found.held or sets.binding(moves))
        else:
            ways.append(RankedWay(moves, cost(conflicts, found.changes)))
    if not ways and not together:
        ways += _together(conflicts, sets, resolves)
    return Comparison(tuple(sorted(ways, key=lambda item: _rank(item.cost))), tuple(unsolved), larger, cut)


def _together(conflicts: Conflicts, sets: HittingSets, resolves: ResolvesMoves) -> list[RankedWay]:
    """Return the way of a solution in which everything may move, without what need not; none without a solution."""
    free = _moved(resolves(sets.every()))
    # those on which most depends are held first
    for name in sorted(free or (), key=lambda name: (-conflicts.weight({name}), name)):
        if free is not None and name in free:
            free = _moved(resolves(sets.only(free - {name}))) or free
    if free is None:
        return []
    moves = sets.only(free)
    changes = resolves(moves).changes
    return [] if changes is None else [RankedWay(moves, cost(conflicts, changes))]


def _moved(found: ResolvedMoves) -> frozenset[str] | None:
    """The installed distributions that a solution changes; None without one."""
    if found.changes is None:
        return None
    return frozenset(item.name for item in found.changes if item.before is not None and item.before != item.after)


def cost(conflicts: Conflicts, changes: Sequence[Change]) -> MoveCost:
    """Return what some changes move of what is installed."""
    moved = [item for item in changes if item.before is not None and item.before != item.after]
    pairs = [(version(item.before or ""), version(item.after or "")) for item in moved]
    known = [(old, new) for old, new in pairs if old is not None and new is not None]
    return MoveCost(
        moves=tuple(dict.fromkeys(item.name for item in moved)),
        dependents=conflicts.weight({item.name for item in moved}),
        majors=sum(old.major != new.major for old, new in known),
        downgrades=sum(new < old for old, new in known),
        new=sum(item.before is None for item in changes),
        own_majors=sum(
            old.major != new.major and not conflicts.required(item.name)
            for item, (old, new) in zip(moved, pairs, strict=True)
            if old is not None and new is not None
        ),
    )


def _rank(found: MoveCost) -> tuple[int, ...]:
    disturbed = found.dependents + found.new + _PROGRAMS * found.own_majors
    return (len(found.moves), disturbed, found.majors, found.downgrades)


def _distributions(count: int) -> str:
    return f"{count} distribution{'s' * (count != 1)}"


def _told(found: MoveCost, other: MoveCost | None = None) -> str:
    """Return a cost as a clause; beside another one of as many moves, with a figure that differs."""
    text = f"moves {_distributions(len(found.moves))}" + (f" ({', '.join(found.moves)})" if found.moves else "")
    if other is None or len(found.moves) != len(other.moves):
        return text
    return text + next(_differing(found, other), "")


def _differing(found: MoveCost, other: MoveCost) -> Iterator[str]:
    """Yield the figures in which a cost differs from another one, as further clauses."""
    if found.own_majors > other.own_majors:
        yield f", {found.own_majors} to another major release, which only programs of yours use"
    if found.new > other.new and found.dependents <= other.dependents:
        yield f", with {_distributions(found.new)} in addition"
    if found.dependents != other.dependents:
        yield f", with which {found.dependents} installed ones are content instead of {other.dependents}"
    if found.majors != other.majors:
        yield f", {found.majors} to another major release"
    if found.downgrades != other.downgrades:
        yield f", {found.downgrades} of them back"
