"""Which distributions move in a conflict of requirements, and how ways out are compared."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.compat.installed_requirements import Demand, demands
from envmedic.model.facts import Distribution
from envmedic.model.plan import Change
from envmedic.planner.moves.comparison import ResolvedMoves, compare
from envmedic.planner.moves.conflict_graph import Conflicts, conflicts
from envmedic.planner.moves.hitting_sets import HittingSets, MoveSet
from tests.planner.support import dist, environment

HUB = ("hub>=1",)


def of(*installed: Distribution, unstated: Iterable[Demand] = ()) -> Conflicts:
    here = environment(list(installed))
    every = demands(here, {"extra": ""})
    return conflicts(here, (item for item in (*every, *unstated) if not item.met), every, unstated=unstated)


def sets(known: Conflicts) -> list[tuple[str, ...]]:
    return [item.pins for item in HittingSets(known)]


def solved(**versions: tuple[str, str]) -> tuple[Change, ...]:
    return tuple(Change(kind="change", name=name, before=old, after=new) for name, (old, new) in versions.items())


def test_one_required_distribution_moves_rather_than_all_that_complain() -> None:
    several = [dist(name, "2.0", "hub>=1") for name in ("models", "data", "images")]
    assert sets(of(*several, dist("hub", "0.9"))) == [("hub>=1",), ("models!=2.0", "data!=2.0", "images!=2.0")]


def test_one_that_complains_moves_rather_than_what_many_accept() -> None:
    several = [dist(name, "2.0", "array>=2") for name in ("models", "data", "images")]
    found = sets(of(*several, dist("array", "2.1"), dist("old", "1.0", "array<2")))
    assert found[0] == ("old>1.0",)


def test_of_two_the_one_that_nobody_else_needs_as_it_is_moves() -> None:
    found = HittingSets(of(dist("web", "1.0", "routes<2"), dist("routes", "2.1")))
    assert [(item.pins, item.weight) for item in found] == [(("routes<2",), 0), (("web>1.0",), 1)]


def test_what_holds_an_old_release_back_moves_along() -> None:
    several = [dist(name, "2.0", "hub>=1") for name in ("models", "data", "images")]
    first = sets(of(*several, dist("tokens", "0.20", "hub<1"), dist("hub", "0.9")))[0]
    assert first == ("hub>=1", "tokens!=0.20")


def test_what_no_metadata_state_takes_a_newer_release() -> None:
    ops, array = dist("ops", "1.0", "array"), dist("array", "2.1")
    hidden = Demand(ops, "array", "<2", "2.1")
    assert sets(of(ops, array, unstated=(hidden,))) == [("array<2",), ("ops>1.0",)]


def test_what_refuses_a_newer_release_moves_forward_and_what_asks_for_a_newer_one_either_way() -> None:
    assert sets(of(dist("web", "1.1", "pages>=2,<3"), dist("pages", "3.1")))[1] == ("web>1.1",)
    assert sets(of(dist("web", "1.1", "pages>=2,<3"), dist("pages", "1.9")))[1] == ("web!=1.1",)


def test_torch_and_what_no_index_has_stay() -> None:
    torch = dist("torch", "2.5.1", "sympy==1.13.1")
    assert sets(of(torch, dist("sympy", "1.12"))) == [("sympy==1.13.1",)]


def test_ways_are_compared_by_what_they_move_and_then_by_majors() -> None:
    known = of(dist("web", "1.0", "routes<2"), dist("routes", "2.1"), dist("site", "3.0", "routes"))
    answers = {"routes": solved(routes=("2.1", "1.9")), "web": solved(web=("1.0", "1.2"))}

    def resolves(moves: MoveSet) -> ResolvedMoves:
        return ResolvedMoves(answers[moves.names[0]])

    found = compare(known, resolves)
    assert [item.moves.names for item in found.ways] == [("web",), ("routes",)], "as much depends on each of the two"
    why = found.choice(found.ways[0]).why
    assert (
        why
        == "moves 1 distribution (web); the other way would move 1 distribution (routes), 1 to another major release"
    )


def test_a_way_without_solution_is_told_and_widened_by_what_stood_in_its_way() -> None:
    known = of(
        dist("web", "1.0", "routes<2"),
        dist("routes", "2.1"),
        dist("site", "3.0", "routes>=2", "deep"),
        dist("deep", "1"),
    )
    asked: list[tuple[str, ...]] = []

    def resolves(moves: MoveSet) -> ResolvedMoves:
        asked.append(moves.names)
        wide = "deep" in moves.names
        return ResolvedMoves(solved(web=("1.0", "1.2"), deep=("1", "2")) if wide else None, () if wide else ("deep",))

    found = compare(known, resolves)
    assert asked[0] == ("web",)
    assert found.ways[0].moves.names == ("web", "deep")
    assert "2 other ways have no solution" in found.choice(found.ways[0]).why


def test_the_number_of_resolved_ways_is_bounded_and_told() -> None:
    apps = [dist(f"app{number}", "1.0", f"lib{number}<1") for number in range(5)]
    libs = [dist(f"lib{number}", "2.0") for number in range(5)]
    asked: list[MoveSet] = []

    def resolves(moves: MoveSet) -> ResolvedMoves:
        asked.append(moves)
        return (
            ResolvedMoves(None)
            if len(asked) < 3
            else ResolvedMoves(solved(**dict.fromkeys(moves.names, ("2.0", "0.9"))))
        )

    found = compare(of(*apps, *libs), resolves, limit=3)
    assert len(asked) == 3
    assert found.cut
    assert "only 3 ways were resolved" in found.choice(found.ways[0]).why


def test_what_only_programs_use_gets_another_major_release_after_a_library_of_few() -> None:
    tools = [dist(name, "1.0", "hub") for name in ("data", "tokens")]
    known = of(dist("models", "4.56", "hub<1"), dist("hub", "1.5"), *tools, dist("notebook", "1", "data", "tokens"))
    answers = {"models": {"models": ("4.56", "5.15")}, "hub": {"hub": ("1.5", "0.36")}}
    found = compare(known, lambda moves: ResolvedMoves(solved(**answers[moves.names[0]])))
    assert [item.moves.names for item in found.ways] == [("hub",), ("models",)]
    assert "which only programs of yours use" in found.choice(found.ways[0]).why


def test_what_brings_a_dozen_others_comes_after_what_brings_none() -> None:
    known = of(dist("models", "4.56", "hub<1"), dist("hub", "1.5"), *(dist(name, "1.0", "hub") for name in "ab"))
    more = tuple(Change(kind="install", name=f"new{number}", after="1") for number in range(12))
    answers = {"models": (*solved(models=("4.56", "4.57")), *more), "hub": solved(hub=("1.5", "1.4"))}
    found = compare(known, lambda moves: ResolvedMoves(answers[moves.names[0]]))
    assert [item.moves.names for item in found.ways] == [("hub",), ("models",)]
    assert "12 distributions in addition" in found.choice(found.ways[0]).why
