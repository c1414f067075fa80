"""Programs that write into an environment in the moments around an exchange: nothing of theirs disappears."""

from __future__ import annotations

import fcntl
import stat
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from envmedic.engine.fs.exchange import rename_noreplace
from envmedic.engine.generations.generations import history
from envmedic.engine.store import uv_lock
from envmedic.errors import EnvironmentBusy, RecoveryNeeded
from envmedic.model.events import Notice
from envmedic.model.record import Record
from envmedic.tree import fingerprint
from envmedic.tree.fingerprint import UV_LOCK
from tests.engine.test_crashes import is_settled
from tests.engine.world import SITE, Crash, World, fails_in_place, in_child
from tests.support.venvs import python_of, uv
from tests.support.wheels import make_wheel

LATE = f"{SITE}/late.py"


class At:
    """A `Point` that calls `act` when `name` is reached for the first time."""

    def __init__(self, name: str, act: Callable[[], object]) -> None:
        self._name = name
        self._act = act

    def __call__(self, name: str) -> None:
        if name == self._name:
            self._name = ""
            self._act()


def write(root: Path, name: str = LATE) -> Path:
    path = root / name
    path.write_text("value = 'only here'\n")
    return path


def write_aside(world: World) -> Path:
    """As a program with an open directory would, whose environment has just been moved into the store."""
    return write(next(world.store.glob("*/env")))


def refused(record: Record) -> str:
    """Everything that a refused repair says, in one text."""
    assert record.failure is not None
    assert record.failure.exit_code == 6
    return " ".join((record.failure.summary, record.failure.cause or "", *record.failure.details, *record.notes))


def notices(world: World) -> list[str]:
    return [event.code for event in world.events if isinstance(event, Notice)]


@pytest.mark.parametrize("point", ["synced", "after-ready"])
def test_a_file_written_before_the_exchange_is_seen_and_refuses_it(quick: World, point: str) -> None:
    record = quick.apply(point=At(point, lambda: write(quick.prefix)))
    assert LATE in refused(record)
    assert "while its copy was being repaired" in refused(record)
    assert (record.state, record.environment, quick.version()) == ("aborted", "unchanged", "1.0")
    assert (quick.prefix / LATE).is_file()
    assert is_settled(quick)


def test_a_file_written_after_the_last_comparison_takes_the_exchange_back(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    record = quick.apply(point=At("compared", lambda: write(quick.prefix)))
    assert LATE in refused(record)
    assert "while it was exchanged" in refused(record)
    assert (record.state, record.environment) == ("aborted", "unchanged")
    (quick.prefix / LATE).unlink()
    assert {name: content.sha256 for name, content in fingerprint.manifest(quick.prefix).items()} == {
        name: content.sha256 for name, content in old.items()
    }
    assert is_settled(quick)
    assert quick.apply().state == "done"


def test_a_file_removed_after_the_last_comparison_stays_removed(quick: World) -> None:
    gone = f"{SITE}/other1/__init__.py"
    record = quick.apply(point=At("compared", (quick.prefix / gone).unlink))
    assert gone in refused(record)
    assert not (quick.prefix / gone).exists()


def test_a_late_file_with_a_name_that_is_no_text_is_told(quick: World) -> None:
    name = b"late-\xff.bin".decode(errors="surrogateescape")
    record = quick.apply(point=At("compared", lambda: write(quick.prefix, name)))
    assert "late-\\xff.bin" in refused(record)
    assert (quick.prefix / name).is_file()
    assert quick.recover() == ()


def test_a_program_that_writes_into_both_trees_loses_nothing(quick: World) -> None:
    def act() -> None:
        write_aside(quick)
        write(quick.prefix, f"{SITE}/later.py")

    record = quick.apply(point=At("swapped", act))
    assert LATE in refused(record)
    assert f"{SITE}/later.py" in refused(record)
    assert (record.state, quick.version()) == ("undone", "1.0")
    assert (quick.prefix / LATE).is_file()
    assert (quick.store / record.transaction / "env" / SITE / "later.py").is_file()
    assert history(quick.prefix).generations[0].redo_possible


def test_a_shared_file_edited_in_place_is_in_both_trees_and_refuses_nothing(quick: World) -> None:
    shared = quick.prefix / SITE / "other1" / "__init__.py"
    record = quick.apply(point=At("compared", lambda: shared.write_text("value = 'edited in place'\n")))
    same = shared.samefile(quick.store / record.transaction / "env" / SITE / "other1" / "__init__.py")
    assert (record.state == "done") == same
    assert shared.read_text() == "value = 'edited in place'\n"


def test_files_written_before_a_failed_smoke_check_are_kept_and_named(quick: World) -> None:
    quick.checks = fails_in_place(quick)
    record = quick.apply(point=At("after-exchanged", lambda: write(quick.prefix)))
    assert record.failure is not None
    assert record.failure.exit_code == 4
    assert (record.state, quick.version()) == ("undone", "1.0")
    kept = quick.store / record.transaction / "env" / LATE
    assert kept.is_file()
    assert any(LATE in note and str(kept.parents[4]) in note for note in record.notes)
    assert "kept-files" in notices(quick)
    assert is_settled(quick)


def test_recovery_keeps_files_written_into_a_repair_that_fails_hours_later(quick: World) -> None:
    assert not in_child(lambda: quick.apply(point=Crash(0, {"after-exchanged"})))
    write(quick.prefix)
    quick.checks = fails_in_place(quick)
    (record,) = quick.recover()
    assert (record.state, quick.version()) == ("undone", "1.0")
    assert any(LATE in note for note in record.notes)
    assert (quick.store / record.transaction / "env" / LATE).is_file()


def test_recovery_of_a_repair_that_works_keeps_files_in_place(quick: World) -> None:
    assert not in_child(lambda: quick.apply(point=Crash(0, {"swapped"})))
    write(quick.prefix)
    (record,) = quick.recover()
    assert (record.state, quick.version()) == ("done", "2.0")
    assert (quick.prefix / LATE).is_file()
    assert not (quick.prefix / UV_LOCK).exists()


def test_recovery_puts_a_tree_back_that_was_written_into_while_it_was_exchanged(quick: World) -> None:
    assert not in_child(lambda: quick.apply(point=Crash(0, {"swapped"})))
    write_aside(quick)
    write(quick.prefix, f"{SITE}/later.py")
    (record,) = quick.recover()
    assert LATE in refused(record)
    assert (record.state, quick.version()) == ("undone", "1.0")
    assert (quick.prefix / LATE).is_file()
    assert (quick.store / record.transaction / "env" / SITE / "later.py").is_file()


def test_a_kill_after_the_exchange_was_taken_back_drops_no_files(quick: World) -> None:
    """The second `swapped` is that of the way back."""
    quick.checks = fails_in_place(quick)
    crash = Crash(1, {"swapped"})

    def point(name: str) -> None:
        if name == "after-exchanged":
            write(quick.prefix)
        crash(name)

    assert not in_child(lambda: quick.apply(point=point))
    (record,) = quick.recover()
    assert record.state == "undone"
    assert (quick.store / record.transaction / "env" / LATE).is_file()


def test_an_undo_that_would_hide_a_late_file_is_taken_back(quick: World) -> None:
    quick.apply()
    with pytest.raises(EnvironmentBusy) as caught:
        quick.undo(force=True, point=At("swapped", lambda: write_aside(quick)))
    assert LATE in caught.value.details
    assert quick.version() == "2.0"
    assert (quick.prefix / LATE).is_file()
    assert is_settled(quick)
    assert quick.undo(force=True).state == "undone"


def test_a_redo_that_would_hide_a_late_file_is_taken_back(quick: World) -> None:
    quick.apply()
    quick.undo()
    with pytest.raises(EnvironmentBusy):
        quick.redo(point=At("swapped", lambda: write_aside(quick)))
    assert quick.version() == "1.0"
    assert (quick.prefix / LATE).is_file()
    assert is_settled(quick)


def test_recovery_of_an_undo_names_the_files_that_it_sets_aside(quick: World) -> None:
    quick.apply()
    assert not in_child(lambda: quick.undo(point=Crash(0, {"after-undoing"})))
    write(quick.prefix)
    (record,) = quick.recover()
    assert (record.state, quick.version()) == ("undone", "1.0")
    assert any(LATE in note for note in record.notes)


def hold(lock: Path) -> Callable[[], None]:
    """Take uv's lock as uv does; returns what frees it."""
    file = lock.open("a")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file.close


def test_a_uv_that_works_for_too_long_ends_the_repair(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv_lock, "WAIT_S", 0.1)
    free = hold(quick.prefix / UV_LOCK)
    record = quick.apply()
    free()
    assert "uv works on" in refused(record)
    assert notices(quick) == ["waiting-for-uv"]
    assert (record.state, quick.version()) == ("aborted", "1.0")
    assert (quick.prefix / UV_LOCK).read_bytes() == b""
    assert quick.apply().state == "done"


def test_a_swap_back_waits_for_uv_and_is_left_to_recovery(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv_lock, "WAIT_S", 0.1)
    quick.checks = fails_in_place(quick)
    freed: list[Callable[[], None]] = []
    with pytest.raises(RecoveryNeeded, match="could not be brought to its end"):
        quick.apply(point=At("after-exchanged", lambda: freed.append(hold(quick.prefix / UV_LOCK))))
    assert quick.version() == "2.0"
    freed[0]()
    (record,) = quick.recover()
    assert (record.state, quick.version()) == ("aborted", "1.0")


@pytest.mark.parametrize("existed", [True, False])
def test_only_a_lock_file_of_uv_stays(quick: World, existed: bool) -> None:  # noqa: FBT001  # of parametrize
    lock = quick.prefix / UV_LOCK
    if existed:
        lock.touch()
    seen: list[bool] = []
    record = quick.apply(point=At("compared", lambda: seen.append(lock.is_file())))
    assert seen == [True]
    assert record.state == "done"
    assert lock.exists() == existed
    assert (quick.store / record.transaction / "env" / UV_LOCK).exists() == existed


@pytest.mark.parametrize("content", ["", uv_lock._OURS.decode()])
def test_recovery_removes_only_lock_files_of_envmedic(quick: World, content: str) -> None:
    assert not in_child(lambda: quick.apply(point=Crash(0, {"compared"})))
    kept = next(quick.store.glob("*/env"))
    left = [root / UV_LOCK for root in (quick.prefix, kept)]
    assert [path.read_bytes() for path in left] == [uv_lock._OURS] * 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in left} == {0o666}  # as uv's
    left[0].write_text(content)
    (record,) = quick.recover()
    assert record.state == "aborted"
    assert left[0].exists() == (content == "")


def test_a_lock_file_that_a_uv_makes_first_is_taken(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(source: Path, target: Path) -> None:
        target.touch()
        rename_noreplace(source, target)

    monkeypatch.setattr(uv_lock, "rename_noreplace", too_late)
    record = quick.apply()
    assert record.state == "done"
    assert (quick.prefix / UV_LOCK).read_bytes() == b""
    assert not (quick.store / record.transaction / "uv-lock").exists()


def test_an_environment_that_is_no_venv_gets_no_lock_file(quick: World) -> None:
    (quick.prefix / "pyvenv.cfg").unlink()
    (quick.prefix / "conda-meta").mkdir()
    (quick.prefix / "conda-meta" / "history").touch()
    seen: list[bool] = []
    quick.apply(point=At("compared", lambda: seen.append((quick.prefix / UV_LOCK).exists())))
    assert seen == [False]


def install(world: World, directory: Path) -> subprocess.Popen[str]:
    """Begin a real `uv pip install` of a local wheel, from outside."""
    wheel = make_wheel(directory, "latecomer", "1.0", files={"latecomer/__init__.py": b"value = 1\n"})
    options = ["-v", "--no-config", "--no-cache", "--link-mode=copy", "--offline"]
    argv = [uv(), "pip", "install", *options, "--python", str(python_of(world.prefix)), str(wheel.path)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def test_a_uv_that_starts_at_the_exchange_installs_into_the_tree_that_is_live(quick: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        running: list[subprocess.Popen[str]] = []

        def begin() -> None:
            running.append(stack.enter_context(install(quick, tmp_path)))
            assert running[0].stderr is not None
            assert any("Waiting to acquire exclusive lock" in text for text in running[0].stderr)

        record = quick.apply(point=At("compared", begin))
        running[0].communicate(timeout=120)
    assert running[0].returncode == 0
    assert (record.state, quick.version()) == ("done", "2.0")
    kept = quick.store / record.transaction / "env"
    for name in ("latecomer/__init__.py", "latecomer-1.0.dist-info/RECORD"):
        assert (quick.prefix / SITE / name).is_file()
        assert not (kept / SITE / name).exists()


def test_a_uv_that_has_installed_before_the_last_comparison_refuses_the_exchange(quick: World, tmp_path: Path) -> None:
    def whole() -> None:
        with install(quick, tmp_path) as process:
            process.communicate(timeout=120)
        assert process.returncode == 0

    record = quick.apply(point=At("after-ready", whole))
    assert "latecomer" in refused(record)
    assert (record.state, quick.version()) == ("aborted", "1.0")
    assert (quick.prefix / SITE / "latecomer-1.0.dist-info" / "RECORD").is_file()
