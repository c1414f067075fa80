"""Manifest and lock of a project go with the environment, and only where nobody else has edited them."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from envmedic.errors import PreflightError, StalePlan
from envmedic.model.ports import Exchange
from tests.engine.world import PROJECT, Crash, World, fails_in_place, in_child, project_around


@pytest.fixture
def owned(quick: World) -> World:
    """As `quick`, in a project."""
    quick.project_edit = project_around(quick.prefix)
    return quick


def contents(world: World) -> tuple[bytes, ...]:
    return tuple((world.prefix.parent / name).read_bytes() for name in PROJECT)


BEFORE, AFTER = (tuple(sides[side] for sides in PROJECT.values()) for side in (0, 1))


def test_they_go_and_come_with_the_environment(owned: World) -> None:
    manifest = owned.prefix.parent / "pyproject.toml"
    was = manifest.stat()
    assert owned.apply().project == "edited"
    assert contents(owned) == AFTER
    assert manifest.stat().st_mode == was.st_mode
    assert owned.undo().project == "restored"
    assert contents(owned) == BEFORE
    now = manifest.stat()
    assert (now.st_ino, now.st_mtime_ns, now.st_mode) == (was.st_ino, was.st_mtime_ns, was.st_mode)
    assert owned.redo().project == "edited"
    assert contents(owned) == AFTER
    assert owned.undo().project == "restored"


@pytest.mark.usefixtures("_no_exchange")
def test_by_renames_too(owned: World) -> None:
    manifest = owned.prefix.parent / "pyproject.toml"
    was = manifest.stat()
    owned.apply()
    assert contents(owned) == AFTER
    owned.undo()
    assert contents(owned) == BEFORE
    assert (manifest.stat().st_mtime_ns, manifest.stat().st_mode) == (was.st_mtime_ns, was.st_mode)


@pytest.mark.parametrize("point", ["project-prepared", "project-file"])
def test_the_manifest_of_a_member_of_a_workspace_goes_along(quick: World, point: str) -> None:
    quick.project_edit = project_around(quick.prefix, "members/till/")
    files = [quick.prefix.parent / item.name for item in quick.project_edit.files]
    before = [path.read_bytes() for path in files]
    assert not in_child(lambda: quick.apply(point=Crash(0, {point})))
    quick.recover()
    changed = [path.read_bytes() != was for path, was in zip(files, before, strict=True)]
    assert changed == [point == "project-file"] * 2
    if point == "project-file":
        assert quick.undo().project == "restored"
    assert [path.read_bytes() for path in files] == before


def test_a_file_edited_before_the_exchange_ends_the_repair(owned: World) -> None:
    lock = owned.prefix.parent / "uv.lock"

    def edits(_exchange: Exchange) -> bool:
        lock.write_text("mine\n", encoding="utf-8")
        return True

    owned.before_exchange = edits
    record = owned.apply()
    assert record.state == "aborted"
    assert record.failure is not None
    assert record.failure.code == StalePlan.code
    assert contents(owned) == (BEFORE[0], b"mine\n")
    assert not [*owned.store.glob("*/project*")]


def test_a_link_in_the_place_of_a_file_is_never_replaced(owned: World) -> None:
    lock = owned.prefix.parent / "uv.lock"
    lock.rename(lock.with_name("shared.lock"))
    lock.symlink_to("shared.lock")
    with pytest.raises(StalePlan):
        owned.apply()
    assert lock.is_symlink()
    assert contents(owned) == BEFORE


def test_files_on_another_file_system_are_refused_before_anything_is_exchanged(owned: World, tmp_path: Path) -> None:
    edit = owned.project_edit
    assert edit is not None
    for name in PROJECT:
        shutil.copy2(owned.prefix.parent / name, tmp_path)
    if tmp_path.stat().st_dev == owned.prefix.stat().st_dev:
        pytest.skip("there is one file system alone")
    owned.project_edit = msgspec.structs.replace(edit, folder=str(tmp_path))
    record = owned.apply()
    assert (record.state, record.environment) == ("aborted", "unchanged")
    assert record.failure is not None
    assert record.failure.code == PreflightError.code
    assert "on another file system" in record.failure.summary


@pytest.mark.parametrize("name", PROJECT)
def test_a_file_edited_in_the_last_moment_leaves_all(owned: World, name: str) -> None:
    path = owned.prefix.parent / name
    record = owned.apply(point=Crash(0, {"swapped"}, lambda: path.write_text("mine\n", encoding="utf-8")))
    assert (record.state, record.project) == ("done", "left")
    assert path.read_text(encoding="utf-8") == "mine\n"
    assert {*contents(owned)} <= {*BEFORE, b"mine\n"}
    assert [item.name for item in record.project_left] == [name]
    now = contents(owned)
    assert owned.undo().project == ""
    assert contents(owned) == now


@pytest.mark.parametrize("name", PROJECT)
def test_an_undo_leaves_what_was_edited_since_and_shows_both_ways(owned: World, name: str) -> None:
    owned.apply()
    path = owned.prefix.parent / name
    path.write_text(path.read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    now = contents(owned)
    record = owned.undo()
    assert (record.state, record.project) == ("undone", "left")
    assert contents(owned) == now
    (left,) = record.project_left
    assert left.name == name
    assert "+mine\n" in left.since
    before, after = (text.decode() for text in PROJECT[name])
    assert f"-{after}+{before}" in left.left_out


def test_what_was_put_back_by_hand_is_no_edit(owned: World) -> None:
    owned.apply()
    for name, sides in PROJECT.items():
        (owned.prefix.parent / name).write_bytes(sides[0])
    assert owned.undo().project == "restored"
    assert contents(owned) == BEFORE
    assert owned.redo().project == "edited"
    assert contents(owned) == AFTER


def test_a_repair_that_fails_in_place_after_a_kill_between_both_files_puts_them_back(owned: World) -> None:
    assert not in_child(lambda: owned.apply(point=Crash(0, {"project-file"})))
    assert contents(owned) == (AFTER[0], BEFORE[1])
    owned.checks = fails_in_place(owned)
    (record,) = owned.recover()
    assert record.state == "aborted"
    assert contents(owned) == BEFORE


def test_unasked_nothing_is_written(owned: World, memory: Path) -> None:
    plan = owned.plan()
    owned.project_edit = None
    assert owned.apply(owned.plan()).project == ""
    assert plan.project_edit is not None
    assert contents(owned) == BEFORE
    assert sorted(path.name for path in memory.iterdir()) == [".envmedic", "env", *sorted(PROJECT)]
