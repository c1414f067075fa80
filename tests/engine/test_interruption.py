"""Ctrl-C, SIGTERM and cancelling: before the exchange nothing happened, from it on the repair finishes."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.store.interruption import Interruption
from envmedic.errors import Interrupted
from envmedic.model.checks import Check
from envmedic.model.events import Event, Notice, StateChanged
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Record
from envmedic.tree import fingerprint
from tests.engine.world import ShellInstaller, World

BEFORE = (
    "created", "fingerprinted", "cloning", "before-repairing", "after-repairing", "reproduced", "step-taken",
    "verified", "marked", "synced", "before-ready", "after-ready",
)  # fmt: skip
AFTER = ("swapped", "before-exchanged", "after-exchanged", "before-done", "after-done")


class Raise:
    """A `Point` that sends this process a signal when it is reached for the first time."""

    def __init__(self, name: str, number: int) -> None:
        self._name = name
        self._number = number

    def __call__(self, name: str) -> None:
        if name == self._name:
            self._name = ""
            signal.raise_signal(self._number)


@pytest.mark.parametrize("name", BEFORE)
def test_an_interrupt_before_the_exchange_leaves_the_environment_unchanged(quick: World, name: str) -> None:
    before = fingerprint.manifest(quick.prefix)
    record = quick.apply(point=Raise(name, signal.SIGINT))
    assert record.failure is not None
    assert (record.failure.exit_code, record.failure.cause, record.state) == (130, "SIGINT", "aborted")
    assert fingerprint.manifest(quick.prefix) == before
    assert not list(quick.store.glob("*/env"))


@pytest.mark.parametrize("name", AFTER)
def test_from_the_exchange_on_an_interrupted_repair_finishes(quick: World, name: str) -> None:
    record = quick.apply(point=Raise(name, signal.SIGTERM))
    assert (record.state, record.failure) == ("done", None)
    told = [event.code for event in quick.events if isinstance(event, Notice)]
    assert told == ["too-late-to-stop"]


def test_an_interrupt_while_asking_or_fetching_leaves_no_transaction(quick: World) -> None:
    def ask(_plan: Plan) -> bool:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the question was not broken off")

    quick.confirm = ask
    with pytest.raises(Interrupted):
        quick.apply()
    assert not list(quick.store.glob("*/journal.json"))


class SleepingInstaller(ShellInstaller):
    """Its first command says that it runs and then sleeps."""

    def __init__(self, flag: Path) -> None:
        super().__init__()
        self._flag = flag

    def commands(self, *_: object) -> tuple[tuple[str, ...], ...]:
        return (("/bin/sh", "-c", f"echo $$ > '{self._flag}'; exec sleep 600"),)


def signal_when(flag: Path, number: int) -> threading.Thread:
    def wait_and_signal() -> None:
        while not (flag.exists() and flag.read_text().strip()):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait_and_signal)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_running_command_is_killed_by_an_interrupt(quick: World, tmp_path: Path, number: int) -> None:
    flag = tmp_path / "flag"
    quick.installer = SleepingInstaller(flag)
    sender = signal_when(flag, number)
    started = time.monotonic()
    record = quick.apply()
    sender.join()
    assert record.failure is not None
    assert record.failure.exit_code == 130
    assert time.monotonic() - started < 300
    assert not Path(f"/proc/{flag.read_text().strip()}").exists()
    assert quick.version() == "1.0"


def test_a_transaction_in_another_thread_is_cancelled_through_its_token(quick: World) -> None:
    cancelled = threading.Event()
    found: list[Record] = []

    def cancel_at(name: str) -> None:
        if name == "step-taken":
            cancelled.set()

    worker = threading.Thread(target=lambda: found.append(quick.apply(cancel=cancelled.is_set, point=cancel_at)))
    worker.start()
    worker.join()
    failure = found[0].failure
    assert failure is not None
    assert (failure.code, failure.cause) == ("interrupted", "cancelled")
    assert quick.version() == "1.0"


def cancel_when(flag: Path, cancelled: threading.Event) -> threading.Thread:
    def wait_and_cancel() -> None:
        while not (flag.exists() and flag.read_text().strip()):
            time.sleep(0.01)
        cancelled.set()

    thread = threading.Thread(target=wait_and_cancel)
    thread.start()
    return thread


@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_a_silent_command_in_another_thread_is_cancelled(world: World, tmp_path: Path, staging: str) -> None:
    flag, cancelled = tmp_path / "flag", threading.Event()
    world.options = msgspec.convert({"staging": staging}, ApplyOptions)
    world.installer = SleepingInstaller(flag)
    found: list[Record] = []
    started = time.monotonic()
    threads = [
        threading.Thread(target=lambda: found.append(world.apply(cancel=cancelled.is_set))),
        cancel_when(flag, cancelled),
    ]
    threads[0].start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 300
    assert found[0].failure is not None
    assert (found[0].failure.code, found[0].failure.cause) == ("interrupted", "cancelled")
    assert world.version() == "1.0"


def test_a_silent_check_in_another_thread_is_cancelled(world: World, tmp_path: Path) -> None:
    flag, cancelled = tmp_path / "flag", threading.Event()
    code = f"import os, time; open({str(flag)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    plan = world.plan(checks=(Check(name="hangs", role="playbook", arguments=(code,)),))
    found: list[Record] = []
    worker = threading.Thread(target=lambda: found.append(world.apply(plan, cancel=cancelled.is_set)))
    sender = cancel_when(flag, cancelled)
    started = time.monotonic()
    worker.start()
    worker.join()
    sender.join()
    assert time.monotonic() - started < 300
    assert found[0].failure is not None
    assert found[0].failure.code == "interrupted"


def test_events_that_nobody_read_after_the_exchange_are_noted_in_the_record(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(event: Event) -> None:
        if isinstance(event.data, StateChanged) and event.data.state == "exchanged":
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr(quick, "_keep", closed)
    record = quick.apply()
    assert record.notes[-1].startswith("Events were lost: ")
    kept = (quick.store / record.transaction / "record.json").read_bytes()
    assert msgspec.json.decode(kept, type=Record) == record


def test_former_signal_handlers_come_back(quick: World) -> None:
    former = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    quick.apply(point=Raise("verified", signal.SIGINT))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == former


def test_an_ignored_signal_stays_ignored(quick: World) -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert quick.apply(point=Raise("verified", signal.SIGHUP)).state == "done"
    finally:
        signal.signal(signal.SIGHUP, former)


def test_a_signal_waits_for_what_must_stay_whole() -> None:
    interruption = Interruption()
    done = []

    def work() -> None:
        with interruption.watching(), interruption.at_once():
            with interruption.whole():
                signal.raise_signal(signal.SIGINT)
                done.append("written")
            done.append("not reached")

    with pytest.raises(Interrupted):
        work()
    assert done == ["written"]


def test_an_undo_is_interrupted_before_it_begins_or_not_at_all(quick: World) -> None:
    quick.apply()
    assert quick.undo(point=Raise("before-undoing", signal.SIGINT)).state == "undone"
    assert quick.version() == "1.0"
