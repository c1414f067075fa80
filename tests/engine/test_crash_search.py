"""The smallest crashing set of imports is found, whatever crashes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from envmedic.engine.verify.crash_search import LIMIT_S, MOST_NAMES, checks_of, find
from envmedic.model.checks import Outcome, Status

Names = tuple[str, ...]


class World:
    """An environment in which some sequences crash."""

    def __init__(self, crashes: Callable[[Names], str | None], signal: str | None = "SIGSEGV") -> None:
        self._crashes = crashes
        self._signal = signal
        self.tried: list[Names] = []

    def __call__(self, sequences: Sequence[Names]) -> list[Outcome]:
        """Import each."""
        self.tried += sequences
        return [self._one(names) for names in sequences]

    def _one(self, names: Names) -> Outcome:
        error = self._crashes(names)
        if error is None:
            return Outcome(check="import-sequence", status="pass")
        status: Status = "crash" if self._signal else "fail"
        return Outcome(check="import-sequence", status=status, signal=self._signal, detail=error)


def after(*pattern: str) -> Callable[[Names], str | None]:
    """Crash where all names of `pattern` are imported in this order."""

    def crashes(names: Names) -> str | None:
        places = [names.index(name) for name in pattern if name in names]
        return "gone" if len(places) == len(pattern) and places == sorted(places) else None

    return crashes


def test_one_that_crashes_alone_needs_no_other() -> None:
    found = find(["a", "b", "c"], World(after("b")))
    assert found is not None
    assert (found.sequence, found.works, found.signal) == (("b",), (), "SIGSEGV")


def test_where_nothing_crashes_nothing_is_found() -> None:
    assert find(["a", "b", "c"], World(lambda _names: None)) is None
    assert find([], World(after("a"))) is None
    assert find(["a"], World(after("a", "b"))) is None


@given(st.permutations("abcdef"), st.integers(2, 3), st.booleans())
def test_any_pair_and_any_three_in_a_row_are_found_and_put_right(names: list[str], size: int, backwards: bool) -> None:  # noqa: FBT001
    pattern = tuple(name for name in (names[::-1] if backwards else names) if name in names[1 : 1 + size])
    found = find(names, World(after(*pattern)))
    assert found is not None
    assert found.sequence == pattern
    assert sorted(found.works) == sorted(pattern)
    assert found.works != pattern


def test_where_no_order_works_it_says_so() -> None:
    found = find(["a", "b", "c"], World(lambda names: "gone" if {"a", "c"} <= set(names) else None))
    assert found is not None
    assert (set(found.sequence), found.works) == ({"a", "c"}, ())


def test_a_third_import_that_prevents_the_crash_hides_nothing() -> None:
    def crashes(names: Names) -> str | None:
        return "gone" if "c" not in names and names == ("b", "a") else None

    found = find(["c", "a", "b"], World(crashes))
    assert found is not None
    assert (found.sequence, found.works) == (("b", "a"), ("a", "b"))


def test_what_cannot_be_imported_alone_is_left_out() -> None:
    def crashes(names: Names) -> str | None:
        return "no module" if "x" in names else after("a", "b")(names)

    found = find(["x", "a", "b"], World(crashes, signal=None))
    assert found is not None
    assert (found.sequence, found.signal, found.error) == (("a", "b"), None, "gone")


def telling(crashes: Callable[[Names], str | None]) -> Callable[[Names], str | None]:
    """As processes do it: they tell which import begins, and what crashes ends them at the last that is needed."""

    def told(names: Names) -> str | None:
        ends = (names[: index + 1] for index in range(len(names)))
        begun = next((part for part in ends if crashes(part)), None)
        return None if begun is None else "".join(f"importing {name}\n" for name in begun) + "gone"

    return told


def test_what_comes_after_the_import_that_crashed_is_not_imported_again() -> None:
    world = World(telling(after("a", "b")))
    found = find(list("abcdef"), world)
    assert found is not None
    assert (found.sequence, found.works) == (("a", "b"), ("b", "a"))
    assert world.tried == [tuple("abcdef"), ("a",), ("b",), ("b", "a")]


@given(st.permutations("abcdef"), st.integers(1, 3), st.booleans())
def test_telling_finds_the_same(names: list[str], size: int, backwards: bool) -> None:  # noqa: FBT001
    pattern = tuple(name for name in (names[::-1] if backwards else names) if name in names[2 : 2 + size])
    slow, quick = World(after(*pattern)), World(telling(after(*pattern)))
    expected, found = find(names, slow), find(names, quick)
    assert found is not None
    assert expected is not None
    assert (found.sequence, found.works) == (expected.sequence, expected.works)
    assert len(quick.tried) <= len(slow.tried)


def test_one_that_cannot_be_imported_hides_no_crash_after_it() -> None:
    def crashes(names: Names) -> str | None:
        return "no module" if "x" in names else after("a", "b")(names)

    found = find(["a", "x", "b"], World(telling(crashes), signal=None))
    assert found is not None
    assert found.sequence == ("a", "b")


def test_no_more_names_than_there_is_time_for() -> None:
    world = World(lambda _names: None)
    find([f"m{number}" for number in range(50)], world)
    assert len(set(itertools.chain(*world.tried))) == MOST_NAMES


def test_after_the_limit_nothing_new_is_tried() -> None:
    def crashes(names: Names) -> str | None:
        return "gone" if names == ("a", "b") else None

    assert find(["a", "c", "b"], World(crashes)) is not None
    clock = iter([0.0, LIMIT_S + 1])
    world = World(crashes)
    assert find(["a", "c", "b"], world, clock=lambda: next(clock)) is None
    assert set(world.tried) == {("a", "c", "b"), ("b", "c", "a")}


def test_where_nothing_crashes_everything_is_imported_twice_and_three_in_pairs() -> None:
    world = World(lambda _names: None)
    assert find(list("abcde"), world) is None
    assert len(world.tried) == 2 + 6


def test_each_attempt_is_one_process_with_a_limit() -> None:
    (check,) = checks_of([("a", "b")])
    assert (check.name, check.arguments, check.timeout_s) == ("import-sequence", ("a", "b", "runs=1"), 120.0)
