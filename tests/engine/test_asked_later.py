"""What passed before the steps is asked only for what fails after them, and of a copy: nothing of the environment changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.store.swap import Point, no_point
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit, Notice
from envmedic.model.ports import ApplyOptions, CheckRunner, Runner
from envmedic.model.record import Record
from envmedic.tree import fingerprint
from tests.engine.test_apply import STAGINGS, failure_code, unchanged
from tests.engine.world import Crash, World, finding, in_child, make_environment, run_python_checks

pytestmark = pytest.mark.long

OTHERS = Check(name="others", role="regression", arguments=("import other1, other2",))
WAS_THERE = (
    "import other3, pathlib, sysconfig; "
    "assert pathlib.Path(sysconfig.get_path('purelib'), 'fam-1.0.dist-info').exists()"
)
OLD = Check(name="old-metadata", role="regression", arguments=(WAS_THERE,))
NEVER = Check(name="never", role="informative", arguments=("import other4, nothing_has_this",))


def contents(root: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, time and digest of every file and directory."""
    found = {}
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, digest)
    return found


def noting(asked: list[tuple[str, str]]) -> CheckRunner:
    """Run checks as Python code with byte code on, and note each with its phase and its tree."""

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        asked.extend((f"{phase} {check.name}", os.fspath(runner.tree)) for check in checks)
        return run_python_checks(checks, runner, phase, emit)

    return run


def repaired(world: World, *checks: Check, point: Point = no_point) -> tuple[Record, list[tuple[str, str]]]:
    asked: list[tuple[str, str]] = []
    world.checks = noting(asked)
    return world.apply(world.plan(checks=(*world.plan().checks, *checks)), point=point), asked


@pytest.mark.parametrize("confirmed", [True, None])
def test_what_passes_afterwards_is_never_asked_before(world: World, confirmed: bool | None) -> None:  # noqa: FBT001
    asked: list[tuple[str, str]] = []
    world.checks = noting(asked)
    plan = world.plan(checks=(*world.plan().checks, OTHERS), finding=finding(confirmed=confirmed))
    record = world.apply(plan)
    assert record.state == "done"
    assert [name for name, _ in asked] == [
        "before fam-imports",
        "after fam-imports",
        "after others",
        "smoke fam-imports",
    ]
    assert [item.check for item in record.checks_before] == ["fam-imports"]


@pytest.mark.parametrize("staging", STAGINGS)
def test_a_regression_is_found_in_a_copy_of_the_environment_as_it_was(tmp_path: Path, staging: str) -> None:
    world = World(
        make_environment(tmp_path / "env"), msgspec.convert({"staging": staging, "clone": "link"}, ApplyOptions)
    )
    before, manifest = contents(world.prefix), fingerprint.manifest(world.prefix)
    record, asked = repaired(world, OTHERS, OLD, NEVER)
    assert failure_code(record) == "checks-failed"
    assert len(record.regressions) == 1
    assert record.regressions[0].startswith("old-metadata on cpu: fail")
    assert {item.check: item.status for item in record.checks_before} == {
        "fam-imports": "fail", "old-metadata": "pass", "never": "fail",
    }  # fmt: skip
    trees = dict(asked)
    assert trees["before old-metadata"] == trees["before never"]
    assert trees["before old-metadata"] not in {trees["before fam-imports"], os.fspath(world.prefix)}
    assert contents(world.prefix) == before, "byte code and times included"
    assert unchanged(world, manifest, record)


def test_what_failed_before_too_is_told_and_decides_nothing(world: World) -> None:
    record, asked = repaired(world, NEVER)
    assert record.state == "done"
    assert "before never" in dict(asked)
    assert [item.message for item in world.events if isinstance(item, Notice)] == ["Did they pass before? never"]
    assert not (world.store / record.transaction / "trash").exists()


def test_the_copy_shows_the_environment_as_it_was_before_every_step(world: World) -> None:
    code = "import fam; raise SystemExit('repaired')"
    record, _ = repaired(world, Check(name="version", role="informative", arguments=(code,)))
    reasons = {item.check: item.reason for item in record.checks_before}
    assert reasons["version"] == "ImportError: built for another torch"


def test_where_a_clone_is_a_whole_copy_all_is_asked_before_the_steps(world: World) -> None:
    world.options = ApplyOptions(clone="copy")
    record, asked = repaired(world, OTHERS, NEVER)
    assert record.state == "done"
    assert len({tree for name, tree in asked if name.startswith("before")}) == 1
    assert [name for name, _ in asked][:3] == ["before fam-imports", "before others", "before never"]


@pytest.mark.parametrize("at", [0, 1])
def test_a_kill_while_the_copy_is_made_leaves_nothing_behind(world: World, at: int) -> None:
    before = fingerprint.manifest(world.prefix)
    assert not in_child(lambda: repaired(world, NEVER, point=Crash(at, {"cloning-original"})))
    (record,) = world.recover()
    assert unchanged(world, before, record)
