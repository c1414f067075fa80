"""Effects of the terminal UI on a repair: start, questions and answers, stop, and the files written afterwards.

Beside `effects` the only module that calls `api`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from envmedic import xdg
from envmedic.errors import EnvironmentBusy, EnvmedicError, InputError, Interrupted
from envmedic.model.events import Event
from envmedic.tui.command_lines import apply_line
from envmedic.tui.effects.jobs import BackgroundJob, Token

if TYPE_CHECKING:
    from envmedic.api.context.settings import RepairRequest, Settings
    from envmedic.api.repair import Prepared
    from envmedic.model.lock import Lock, LockFormatName
    from envmedic.model.plan import Plan
    from envmedic.model.ports import ApplyOptions, Exchange
    from envmedic.model.record import Record
    from envmedic.render.progress.repair_state import Asked, Repair
    from envmedic.tui.effects.base import Effects
    from envmedic.tui.effects.jobs import Jobs
    from envmedic.tui.session import AppState

_POLL_S = 0.05
"""Seconds between two looks at the cancellation while an answer is awaited."""


class RepairFront(Protocol):
    """The App as the effects of a repair need it."""

    jobs: Jobs
    effects: Effects

    @property
    def session(self) -> AppState:
        """What is known now."""

    def update(self, session: AppState) -> None:
        """Show what is known from now on."""

    def later(self, call: Callable[[], object]) -> None:
        """Do something on the App's thread; may be called from any."""

    def show_error(self, error: EnvmedicError) -> None:
        """Show the panel of an error."""

    def show_repair(self, repair: Repair) -> None:
        """Show how far the repair is; much more often than `update`."""

    def repair_asks(self, repair: Repair) -> None:
        """The repair with a question that waits for an answer."""

    def repair_ended(self, repair: Repair) -> None:
        """The repair with its result."""


class UserReply:
    """Yes or no, given by one thread and waited for by another."""

    def __init__(self) -> None:
        self._given = threading.Event()
        self._yes = False

    def give(self, *, yes: bool) -> None:
        """Answer; the first one counts."""
        if not self._given.is_set():
            self._yes = yes
            self._given.set()

    def wait(self, token: Token) -> bool:
        """The answer, once there is one. Raises Interrupted once `token` says so."""
        while not self._given.wait(_POLL_S):
            if token():
                raise Interrupted("Interrupted", cause="cancelled")
        return self._yes


class Repairs:
    """The one repair that runs, or the last one that did."""

    def __init__(self, front: RepairFront) -> None:
        self._front = front
        self._job: BackgroundJob[Record] | None = None
        self._answer: UserReply | None = None

    @property
    def repair(self) -> Repair | None:
        """The current or last repair, None before the first."""
        return self._front.session.repair

    def start(self, prepared: Prepared, wish: RepairRequest, options: ApplyOptions, *, asks: bool) -> bool:
        """Carry out what was prepared; returns False, and says why, where something else is being changed."""
        from envmedic.render.progress.repair_state import Repair

        # one change at a time: an undo beside a repair would take the environment from under it
        busy = self._front.jobs.unfinished()
        if busy:
            self._front.show_error(
                EnvironmentBusy(f"envmedic is {busy[0].title} still", hint="Wait for its end, or stop it; g shows it")
            )
            return False
        session = replace(self._front.session, options=options)
        prefix = prepared.plan.prefix
        line = apply_line(session, prepared.plan, wish)
        repair = Repair(prefix, prepared.plan, line, time.time(), asks=asks)
        self._front.update(replace(self._front.session, repair=repair))

        def work(_settings: Settings, job: BackgroundJob[Record]) -> Record:
            from envmedic.api.repair import carry_out

            # the plan was prepared by another job, whose events nobody reads any more
            prepared.settings.stream.add(job.sink)
            ask = partial(self._ask, token=job.token)
            return carry_out(
                prepared,
                options,
                # the user agreed to the first plan on its screen; each further round has a new one
                lambda plan: plan.id == prepared.plan.id or not asks or ask(plan),
                cancel=job.token,
                # the question before the exchange shows what is left
                accept_partial=(lambda _: True) if asks else None,
                before_exchange=ask if asks else None,
            )

        self._job = self._front.effects.job(
            "repair", f"repairing {prefix}", work, self._end, self._end, must_end=True, on_events=self._told
        )
        return True

    def _told(self, events: list[Event]) -> None:
        from envmedic.render.progress.repair import log_lines

        repair = self.repair
        if repair is not None:
            repair.log.add(log_lines(events))
            self._front.show_repair(repair.after(events))

    # questions

    def _ask(self, asked: Exchange | Plan, token: Token) -> bool:
        """Ask, in the thread of the repair, and wait for the answer."""
        answer = UserReply()
        self._front.later(partial(self._put, asked, answer))
        return answer.wait(token)

    def _put(self, asked: Asked, answer: UserReply) -> None:
        repair = self.repair
        if repair is None or not repair.running:
            return
        self._answer = answer
        repair = repair.asking(asked, time.time())
        self._front.update(replace(self._front.session, repair=repair))
        self._front.repair_asks(repair)

    def answer(self, *, yes: bool) -> None:
        """Answer the question that waits, if one does."""
        repair, answer = self.repair, self._answer
        if repair is None or answer is None:
            return
        self._answer = None
        answer.give(yes=yes)
        self._front.update(replace(self._front.session, repair=repair.answered(time.time())))

    def stop(self, *, leaving: bool = False) -> None:
        """Ask it to stop. Before the exchange it does, and the environment is unchanged. `leaving` ends the UI too."""
        repair = self.repair
        if self._job is None or repair is None or not repair.running:
            return
        self._job.cancel()
        self._answer = None
        stopped = replace(repair.answered(time.time()), stopping=True, left=leaving)
        self._front.update(replace(self._front.session, repair=stopped))

    # the end

    def _end(self, result: Record | EnvmedicError) -> None:
        repair = self.repair
        if repair is None:
            raise AssertionError
        # The thread has ended: an answer would reach nobody.
        self._job = self._answer = None
        ended = repair.ending(result, time.time())
        self._front.update(replace(self._front.session, repair=ended))
        if not isinstance(result, EnvmedicError) and result.environment != "unchanged":
            self._front.effects.read(repair.prefix)
        self._front.repair_ended(ended)

    def save_log(self, path: str, then: Callable[[str], None]) -> None:
        """Write the log, as far as it is kept, to a file that is not there yet."""
        repair = self.repair
        if repair is None:
            return
        lines = repair.log.since(0)
        target = xdg.expanded(path).absolute()

        def work(_settings: Settings, _job: BackgroundJob[str]) -> str:
            try:
                # exclusive creation: an existing file is never overwritten
                with target.open("x", encoding="utf-8", errors="surrogateescape") as file:
                    file.writelines(f"{line}\n" for line in lines)
            except OSError as error:
                raise InputError(
                    f"The log cannot be written to {target}", cause=error.strerror, hint="Name another file"
                ) from error
            return str(target)

        self._front.effects.job("save", f"writing {target}", work, then)

    def write_locks(
        self, forms: Sequence[LockFormatName], folder: str, then: Callable[[], None], *, incomplete: bool
    ) -> None:
        """Write the environment that was repaired as locks of those formats, into `folder`."""
        repair = self.repair
        if repair is None:
            return
        prefix, target = Path(repair.prefix), xdg.expanded(folder).absolute()

        def work(settings: Settings, _job: BackgroundJob[tuple[Lock, ...]]) -> tuple[Lock, ...]:
            from envmedic.api.locking.locks import lock_files

            return lock_files(settings, prefix, forms, target, allow_incomplete=incomplete)

        def written(locks: tuple[Lock, ...]) -> None:
            now = self.repair
            # another repair may have begun while the locks were written
            if now is not None and now.prefix == repair.prefix:
                self._front.update(replace(self._front.session, repair=replace(now, locks=locks)))
            then()

        self._front.effects.job("lock", f"locking {prefix}", work, written, latest="lock")
