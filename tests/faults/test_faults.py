"""A slice of each part of `make faults`, in processes of their own, which mount and adopt what they like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.support import LIMIT_S, ROOT
from tests.faults import mutations, passing, seen, sigkill, tables
from tests.faults.cases import Tried, attempt, rows, summary
from tests.faults.room import Room, Skipped

OUTCOMES = {
    "sigkill": {"old", "new"},
    "turns": {"old"},
    "calls": {"new", "old"},
    "limits": {"old"},
    "children": {"old"},
    "memory": {"old"},
    "clocks": {"old", "new"},
    "network": {"old", "new"},
    "installers": {"old"},
    "filesystems": {"old"},
    "powercut": {"whole"},
    "renames": {"old"},
    "additions": {"new"},
    "sharing": {"new"},
    "state": {"old"},
}
"""Part → what its slice has to end with."""
ALWAYS = {"sigkill", "powercut", "state"}
"""Parts whose slices are no long tests."""


def tried(part: str, folder: Path) -> list[Tried]:
    """Run the slice of a part."""
    document = folder / "tried.json"
    command = [sys.executable, "-m", "tests.faults", "--part", part, "--short", "--json", str(document)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=4 * LIMIT_S - 300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return msgspec.json.decode(document.read_bytes(), type=list[Tried])


@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    "part", [part if part in ALWAYS else pytest.param(part, marks=pytest.mark.long) for part in OUTCOMES]
)
def test_the_environment_is_whole_whatever_happens(part: str, tmp_path: Path) -> None:
    found = tried(part, tmp_path)
    reasons = {item.told for item in found if item.outcome == "skipped"}
    if found and all(item.outcome == "skipped" for item in found):
        pytest.skip("; ".join(sorted(reasons)))
    assert {item.outcome for item in found} - {"skipped"} <= OUTCOMES[part]
    assert reasons or {item.outcome for item in found} == OUTCOMES[part]
    if part == "sigkill":
        assert sum(item.case.count(",") for item in found) >= 4, "SIGKILLs inside recoveries"


def test_what_does_not_hold_fails_its_case_and_says_where() -> None:
    def broken() -> tuple[str, str]:
        assert 1 + 1 == 3, "arithmetic"
        return "old", ""

    item = attempt("part", "case", broken)
    assert item.failed
    assert "broken" in item.told
    assert "arithmetic" in item.told


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda item: item.name)
def test_what_is_broken_on_purpose_is_still_there(mutation: mutations.Mutation) -> None:
    assert mutation.part in OUTCOMES
    assert mutations.mutated(mutation, ROOT / "envmedic")


def test_a_case_that_fails_leaves_the_old_environment_to_the_next_one(tmp_path: Path) -> None:
    room = Room.build(tmp_path)

    def fail() -> None:
        with room.given_back():
            (room.prefix / "pyvenv.cfg").unlink()
            (room.prefix / "bin" / "new").touch()
            (room.prefix.parent / ".envmedic").mkdir()
            (room.temporary / "left").touch()
            raise AssertionError("neither")

    with pytest.raises(AssertionError, match="neither"):
        fail()
    assert room.side() == "old"
    assert not room.leaks()
    room.whole("apply")


def test_a_marked_guard_tells_and_does_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"from __future__ import annotations\ndef work(a: int) -> int:\n    str(a)\n    return (a | 2) + 1\n"
    places = [(0, source.index(b"str"), source.index(b"str") + 6, "statement")]
    for number, text in ((1, b"a | 2"), (2, b"(a | 2) + 1"), (3, b"2")):
        places.append((number, source.index(text), source.index(text) + len(text), "value"))
    told: list[int] = []
    monkeypatch.setattr(seen, "seen", told.append)
    names: dict[str, Any] = {}
    exec(passing.marked(source, places, ROOT), names)  # it was written here
    assert names["work"](4) == 7
    assert told == [0, 2, 1, 3]


def test_tests_that_pass_a_guard_come_in_the_order_of_their_time(tmp_path: Path) -> None:
    (tmp_path / seen.TESTS).write_text(
        "passed 2.0 t.py::slow\npassed 0.5 t.py::quick\nfailed 0.1 t.py::bad\npassed 1.0 u.py::other\n"
    )
    (tmp_path / seen.SEEN).write_text(
        "0 t.py::slow (call)\n0 t.py::quick (call)\n0! t.py::slow (call)\n0 t.py::bad (call)\n1 t.py::bad (setup)\n"
    )
    found = passing.recorded(tmp_path, ["first", "second"])
    assert found.of(["first"]) == ["t.py::slow", "t.py::quick"]
    assert found.of(["second"]) == ["t.py::quick", "t.py::slow"], "what a fixture did concerns all tests of the file"
    assert found.failed == ["t.py::bad"]


def test_what_cannot_be_tried_is_skipped_with_its_reason() -> None:
    def skip() -> tuple[str, str]:
        raise Skipped("no such file system")

    item = attempt("part", "case", skip)
    assert (item.outcome, item.told) == ("skipped", "no such file system")
    assert list(summary([item, item])) == ["part            2 cases: 2 skipped"]
    assert "no such file system" in next(rows([item]))


def test_sigkills_are_counted_by_operation_and_by_step() -> None:
    mode = sigkill.Mode("namespace", "link")
    scenario = sigkill.Scenario(number=3, operation="undo", mode=mode, at=1)
    kills = ("undo: swapped", "recover: mended", "recover: mended")
    survived = sigkill.Survived(scenario=scenario, step="swapped", kills=kills, side="old", orphans=2)
    assert list(tables.by_mode([survived, survived]))[2] == "| undo | namespace | link | 2 | 6 | 2 | 0 | 4 | 0 |"
    assert list(tables.by_step([survived]))[2:] == ["| mended |  |  |  | 2 |", "| swapped |  | 1 |  |  |"]
