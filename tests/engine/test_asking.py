"""The question before the exchange, and a download that is cancelled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from envmedic.errors import Interrupted
from envmedic.model.checks import Check
from envmedic.model.events import Emit, Progress, StateChanged
from envmedic.model.plan import Artifact
from envmedic.model.ports import Exchange, ProcessUser
from envmedic.tree import fingerprint
from tests.engine.world import ShellInstaller, World

NOTEBOOK = ProcessUser(pid=4242, command="jupyter", why="exe")


def test_it_is_asked_with_what_will_change_places_when_the_clone_is_proven(quick: World) -> None:
    users: list[ProcessUser] = []
    asked: list[Exchange] = []

    def use_it(name: str) -> None:
        if name == "verified":
            users.append(NOTEBOOK)

    def ask(exchange: Exchange) -> bool:
        assert quick.version() == "1.0"
        assert (Path(exchange.tree) / "bin" / "python").exists()
        asked.append(exchange)
        return True

    quick.before_exchange = ask
    quick.processes = lambda _prefix: tuple(users)
    record = quick.apply(point=use_it)
    assert record.state == "done"
    assert quick.version() == "2.0"
    (exchange,) = asked
    assert exchange.processes == (NOTEBOOK,)
    assert exchange.record.transaction == record.transaction
    assert [item.status for item in exchange.record.checks_after] == ["pass"]
    assert exchange.record.plan.changes[0].after == "2.0"


def test_no_leaves_the_environment_as_it_is(quick: World) -> None:
    before = fingerprint.manifest(quick.prefix)
    quick.before_exchange = lambda _exchange: False
    record = quick.apply()
    assert record.failure is not None
    assert (record.failure.code, record.environment, record.state) == ("declined", "unchanged", "aborted")
    assert fingerprint.manifest(quick.prefix) == before
    assert not list(quick.store.glob("*/env"))


def test_nobody_is_asked_about_a_clone_that_is_not_proven(world: World) -> None:
    world.before_exchange = lambda _exchange: pytest.fail("it was asked")
    record = world.apply(world.plan(checks=(Check(name="fails", role="playbook", arguments=("1 / 0",)),)))
    assert record.failure is not None
    assert record.failure.code == "checks-failed"


def test_a_change_while_it_is_asked_is_kept(quick: World) -> None:
    mine = quick.site / "mine.py"

    def ask(_exchange: Exchange) -> bool:
        mine.write_text("value = 1\n")
        return True

    quick.before_exchange = ask
    record = quick.apply()
    assert record.failure is not None
    assert record.failure.code == "busy"
    assert mine.read_text() == "value = 1\n"
    assert quick.version() == "1.0"


def test_a_cancel_while_it_is_asked_counts_whatever_the_answer(quick: World) -> None:
    cancelled = threading.Event()

    def ask(_exchange: Exchange) -> bool:
        cancelled.set()
        return True

    quick.before_exchange = ask
    record = quick.apply(cancel=cancelled.is_set)
    assert record.failure is not None
    assert (record.failure.code, record.failure.cause) == ("interrupted", "cancelled")
    assert quick.version() == "1.0"


def test_a_signal_breaks_the_question_off(quick: World) -> None:
    def ask(_exchange: Exchange) -> bool:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the question was not broken off")

    quick.before_exchange = ask
    record = quick.apply()
    assert record.failure is not None
    assert record.failure.exit_code == 130


class SlowFetch(ShellInstaller):
    """Tells of its download piece by piece."""

    def __init__(self, at_half: threading.Event) -> None:
        super().__init__()
        self._at_half = at_half

    def fetch(self, artifacts: Sequence[Artifact], *, offline: bool, emit: Emit) -> None:
        for done in range(0, 101, 10):
            if done == 50:
                self._at_half.set()
            emit(Progress(stage="fetch", unit="bytes", done=done, total=100))
        super().fetch(artifacts, offline=offline, emit=emit)


def test_a_download_is_cancelled_through_the_token(quick: World) -> None:
    cancelled = threading.Event()
    quick.installer = SlowFetch(cancelled)
    with pytest.raises(Interrupted):
        quick.apply(cancel=cancelled.is_set)
    assert [item.done for item in quick.events if isinstance(item, Progress) and item.stage == "fetch"][-1] == 50
    assert not any(isinstance(item, StateChanged) for item in quick.events)
    assert not list(quick.store.glob("*/journal.json"))
