from __future__ import annotations

import dataclasses
import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envmedic.engine.store import lock as locks
from envmedic.engine.store.installed_by_repairs import noted
from envmedic.engine.store.journal import interrupted
from envmedic.engine.store.layout import Store
from envmedic.engine.store.lock import locked
from envmedic.errors import EnvironmentBusy, PreflightError, RecoveryNeeded
from envmedic.tree.fingerprint import MARKER
from tests.engine.world import Crash, World, in_child, make_environment

HOLD = """
import sys, time
from pathlib import Path
from envmedic.engine.store.layout import Store
from envmedic.engine.store.lock import locked
with locked(Store.of(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_envmedic_on_the_same_environment_is_told_who_works_on_it(quick: World) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, quick.prefix], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentBusy) as caught:
            quick.apply()
        assert caught.value.exit_code == 6
        assert f"Process {holder.pid} " in (caught.value.cause or "")
        holder.communicate(b"")
    assert quick.apply().state == "done"


def test_two_environments_of_one_parent_do_not_wait_for_each_other(quick: World) -> None:
    other = dataclasses.replace(quick, prefix=make_environment(quick.prefix.parent / "other"))
    with locked(Store.of(other.prefix)):
        assert quick.apply().state == "done"
    assert other.apply().state == "done"
    assert quick.undo().state == "undone"
    assert (quick.version(), other.version()) == ("1.0", "2.0")


def test_the_lock_is_free_after_the_holder_is_killed(world: World) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, world.prefix], stdin=-1, stdout=-1) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    with locked(Store.of(world.prefix)):
        pass


def test_orphans_of_a_killed_holder_are_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.of(world.prefix)
    with locked(store) as fd:
        orphan = subprocess.Popen(["/bin/sleep", "600"], pass_fds=[fd])
        gone = subprocess.Popen(["/bin/true"])
        gone.wait()
        os.pwrite(fd, f"{gone.pid}\n".encode().ljust(10), 0)
    monkeypatch.setattr(locks, "ORPHANS_S", 0.2)
    with pytest.raises(EnvironmentBusy, match="Processes of an interrupted envmedic still run"), locked(store):
        pass
    monkeypatch.setattr(locks, "ORPHANS_S", 300.0)
    orphan.terminate()
    started = time.monotonic()
    with locked(store):
        pass
    orphan.wait()
    assert time.monotonic() - started < 300


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"started": "1"}, "process {pid} that took it is gone"),
        ({"boot": "earlier"}, "process {pid} that took it is gone"),
        ({"boot": "other", "host": "node-7"}, "taken by process {pid} on node-7; from here its holder cannot be seen"),
        ({"namespace": "pid:[1]"}, "taken by process {pid} in another container; from here its holder cannot be seen"),
        ({}, "Process {pid} holds"),
    ],
)
def test_a_process_id_that_is_another_process_now_is_not_taken_for_the_holder(
    world: World, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], says: str
) -> None:
    monkeypatch.setattr(locks, "ORPHANS_S", 0.2)
    with locked(Store.of(world.prefix)) as fd:
        words = os.pread(fd, 1024, 0).decode().split()
        told = {**dict(zip(("pid", "started", "boot", "namespace", "host"), words, strict=True)), **changes}
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{' '.join(told.values())}\n".encode(), 0)
        with pytest.raises(EnvironmentBusy) as caught, locked(Store.of(world.prefix)):
            pass
    assert says.format(pid=os.getpid()) in (caught.value.cause or "")


def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    (tmp_path / ".envmedic").write_text("not a directory")
    with pytest.raises(PreflightError), locked(Store.of(prefix)):
        pass


def test_a_very_long_name_can_be_locked(tmp_path: Path) -> None:
    prefix = tmp_path / ("n" * 255)
    prefix.mkdir()
    with locked(Store.of(prefix)):
        assert len(Store.of(prefix).lock.name) < 100


def test_a_reader_sees_who_holds_the_lock_and_takes_nothing(world: World) -> None:
    store = Store.of(world.prefix)
    assert locks.holder(store) is None
    assert not world.store.exists()
    with locked(store):
        assert locks.holder(store) == os.getpid()
    assert locks.holder(store) is None


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_lock_that_cannot_be_written_is_no_bug(
    quick: World, monkeypatch: pytest.MonkeyPatch, number: int, *, interrupted: bool
) -> None:
    crash = Crash(0, {"cloning"} if interrupted else {"none"})
    assert in_child(lambda: quick.apply(point=crash)) is not interrupted

    def refuse(*_arguments: object) -> int:
        raise OSError(number, os.strerror(number), "env.lock")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(RecoveryNeeded if interrupted else PreflightError) as caught:
        quick.recover() if interrupted else quick.undo()
    assert os.strerror(number) in (caught.value.cause or "")
    assert caught.value.hint
    assert caught.value.environment == ("recoverable" if interrupted else "unchanged")
    monkeypatch.undo()
    assert bool(quick.recover()) is interrupted


def test_nothing_is_done_while_another_envmedic_works_on_the_environment(quick: World) -> None:
    record = quick.apply()
    store = Store.of(quick.prefix)
    with locked(store):
        with pytest.raises(EnvironmentBusy):
            quick.undo()
        with pytest.raises(EnvironmentBusy):
            noted(quick.prefix, record, ("a note",))
    quick.undo()
    with locked(store), pytest.raises(EnvironmentBusy):
        quick.redo()
    assert quick.version() == "1.0"


def test_an_interrupted_repair_is_settled_by_none_but_the_holder_of_the_lock(quick: World) -> None:
    assert not in_child(lambda: quick.apply(point=Crash(0, {"swapped"})))
    with locked(Store.of(quick.prefix)):
        before = (quick.prefix / MARKER).read_bytes()
        with pytest.raises(EnvironmentBusy):
            quick.apply()
        assert (quick.prefix / MARKER).read_bytes() == before
        assert Store.of(quick.prefix).transactions()
        assert interrupted(Store.of(quick.prefix))
