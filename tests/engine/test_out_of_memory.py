"""Memory that runs out is no bug of envmedic; and a bug says whether there is something to recover."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from envmedic.cli.commands import generations
from envmedic.cli.main import main
from envmedic.engine.clone.clone import clone
from envmedic.errors import OutOfMemory, RecoveryNeeded
from envmedic.installers.wheels.cancellable import Hold, beside
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit, EventStream
from envmedic.model.ports import Runner
from tests.cli.support import Done
from tests.engine.test_crashes import is_settled
from tests.engine.world import World, fails_in_place
from tests.real.manifest import manifest


def raising(error: Exception, at: str) -> Callable[[str], None]:
    def point(name: str) -> None:
        if name == at:
            raise error

    return point


@pytest.mark.parametrize("step", ["cloning", "step-taken", "marked", "synced", "after-ready"])
def test_before_the_exchange_the_environment_stays_as_it_is(quick: World, step: str) -> None:
    record = quick.apply(point=raising(MemoryError(), step))
    assert record.failure is not None
    assert (record.state, record.failure.code, record.failure.exit_code) == ("aborted", "out-of-memory", 1)
    assert record.failure.hint
    assert is_settled(quick)
    assert quick.version() == "1.0"


@pytest.mark.parametrize("step", ["swapped", "after-exchanged", "before-done"])
def test_after_the_exchange_there_is_something_to_recover(quick: World, step: str) -> None:
    with pytest.raises(RecoveryNeeded) as caught:
        quick.apply(point=raising(MemoryError(), step))
    assert caught.value.cause
    quick.recover()
    assert is_settled(quick)
    assert quick.version() == "2.0"


@pytest.mark.parametrize(("step", "left"), [("step-taken", False), ("after-exchanged", True)])
def test_what_a_bug_leaves_to_recover_is_told_by_the_stream(
    quick: World, monkeypatch: pytest.MonkeyPatch, step: str, *, left: bool
) -> None:
    stream = EventStream([])
    monkeypatch.setattr(quick, "stream", lambda: stream)
    with pytest.raises(ZeroDivisionError):
        quick.apply(point=raising(ZeroDivisionError(), step))
    assert (stream.transaction is not None) == left
    quick.recover()
    assert stream.transaction is None


def test_a_check_that_is_killed_in_place_puts_the_old_environment_back_and_is_told_as_that(quick: World) -> None:
    fails = fails_in_place(quick)

    def killed(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        outcomes = fails(checks, runner, phase, emit)
        return tuple(msgspec.structs.replace(item, signal="SIGKILL") for item in outcomes)

    quick.checks = killed
    record = quick.apply()
    assert record.failure is not None
    assert (record.state, record.failure.exit_code) == ("aborted", 4)
    assert "memory" in (record.failure.hint or "")
    assert is_settled(quick)
    assert quick.version() == "1.0"


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_clone_is_made_without_a_second_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / "old" / str(number)).mkdir(parents=True)
        (tmp_path / "old" / str(number) / "file").write_text(f"{number}")
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    clone(tmp_path / "old", tmp_path / "new", "link")
    assert manifest(tmp_path / "new") == manifest(tmp_path / "old")


def test_work_that_needs_a_thread_says_that_none_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(OutOfMemory):
        beside(lambda: 1, lambda: None, Hold())


def test_the_program_tells_it_with_a_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(*_arguments: object) -> int:
        raise MemoryError

    monkeypatch.setattr(generations, "history", exhausted)
    code = main(["history", "--json"])
    done = Done(code, *capsys.readouterr())
    assert (done.code, done.document["code"], done.document["exit_code"]) == (1, "out-of-memory", 1)
    assert done.document["hint"]
