from __future__ import annotations

import threading
import time

import pytest
from textual.pilot import Pilot

from envmedic.errors import EnvmedicError, Interrupted
from envmedic.model.events import Event, OutputLine
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.effects.jobs import BackgroundJob
from envmedic.tui.widgets.log_view import KEPT_LINES, LogView
from tests.tui.support import drive, shown, until

pytestmark = pytest.mark.usefixtures("active")

LINES = 60_000


def test_events_come_in_order_in_few_batches_and_before_the_result() -> None:
    batches: list[list[Event]] = []
    ended: list[float] = []

    def work(settings: object, _job: BackgroundJob[float]) -> float:
        for number in range(LINES):
            settings.stream.emit(OutputLine(source="pip", line=str(number)))  # type: ignore[attr-defined]
        return time.monotonic()

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        began = time.monotonic()
        opened.effects.job("test", "printing", work, ended.append, on_events=batches.append)
        await until(pilot, lambda: bool(ended))
        took = time.monotonic() - began
        assert len(batches) <= took * 20 + 2

    drive(scenario)
    lines = [event.data.line for batch in batches for event in batch if isinstance(event.data, OutputLine)]
    assert lines == [str(number) for number in range(LINES)]


def test_at_most_two_environments_are_read_at_once() -> None:
    lock = threading.Lock()
    now, most, done = [0], [0], [0]

    def work(_settings: object, _job: BackgroundJob[None]) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.1)
        with lock:
            now[0] -= 1
            done[0] += 1

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not opened.jobs.running and not opened.session.searching)
        for number in range(6):
            opened.effects.job("probe", f"reading {number}", work, lambda _value: None)
        await until(pilot, lambda: done[0] == 6)

    drive(scenario)
    assert most[0] == 2


def test_a_cancelled_job_that_waits_never_begins_and_one_that_runs_gives_no_result() -> None:
    begun: list[str] = []
    errors: list[EnvmedicError] = []
    release = threading.Event()

    def work(_settings: object, job: BackgroundJob[str]) -> str:
        begun.append(job.title)
        release.wait(10)
        return job.title

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not opened.jobs.running and not opened.session.searching)
        jobs = [opened.effects.job("probe", name, work, begun.append, errors.append) for name in ("a", "b", "c")]
        await until(pilot, lambda: len(begun) == 2)
        for job in jobs:
            job.cancel()
        release.set()
        await until(pilot, lambda: len(errors) == 3)

    drive(scenario)
    assert sorted(begun) == ["a", "b"]
    assert all(isinstance(error, Interrupted) for error in errors)


def test_a_later_job_of_the_same_name_takes_the_place_of_the_first() -> None:
    results: list[str] = []
    errors: list[EnvmedicError] = []

    def slow(_settings: object, _job: BackgroundJob[str]) -> str:
        time.sleep(0.2)
        return "first"

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        opened.effects.job("text", "first", slow, results.append, errors.append, latest="same")
        opened.effects.job("text", "second", lambda _s, _j: "second", results.append, latest="same")
        await until(pilot, lambda: bool(errors) and bool(results))

    drive(scenario)
    assert results == ["second"]


def test_a_log_follows_pauses_and_is_searched() -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        log = LogView(id="log")
        await opened.screen.mount(log, before="#paste")
        opened.screen.query_one("#top").display = False
        log.focus()
        log.add(f"line {number} \x1b[31m[bold]" for number in range(LINES))
        await pilot.pause()
        assert f"line {LINES - 1} ␛[31m[bold]" in shown(opened)
        await pilot.press("space")
        assert not log.following
        log.add(["more"])
        await pilot.pause()
        assert "more" not in shown(opened)
        await pilot.press("space")
        await pilot.pause()
        assert "more" in shown(opened)
        assert log.search("line 1234 ") == 1
        await pilot.pause()
        assert "line 1234 " in shown(opened)
        log.add(str(number) for number in range(KEPT_LINES))
        assert len(log.lines) == KEPT_LINES
        assert log.lines[-1] == str(KEPT_LINES - 1)

    drive(scenario)
