from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.verify.verification import run_checks
from envmedic.errors import ChecksFailed, EnvironmentBusy, PreflightError, RecoveryNeeded, RepairDeclined, StalePlan
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit, Event, Notice, StageStarted, StateChanged, StepFinished
from envmedic.model.findings import Evidence, Finding
from envmedic.model.plan import Install, Purge
from envmedic.model.ports import ApplyOptions, CheckRunner, ProcessUser, Runner
from envmedic.model.record import Record
from envmedic.model.registries.modes import AllowName
from envmedic.tree import fingerprint
from tests.engine.world import SITE, World, artifact, finding, make_environment, replacement, run_python_checks

STAGINGS = ("namespace", "relocate")


def failure_code(record: Record) -> str | None:
    return record.failure.code if record.failure else None


def unchanged(world: World, before: dict[str, fingerprint.PathContent], record: Record) -> bool:
    """Whether the environment is as it was and nothing but the record is kept."""
    kept = {path.name for path in (world.store / record.transaction).iterdir()} & {"env", "trash", "displaced"}
    return fingerprint.manifest(world.prefix) == before and record.environment == "unchanged" and not kept


@pytest.mark.parametrize("staging", STAGINGS)
def test_undo_gives_the_old_tree_back_byte_for_byte_and_redo_the_new_one(tmp_path: Path, staging: str) -> None:
    world = World(make_environment(tmp_path / "env"), msgspec.convert({"staging": staging}, ApplyOptions))
    old, old_root = fingerprint.manifest(world.prefix), fingerprint.fingerprint(world.prefix).entries["."]
    record = world.apply()
    assert (record.state, record.environment, record.staging) == ("done", "repaired", staging)
    assert world.version() == "2.0"
    new = fingerprint.manifest(world.prefix)
    for _ in range(2):
        assert world.undo().environment == "restored"
        assert fingerprint.manifest(world.prefix) == old
        assert fingerprint.fingerprint(world.prefix).entries["."] == old_root
        assert world.redo().state == "done"
        assert fingerprint.manifest(world.prefix) == new


@pytest.mark.parametrize("staging", STAGINGS)
def test_scripts_made_in_the_clone_run_at_the_true_path(tmp_path: Path, staging: str) -> None:
    world = World(make_environment(tmp_path / "my env ü"), msgspec.convert({"staging": staging}, ApplyOptions))
    world.apply()
    ran = subprocess.run([world.prefix / "bin" / "fam"], capture_output=True, text=True, check=True)
    assert ran.stdout == "2.0\n"


def test_a_real_venv_is_proven_by_the_real_checks(tmp_path: Path) -> None:
    prefix = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    (prefix / SITE / "fam").mkdir()
    (prefix / SITE / "fam" / "__init__.py").write_text("raise ImportError('built for another torch')\n")
    (prefix / SITE / "fam-1.0.dist-info").mkdir()
    world = World(prefix, checks=partial(run_checks, no_gpu=True))
    old = fingerprint.manifest(prefix)
    record = world.apply(world.plan(checks=(Check(name="import", role="playbook", arguments=("fam", "json")),)))
    assert [(item.check, item.status) for item in record.checks_before] == [
        ("import fam", "fail"),
        ("import json", "pass"),
    ]
    assert {item.status for item in (*record.checks_after, *record.smoke)} == {"pass"}
    assert record.smoke
    assert not list(prefix.rglob("*.pyc")), "the smoke check wrote byte code into the live environment"
    world.undo()
    assert fingerprint.manifest(prefix) == old


def test_an_environment_is_reached_through_a_symbolic_link(tmp_path: Path) -> None:
    make_environment(tmp_path / "real" / "env")
    (tmp_path / "link").symlink_to("real/env")
    world = World(tmp_path / "link")
    assert world.apply().state == "done"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / ".envmedic").is_dir()
    world.undo()
    assert world.version() == "1.0"


def test_everything_about_a_transaction_is_kept_in_its_directory(world: World) -> None:
    record = world.apply()
    directory = world.store / record.transaction
    assert stat.S_IMODE(world.store.stat().st_mode) == stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert (world.store / ".gitignore").read_text() == "*\n"
    assert (world.store / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert json.loads((directory / "plan.json").read_text())["id"] == "plan-2.0"
    assert msgspec.json.decode((directory / "record.json").read_bytes(), type=Record) == record
    events = [msgspec.json.decode(line, type=Event) for line in (directory / "events.jsonl").read_bytes().splitlines()]
    assert {event.transaction for event in events} == {record.transaction}
    assert [event.data.state for event in events if isinstance(event.data, StateChanged)] == [
        "repairing",
        "ready",
        "exchanged",
        "done",
    ]
    assert [event.sequence for event in events] == sorted(event.sequence for event in events)
    assert record.before != record.after
    assert set(record.seconds) >= {"preflight", "clone", "reproduce", "steps", "verify", "smoke"}


def test_a_fault_that_neither_reproduces_nor_is_confirmed_is_not_repaired(world: World) -> None:
    healthy = (Check(name="fam-imports", role="playbook", arguments=("pass",)),)
    before = fingerprint.manifest(world.prefix)
    record = world.apply(world.plan(checks=healthy, finding=finding(confirmed=None)))
    assert failure_code(record) == "not-confirmed"
    assert record.failure is not None
    assert record.failure.exit_code == 1
    assert unchanged(world, before, record)


def test_an_unconfirmed_fault_that_reproduces_is_repaired(world: World) -> None:
    assert world.apply(world.plan(finding=finding(confirmed=None))).state == "done"


def by_module(asked: list[str]) -> CheckRunner:
    """Run import checks a module at a time, as the kernels do; note what was asked before the steps."""

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        asked.extend(f"{check.name} {check.role}" for check in checks if phase == "before")
        found: list[Outcome] = []
        for check in checks:
            if check.name != "import":
                found += run_python_checks((check,), runner, phase, emit)
                continue
            for name in check.arguments:
                code = msgspec.structs.replace(check, name=f"import {name}", arguments=(f"import {name}",))
                found += run_python_checks((code,), runner, phase, emit)
        return tuple(found)

    return run


def reported(error: str) -> Finding:
    seen = Evidence(kind="text", where="log:1", what=f"{error} (2 lines like it)")
    return msgspec.structs.replace(finding(confirmed=None), evidence=(seen,))


PASSES = Check(name="facts", role="playbook", arguments=("pass",))
IMPORTS = Check(name="import", role="regression", arguments=("json", "fam"))
LONG = Check(name="long", role="informative", arguments=("pass",))


def test_a_check_of_any_role_that_shows_the_reported_error_reproduces_the_fault(world: World) -> None:
    asked: list[str] = []
    world.checks = by_module(asked)
    error = reported("ImportError: built for another torch")
    record = world.apply(world.plan(checks=(PASSES, IMPORTS, LONG), finding=error))
    assert record.state == "done", record.failure
    assert asked == ["facts playbook", "import regression"], "what passes afterwards is not asked before"
    roles = {item.check: item.role for item in (*record.checks_before, *record.checks_after)}
    assert (roles["import fam"], roles["import json"]) == ("reproduction", "regression")


def test_what_no_check_shows_ends_before_the_long_checks(world: World) -> None:
    asked: list[str] = []
    world.checks = by_module(asked)
    record = world.apply(world.plan(checks=(PASSES, IMPORTS, LONG), finding=reported("ImportError: quite another one")))
    assert failure_code(record) == "not-confirmed"
    assert asked == ["facts playbook", "import regression"]


def test_a_failing_step_leaves_the_environment_unchanged(world: World) -> None:
    before = fingerprint.manifest(world.prefix)
    record = world.apply(world.plan(*replacement("2.0"), Install(artifacts=(artifact("fam", "2.0"),))))
    assert record.failure is not None
    assert (record.failure.code, record.failure.exit_code) == ("installer", 1)
    assert "FileExistsError" in (record.failure.cause or "")
    assert [event.ok for event in world.events if isinstance(event, StepFinished)] == [True, True, False]
    assert unchanged(world, before, record)


def test_a_failing_check_leaves_the_environment_unchanged(world: World) -> None:
    before = fingerprint.manifest(world.prefix)
    checks = (Check(name="fam-works", role="playbook", arguments=("import fam; assert fam.__version__ == '2.5'",)),)
    record = world.apply(world.plan(checks=checks))
    assert record.failure is not None
    assert (record.failure.code, record.failure.exit_code, record.state) == ("checks-failed", 4, "aborted")
    assert record.rounds[0].failed
    assert unchanged(world, before, record)


def test_a_check_that_writes_through_a_hard_link_is_told(world: World) -> None:
    world.options = ApplyOptions(clone="link")
    write = "import other1; open(other1.__file__, 'a').write('# written in place'); import fam; assert 0"
    check = Check(name="fam-imports", role="playbook", arguments=(write,))
    record = world.apply(msgspec.structs.replace(world.plan(), checks=(check,)))
    assert record.state == "aborted"
    text = f"1 file of {world.prefix} changed during the repair: {SITE}/other1/__init__.py"
    assert text in record.notes
    assert text in [event.message for event in world.events if isinstance(event, Notice)]


def test_a_regression_leaves_the_environment_unchanged(world: World) -> None:
    code = "import pathlib, sysconfig; assert pathlib.Path(sysconfig.get_path('purelib'), 'fam-1.0.dist-info').exists()"
    checks = (*world.plan().checks, Check(name="old-metadata", role="regression", arguments=(code,)))
    before = fingerprint.manifest(world.prefix)
    record = world.apply(world.plan(checks=checks))
    assert failure_code(record) == "checks-failed"
    assert "old-metadata" in record.regressions[0]
    assert unchanged(world, before, record)


def test_what_fails_at_the_true_path_is_exchanged_back(world: World) -> None:
    code = "import fam, pathlib, sys; assert not pathlib.Path(sys.prefix, '.envmedic-tx').exists(), 'live'"
    before = fingerprint.manifest(world.prefix)
    record = world.apply(world.plan(checks=(Check(name="fam-imports", role="playbook", arguments=(code,)),)))
    assert (record.state, failure_code(record)) == ("aborted", "checks-failed")
    assert record.smoke[0].status == "fail"
    assert "exchanged" in [event.state for event in world.events if isinstance(event, StateChanged)]
    assert unchanged(world, before, record)


def test_a_change_of_the_original_meanwhile_is_kept_and_told(world: World) -> None:
    edited = world.site / "other1" / "__init__.py"

    def edit(name: str) -> None:
        if name == "verified":
            edited.write_text("value = 'changed by its user'\n")

    record = world.apply(point=edit)
    assert failure_code(record) == "busy"
    assert record.failure is not None
    assert record.failure.details == (f"{SITE}/other1/__init__.py",)
    assert edited.read_text() == "value = 'changed by its user'\n"
    assert world.version() == "1.0"


def test_byte_code_that_the_original_gets_meanwhile_does_not_count(world: World) -> None:
    def use(name: str) -> None:
        if name == "verified":
            subprocess.run([world.prefix / "bin" / "python", "-c", "import other1"], check=True)

    assert world.apply(point=use).state == "done"


def test_gpu_checks_without_a_gpu_are_refused_before_anything_is_fetched(world: World) -> None:
    with pytest.raises(ChecksFailed) as caught:
        world.apply(world.plan(gpu_checks=True))
    assert (int(caught.value.exit_code), caught.value.cause) == (4, "no driver")
    assert world.installer.fetched == []
    assert not world.store.exists()


def test_the_user_can_do_without_gpu_checks(world: World) -> None:
    world.options = ApplyOptions(no_gpu=True)
    record = world.apply(world.plan(gpu_checks=True))
    assert (record.state, record.gpu, record.gpu_reason) == ("done", "not verified", "--no-gpu")
    assert world.installer.fetched == ["fam"]


def test_a_plan_for_another_state_of_the_environment_is_refused(world: World) -> None:
    plan = world.plan()
    (world.site / "other2" / "new.py").write_text("")
    with pytest.raises(StalePlan):
        world.apply(plan)
    assert world.version() == "1.0"


def test_a_declined_plan_changes_nothing(world: World) -> None:
    world.confirm = lambda _plan: False
    before = fingerprint.manifest(world.prefix)
    with pytest.raises(RepairDeclined):
        world.apply()
    assert fingerprint.manifest(world.prefix) == before
    assert world.installer.fetched == []


def test_an_environment_in_use_is_refused_unless_allowed(world: World) -> None:
    world.processes = lambda _prefix: (ProcessUser(pid=4242, command="jupyter", why="exe"),)
    with pytest.raises(EnvironmentBusy) as caught:
        world.apply()
    assert "4242 jupyter" in caught.value.details[0]
    allow: tuple[AllowName, ...] = ("in-use",)
    world.options = ApplyOptions(allow=allow)
    assert world.apply().state == "done"


def test_a_store_of_another_user_is_refused(world: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    world.store.mkdir()
    os.chown(world.store, 54321, 54321)
    with pytest.raises(PreflightError, match="belongs to 54321, and root does not work on it"):
        world.apply()


def test_a_bug_drops_the_clone_and_surfaces(world: World) -> None:
    def bug(name: str) -> None:
        if name == "reproduced":
            raise ZeroDivisionError

    before = fingerprint.manifest(world.prefix)
    with pytest.raises(ZeroDivisionError):
        world.apply(point=bug)
    assert fingerprint.manifest(world.prefix) == before
    assert not list(world.store.glob("*/env"))


@pytest.mark.parametrize("name", ["tree-discarded", "after-exchanged", "before-done"])
def test_an_error_of_the_system_while_settling_is_left_to_recovery(quick: World, name: str) -> None:
    def full(point: str) -> None:
        if point == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = fingerprint.manifest(quick.prefix)
    healthy = name != "tree-discarded"
    plan = quick.plan() if healthy else quick.plan(*replacement("2.0"), Purge(leftovers=("..",)))
    with pytest.raises(RecoveryNeeded) as caught:
        quick.apply(plan, point=full)
    assert (caught.value.environment, "No space left" in (caught.value.cause or "")) == ("recoverable", True)
    assert quick.recover()[0].state == ("done" if healthy else "aborted")
    assert healthy or fingerprint.manifest(quick.prefix) == before


def test_a_reader_of_events_that_is_gone_does_not_stop_a_repair_in_place(world: World) -> None:
    def broken(event: Event) -> None:
        if isinstance(event.data, StateChanged) and event.data.state in {"exchanged", "done"}:
            raise BrokenPipeError(32, "Broken pipe")

    stream = world.stream()
    stream.add(broken)
    world.stream = lambda: stream  # type: ignore[method-assign]
    record = world.apply()
    assert record.state == "done"
    assert any("Broken pipe" in note for note in record.notes)


def test_stages_are_announced_in_order(world: World) -> None:
    world.apply()
    stages = [event.stage for event in world.events if isinstance(event, StageStarted)]
    assert stages == [
        "preflight",
        "fetch",
        "fingerprint",
        "clone",
        "reproduce",
        "steps",
        "verify",
        "fingerprint",
        "smoke",
    ]
    assert not [event for event in world.events if isinstance(event, Notice)]
