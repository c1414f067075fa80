"""Which tests pass which guard: the guards of a copy tell it themselves, in whatever process they stand.

`marked` makes each guard of a file call `seen` first; as a plugin of pytest this module says which test is under way, and
what came of it. What a test forks or starts tells as well, also where it ends by `os._exit` or as another user.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.faults.seen import NOW, SEEN, TESTS, TRIPPED, append

_ROOT = Path(__file__).resolve().parents[2]
_BEGINNING = """\
import sys
sys.path.append({root!r})
try:
    from tests.faults.seen import raising as _raising, seen as _seen, true as _true
except ImportError:  # hidden from this process
    _seen, _true, _raising = lambda _: None, lambda _, value: value, lambda _, call: call()
sys.path.remove({root!r})
"""


class Passing(msgspec.Struct, frozen=True):
    """What a run of the tests without a guard missing has shown."""

    seconds: dict[str, float]
    """Tests that succeed, with what they take."""
    failed: list[str]
    passed: dict[str, list[str]]
    """Guard → tests of `seconds` in which it runs, in any process."""
    tripped: dict[str, list[str]]
    """Guard → tests in which it raises."""

    def of(self, names: Collection[str]) -> list[str]:
        """Tests that pass one of these guards, those in which one raises first, then those that take least."""
        found = {test for name in names for test in self.passed.get(name, ())}
        tripped = {test for name in names for test in self.tripped.get(name, ())}
        return sorted(found, key=lambda test: (test not in tripped, self.seconds[test], test))


Place = tuple[int, int, int, str]
"""Number of a guard, where it stands in its source, and how it is marked: a key of `_MARKS`."""
_MARKS = {
    "value": ("(_seen({}) or (", "))"),
    "statement": ("_seen({}); ", ""),
    "condition": ("_true({}, (", "))"),
    "refusal": ("_raising({}, lambda: (", "))"),
}


def marked(source: bytes, places: Iterable[Place], root: Path) -> bytes:
    """Return a source whose guards tell that they run; conditions and refusals, whether they have held something up.

    Lines keep their numbers. `root` is the copy: programs that Python runs in isolation know nothing of it.
    """
    beginning = f"; exec({_BEGINNING.format(root=str(root))!r})"
    added: list[tuple[int, int, int, str]] = [(_after_future(source), 0, 0, beginning)]
    for number, start, end, how in places:
        before, after = _MARKS[how]
        # at one place: ends first, the inner ones first; then starts, the outer ones first
        added += [(start, 1, start - end, before.format(number)), (end, -1, end - start, after)]
    for where, _, _, text in sorted(added, reverse=True):
        source = source[:where] + text.encode() + source[where:]
    return source


def _after_future(source: bytes) -> int:
    """Where the import ends that has to be the first one, in bytes."""
    line = next(
        node.end_lineno
        for node in ast.parse(source).body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )
    assert line is not None
    return sum(map(len, source.splitlines(keepends=True)[:line])) - 1


def pytest_sessionstart() -> None:
    """Every user that a test becomes may write."""
    for name in (SEEN, TESTS, NOW):
        (_ROOT / name).touch()
        (_ROOT / name).chmod(0o666)


def pytest_runtest_logstart(nodeid: str) -> None:
    """For processes that get none of the variables of pytest."""
    (_ROOT / NOW).write_text(f"{nodeid} (call)", encoding="utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what came of each phase of a test, and the time that it took."""
    append(TESTS, f"{report.outcome} {report.duration:.3f} {report.nodeid}\n")


def recorded(root: Path, names: list[str]) -> Passing:
    """Read what a run of pytest with this plugin has left; `names` are those of the guards, by their numbers."""
    seconds: dict[str, float] = {}
    without: set[str] = set()
    failed: list[str] = []
    for line in (root / TESTS).read_text(encoding="utf-8").splitlines():
        outcome, took, test = line.split(" ", 2)
        seconds[test] = seconds.get(test, 0.0) + float(took)
        if outcome != "passed":
            without.add(test)
        if outcome == "failed":
            failed.append(test)
    seconds = {test: round(took, 3) for test, took in seconds.items() if test not in without}
    passed: dict[str, set[str]] = {}
    tripped: dict[str, set[str]] = {}
    for line in (root / SEEN).read_text(encoding="utf-8").splitlines():
        number, _, test = line.partition(" ")
        found = tripped if number.endswith(TRIPPED) else passed
        found.setdefault(names[int(number.rstrip(TRIPPED))], set()).update(_tests(test, seconds))
    in_order = ({name: sorted(tests) for name, tests in sorted(item.items())} for item in (passed, tripped))
    return Passing(seconds, failed, *in_order)


def _tests(told: str, known: Iterable[str]) -> Iterator[str]:
    """The test that was under way; for what a fixture did all tests of the file, which may look at it."""
    test, _, phase = told.rpartition(" ")
    for name in known:
        if name == test or (phase == "(setup)" and name.partition("::")[0] == test.partition("::")[0]):
            yield name
