"""The user's own command as the step of a transaction, at the level of the engine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.generations.generations import history
from envmedic.engine.store.swap import Point, no_point
from envmedic.engine.transaction.transaction import apply
from envmedic.errors import InternalError, PreflightError
from envmedic.model.checks import Check
from envmedic.model.plan import Plan, RunInstaller
from envmedic.model.ports import EnginePorts, UserCommand
from envmedic.model.record import Record
from envmedic.tree import fingerprint
from tests.engine.world import SITE, Crash, World, in_child

INSTALL = f"cd {SITE}; rm fam/__init__.py; echo \"__version__ = '2.0'\" > fam/__init__.py; mv fam-1.0.dist-info fam-2.0.dist-info"


def plan_of(world: World) -> Plan:
    step = RunInstaller(words=("pip", "install", "fam"), directory="/")
    check = Check(name="fam-imports", role="regression", arguments=("import fam",))
    return msgspec.structs.replace(
        world.plan(),
        purpose="install",
        text="pip install fam",
        steps=(step,),
        checks=(check,),
        changes=(),
        finding=None,
    )


def install(world: World, script: str = INSTALL, *, point: Point = no_point, **options: bool) -> Record:
    def argv(python: str) -> tuple[str, ...]:
        return ("/bin/sh", "-ec", f"cd {python.removesuffix('/bin/python')}; {script}")

    ports: EnginePorts = msgspec.structs.replace(world.ports(), command=UserCommand(argv=argv, directory="/"))
    return apply(
        plan_of(world),
        options=msgspec.structs.replace(world.options, **options),
        ports=ports,
        checks=world.checks,
        stream=world.stream(),
        point=point,
    )


def test_it_is_a_generation_with_the_users_words(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    record = install(quick)
    assert (record.state, record.outcome, record.environment) == ("done", "installed", "installed")
    (told,) = history(quick.prefix).generations
    assert (told.purpose, told.text, told.undo_possible) == ("install", "pip install fam", True)
    assert quick.version() == "2.0"
    quick.undo()
    assert fingerprint.manifest(quick.prefix) == old


def test_a_plan_of_a_command_without_the_command_is_a_bug_and_changes_nothing(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    record = quick.apply(plan_of(quick))
    assert record.failure is not None
    assert (record.failure.code, record.environment) == (InternalError.code, "unchanged")
    assert "none was given" in record.failure.summary
    assert fingerprint.manifest(quick.prefix) == old


@pytest.mark.parametrize("place", ["bin", SITE, f"{SITE}/fam"])
def test_a_directory_that_lies_elsewhere_is_refused_before_the_command_runs(
    quick: World, place: str, tmp_path: Path
) -> None:
    shutil.move(quick.prefix / place, tmp_path / "there")
    (quick.prefix / place).symlink_to(tmp_path / "there")
    record = install(quick, f"touch {tmp_path}/ran")
    assert record.failure is not None
    assert (record.failure.code, record.environment) == (PreflightError.code, "unchanged")
    assert not (tmp_path / "ran").exists()


@pytest.mark.long
def test_a_kill_at_any_point_leaves_the_old_environment_or_the_new_one(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    for number in range(80):
        ended = in_child(lambda: install(quick, point=Crash(number)))  # noqa: B023  # called at once
        quick.recover()
        if quick.version() == "2.0":
            assert (quick.site / "fam" / "__init__.py").read_text() == "__version__ = '2.0'\n"
            quick.undo()
        assert fingerprint.manifest(quick.prefix) == old
        if ended:
            break
    else:
        pytest.fail("the install never came to its end")
    assert number > 20


def test_a_command_that_changes_nothing_ends_without_failure_and_generation(quick: World) -> None:
    record = install(quick, "true")
    assert (record.state, record.failure, record.outcome) == ("aborted", None, "unchanged")
    assert not (quick.store / record.transaction / "env").exists()


def test_what_the_installer_writes_into_a_shared_file_ends_the_transaction(quick: World) -> None:
    module = quick.site / "other1" / "__init__.py"
    quick.options = msgspec.structs.replace(quick.options, clone="link")
    record = install(quick, f"{INSTALL}; cd -; echo more >> {SITE}/other1/__init__.py")
    assert record.failure is not None
    assert record.state == "aborted"
    assert any("other1/__init__.py" in note for note in record.notes), record.notes
    assert quick.version() == "1.0"
    assert module.read_text().endswith("more\n"), "which is why such an installer gets a clone that shares no file"
    before = module.read_text()
    quick.options = msgspec.structs.replace(quick.options, clone="auto")
    record = install(quick, f"{INSTALL}; cd -; echo again >> {SITE}/other1/__init__.py", share_links=False)
    assert (record.state, record.clone in {"copy", "reflink"}) == ("done", True)
    quick.undo()
    assert module.read_text() == before


def test_a_directory_that_leads_out_of_the_environment_is_refused(quick: World) -> None:
    outside = quick.prefix.parent / "elsewhere"
    (quick.site / "other2").rename(outside)
    (quick.site / "other2").symlink_to(outside)
    record = install(quick)
    assert record.failure is not None
    assert "lies elsewhere" in record.failure.summary
    assert os.path.lexists(outside / "__init__.py")
    assert quick.version() == "1.0"
