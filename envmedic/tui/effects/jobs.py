"""Work beside the screen: each job is a thread, watched by a worker of the App, so that leaving a screen ends none.

Events come in batches, so that a tool that prints thousands of lines never keeps keys from being read. Results and
errors are handed over on the App's own thread. A job that nobody waits for when the App ends is left to end by itself,
unless it `must_end`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from textual.app import App
from textual.message import Message

from envmedic.errors import (
    RECOVERABLE,
    UNCHANGED,
    EnvmedicError,
    Interrupted,
    damaged_byte_code,
    missing_package,
    storage,
)
from envmedic.model.events import Event
from envmedic.render.documents.errors import bug

T = TypeVar("T")
BATCH_S = 0.05
"""At most 20 batches of events a second."""
GRACE_S = 1.0
"""Seconds that a closing App waits for jobs that change nothing."""


class Token:
    """A wish to stop, given by one thread and asked for by another."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask to stop."""
        self._event.set()

    def __call__(self) -> bool:
        """Whether a stop was requested; cheap enough for inner loops."""
        return self._event.is_set()


class BackgroundJob(msgspec.Struct, Generic[T], eq=False):
    """One piece of work."""

    kind: str
    """Jobs of one kind share a limit on how many run at once."""
    title: str
    """Description for the status line."""
    work: Callable[[BackgroundJob[T]], T]
    """Runs in a thread. Raises EnvmedicError."""
    then: Callable[[T], None]
    """Takes the result, on the App's thread."""
    failed: Callable[[EnvmedicError], None]
    """Takes the error, on the App's thread; of a cancelled job it is `Interrupted`."""
    on_events: Callable[[list[Event]], None] | None = None
    """Takes events in batches, on the App's thread."""
    must_end: bool = False
    """Whether the job changes something, so that a closing App waits for it."""
    latest: str = ""
    """A later job of the same name makes this one pointless: it is cancelled."""
    token: Token = msgspec.field(default_factory=Token)
    abandoned: bool = False
    emit: Callable[[Event], None] | None = None
    """Where events go while the job runs; set by `Jobs`."""

    def sink(self, event: Event) -> None:
        """Take an event, from any thread."""
        if self.emit is not None:
            self.emit(event)

    def cancel(self) -> None:
        """Ask it to stop; it ends when its work next asks, or its result is dropped."""
        self.token.cancel()


class JobEvents(Message):
    """A batch of events of a job."""

    def __init__(self, take: Callable[[list[Event]], None], events: list[Event]) -> None:
        super().__init__()
        self.take = take
        self.events = events


class JobEnded(Message):
    """A job has ended; `settle` hands its result or error over."""

    def __init__(self, job: BackgroundJob[T], outcome: _Outcome[T]) -> None:
        super().__init__()
        self.settle: Callable[[], None] = lambda: _settle(job, outcome)


class JobsChanged(Message):
    """A job began or ended."""


class _Outcome(msgspec.Struct, Generic[T], frozen=True):
    value: T | None = None
    error: BaseException | None = None


class Jobs:
    """The jobs of an App."""

    def __init__(self, app: App[int], limits: dict[str, int]) -> None:
        self._app = app
        self._limits = limits
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._running: list[BackgroundJob[object]] = []
        self._one_ended = asyncio.Event()

    @property
    def running(self) -> tuple[BackgroundJob[object], ...]:
        """Running jobs, oldest first."""
        return tuple(self._running)

    def unfinished(self) -> tuple[BackgroundJob[object], ...]:
        """Running jobs that a closing App must wait for."""
        return tuple(job for job in self._running if job.must_end)

    def start(self, job: BackgroundJob[T]) -> BackgroundJob[T]:
        """Start `job`, and cancel another one of the same `latest` name."""
        if job.latest:
            self.cancel(job.latest)
        self._running.append(job)  # type: ignore[arg-type]  # a list of jobs of any kind
        # an error goes to the job's `failed`; left to the worker, it would end the App
        self._app.run_worker(self._watched(job), group=job.kind, exit_on_error=False)
        self._app.post_message(JobsChanged())
        return job

    def cancel(self, latest: str) -> None:
        """Cancel the jobs of that `latest` name."""
        for job in self._running:
            if job.latest == latest:
                job.cancel()

    async def stop(self) -> None:
        """Cancel everything, wait for what must end, and a moment for the rest: processes that they started end too."""
        for job in self._running:
            job.cancel()
        # Work in threads cannot be killed: jobs that change nothing are abandoned after the grace time.
        deadline = time.monotonic() + GRACE_S
        while self.unfinished() or (self._running and time.monotonic() < deadline):
            self._one_ended.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._one_ended.wait(), BATCH_S)

    async def _watched(self, job: BackgroundJob[T]) -> None:
        try:
            async with self._gate(job.kind):
                outcome = _Outcome[T](error=Interrupted("Cancelled")) if job.token() else await self._in_thread(job)
        except asyncio.CancelledError:
            job.abandoned = True
            job.cancel()
            raise
        finally:
            # before JobEnded: the code that takes the result may start a job of the same name
            self._running.remove(job)  # type: ignore[arg-type]  # as above
            self._one_ended.set()
            self._app.post_message(JobsChanged())
        self._app.post_message(JobEnded(job, outcome))

    def _gate(self, kind: str) -> contextlib.AbstractAsyncContextManager[object]:
        limit = self._limits.get(kind)
        if limit is None:
            return contextlib.nullcontext()
        return self._gates.setdefault(kind, asyncio.Semaphore(limit))

    async def _in_thread(self, job: BackgroundJob[T]) -> _Outcome[T]:
        """Run the work in a thread that an App which has ended need not wait for."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_Outcome[T]] = loop.create_future()
        batch = _Batch(self._app, job, loop)
        job.emit = batch.add

        def run() -> None:
            outcome = _carried_out(job)
            if not job.abandoned:
                with contextlib.suppress(RuntimeError):  # the loop has closed: the App is gone
                    loop.call_soon_threadsafe(_set, ended, outcome)

        # no thread pool: Python joins its threads at exit, where a read that hangs would keep the program
        threading.Thread(target=run, name=job.title, daemon=True).start()
        outcome = await ended
        # the last events are shown before the result
        batch.flush()
        job.emit = None  # the result of the work may be used by another job
        return outcome


# The future may be cancelled with its worker while the thread still runs.
def _set(ended: asyncio.Future[_Outcome[T]], outcome: _Outcome[T]) -> None:
    if not ended.done():
        ended.set_result(outcome)


def _carried_out(job: BackgroundJob[T]) -> _Outcome[T]:
    try:
        return _Outcome(value=job.work(job))
    except BaseException as error:  # noqa: BLE001  # `_settle` reports it on the App's thread
        return _Outcome(error=error)


def _settle(job: BackgroundJob[T], outcome: _Outcome[T]) -> None:
    """Deliver result or error. After a cancel, a result counts only where the work changed something."""
    if outcome.error is not None:
        job.failed(as_error(outcome.error, changing=job.must_end))
    elif job.token() and not job.must_end:
        job.failed(Interrupted("Cancelled"))
    else:
        job.then(outcome.value)  # type: ignore[arg-type]  # of type T where there is no error


def as_error(error: BaseException, *, changing: bool = False) -> EnvmedicError:
    """`error` as an EnvmedicError; any other exception is a missing package or a bug of envmedic."""
    if isinstance(error, EnvmedicError):
        return error
    environment = RECOVERABLE if changing else UNCHANGED
    return (
        missing_package(error, environment=environment)
        or storage(error, environment=environment)
        or damaged_byte_code(error, environment=environment)
        or bug(error, environment=environment)
    )


class _Batch:
    """Events between a thread and the App, handed over together."""

    def __init__(self, app: App[int], job: BackgroundJob[T], loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._job = job
        self._loop = loop
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._due = False

    def add(self, event: Event) -> None:
        """Take one, in any thread."""
        with self._lock:
            self._events.append(event)
            if self._due or self._job.abandoned:
                return
            self._due = True
        with contextlib.suppress(RuntimeError):  # the loop has closed: the App is gone
            # `call_later` alone is not safe in another thread
            self._loop.call_soon_threadsafe(self._loop.call_later, BATCH_S, self.flush)

    def flush(self) -> None:
        """Hand over what has come, on the App's thread."""
        with self._lock:
            events, self._events, self._due = self._events, [], False
        if events and self._job.on_events is not None:
            self._app.post_message(JobEvents(self._job.on_events, events))
