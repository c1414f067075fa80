"""A contest counts what a tool left, and compares tools over the environments that all of them had."""

from __future__ import annotations

import venv
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gallery.repair_gallery.__main__ import hold, listed, main
from tests.gallery.repair_gallery.case import Case
from tests.gallery.repair_gallery.contest import (
    Ended,
    Ending,
    as_line,
    broken,
    compared,
    contest,
    ended_as,
    from_line,
)
from tests.gallery.repair_gallery.faults import FAULTS, Fault
from tests.gallery.repair_gallery.judge import Digests, State
from tests.gallery.repair_gallery.room import BASES, Room
from tests.gallery.repair_gallery.tools import TOOLS, Handed, absent, blamed, command
from tests.support.wheels import make_wheel

ONE = next(fault for fault in FAULTS if fault.ending == "repaired")
CONTROL = next(fault for fault in FAULTS if fault.ending == "untouched")
BEFORE = State(
    files={"a": (0o644, "1", 1)},
    works={ONE.name: False, "other": True, CONTROL.name: True},
    unmet=frozenset({"a needs b"}),
    damaged=frozenset(),
    versions={"a": ("1.0",)},
    owners={},
)
MENDED = replace(BEFORE, works={**BEFORE.works, ONE.name: True}, files={"a": (0o644, "2", 1)}, versions={"a": ("2.0",)})


@pytest.mark.parametrize(
    ("case", "after", "ending", "harm"),
    [
        (Case((ONE,)), MENDED, "repaired", ()),
        (Case((ONE,)), BEFORE, "not repaired", ()),
        (Case((ONE,)), replace(MENDED, works={**MENDED.works, "other": False}), "damaged", ("other worked",)),
        (Case((ONE,)), replace(MENDED, unmet=frozenset({"a needs c"})), "damaged", ("unmet now: a needs c",)),
        (Case((ONE,)), replace(MENDED, damaged=frozenset({"lib/a"})), "damaged", ("missing now: lib/a",)),
        (Case((ONE,), pins=("a<2",)), MENDED, "damaged", ("pin not kept: a<2",)),
        (Case((ONE,)), replace(MENDED, complaints=frozenset({"uv sync --dry-run: + a==2"})), "partly", ()),
        (Case((CONTROL,)), BEFORE, "left alone", ()),
        (Case((CONTROL,)), MENDED, "changed", ()),
    ],
)
def test_what_a_tool_left(case: Case, after: State, ending: Ending, harm: tuple[str, ...]) -> None:
    ended = ended_as(case, "mine", BEFORE, after, 2.0)
    assert (ended.ending, ended.harm) == (ending, harm)
    assert ended.moved == (after.versions != BEFORE.versions)
    assert ended.files == (after.files != BEFORE.files)
    assert from_line(as_line(ended)) == ended


def test_tools_are_compared_over_the_environments_that_all_had() -> None:
    one = Ended("mine", "x", "controls", "left alone", 0, 0, (), 0, 0, 3.0)
    rows = compared([one, replace(one, case="y", ending="changed"), replace(one, tool="other", ending="changed")])
    table = [line for line in rows.splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in table] == ["| tool", "| ---", "| mine", "| other"]
    assert table[2].split(" | ")[4:6] == ["1", ""], "left alone, and nothing changed: `y` is not counted"
    assert rows.endswith("1 environments, of 1 controls")


def test_what_would_be_broken_is_counted_by_kind_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [Case((ONE,)), Case((ONE,), last=True), Case((ONE, ONE)), Case((CONTROL,)), Case((CONTROL,))]
    *names, blank, _, _, _, last = listed(cases).splitlines()
    assert names == [case.name for case in cases]
    assert (blank, last) == ("", "| all | 1 | 1 | 1 | 2 | 5 |")
    assert main(["--list", "--only", "uv", "--only", "conda", "--folder", str(tmp_path / "gallery")]) == 0
    assert capsys.readouterr().out.endswith("| all | 24 | 0 | 0 | 2 | 26 |\n")
    assert not (tmp_path / "gallery").exists()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """A fault in an environment with nothing else in it, for which no index is asked."""
    monkeypatch.setitem(BASES, "light", ())
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    make_wheel(tmp_path / "wheels", "shelf", "1.0")
    venv.create(tmp_path / "light", symlinks=True)
    (tmp_path / "light.done").touch()
    return Fault(
        "no shelf", "missing", lambda room: room.uninstall("shelf"), "import shelf", base="light", wants=("shelf<2",)
    )


def test_the_reference_of_a_fault_has_all_that_its_program_wants(shelf: Fault, tmp_path: Path) -> None:
    asked = []

    def again(handed: Handed) -> int:
        asked.append(handed.requirements)
        return TOOLS["uv-pinned"](handed)

    with broken(Case((shelf,)), tmp_path, Digests()) as made:
        endings = [contest(made, "reference", TOOLS["reference"]).ending, contest(made, "again", again).ending]
    assert (endings, asked) == (["repaired", "repaired"], [("shelf==1.0",)])


def test_of_a_fault_that_nobody_sees_the_reference_alone_is_tried(
    shelf: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unseen = replace(shelf, name="unseen", silent=True)
    healthy = replace(unseen, name="healthy", fault=None, ending="untouched")
    pinned = replace(shelf, name="pinned", ending="refused")
    cases = [Case((fault,)) for fault in (shelf, healthy, unseen, pinned)]
    hold(cases, {"reference": TOOLS["reference"], "idle": lambda _handed: 0}, tmp_path, tmp_path / "log")
    ended = [from_line(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(one.case, one.tool, one.ending) for one in ended] == [
        ("no shelf", "reference", "repaired"), ("no shelf", "idle", "not repaired"), ("unseen", "reference", "repaired"),
        ("pinned", "idle", "left alone"),
    ]  # fmt: skip
    counted = [line for line in capsys.readouterr().out.splitlines() if " of 3 " in line]
    assert [line.split()[3:] for line in counted] == [["no", "shelf"], ["unseen"], ["pinned"]]


def test_the_module_that_an_error_names() -> None:
    frames = 'File "/env/lib/python3.11/site-packages/pandas/a.py", line 1\n  File "/env/lib/python3.11/site-packages/numpy/b.py", line 2\n'
    assert blamed(frames + "ValueError: oops") == "numpy"
    assert blamed(frames + "ImportError: cannot import name 'x' from 'click.core'") == "click"
    assert blamed(frames + "ModuleNotFoundError: No module named 'six'") == "six"
    assert blamed("Segmentation fault") is None


def test_a_command_line_gets_the_environment_and_the_log(tmp_path: Path) -> None:
    room = Room(tmp_path / "env")
    handed = Handed(room, lambda _room: None, ("a==1",), tmp_path / "log", "pass")
    assert command(f"cp {tmp_path}/asked.txt {tmp_path}/got")(handed) == 0
    assert (tmp_path / "got").read_text() == "a==1\n"
    assert command("test {prefix} = " + str(room.prefix))(handed) == 0
    assert command("/nowhere/tool {log}")(handed) == 127
    assert absent("/nowhere/tool {log}")
    assert not absent("{python} -m pip check")
