"""The context of an operation on one environment, and the open transaction with its journal and record."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from envmedic.engine.fs import trash
from envmedic.engine.fs.durable import write_durably
from envmedic.engine.store import journal as journals
from envmedic.engine.store.interruption import Cancel, Interruption, never
from envmedic.engine.store.journal import Journal
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.swap import Point, no_point
from envmedic.errors import RECOVERABLE, EnvmedicError, InputError, RecoveryNeeded
from envmedic.model.base import from_json, to_json
from envmedic.model.events import (
    EnvironmentNow,
    Event,
    EventData,
    EventStream,
    Notice,
    Progress,
    Stage,
    StageFinished,
    StageStarted,
    StateChanged,
    TransactionFinished,
)
from envmedic.model.plan import Purpose
from envmedic.model.ports import ApplyOptions, CheckRunner, EnginePorts
from envmedic.model.record import Record, State, error_document

_DONE: dict[Purpose, EnvironmentNow] = {"repair": "repaired", "install": "installed", "snapshot": "unchanged"}


@dataclass(frozen=True)
class TransactionContext:
    """The context of one command on one environment."""

    store: Store
    options: ApplyOptions
    ports: EnginePorts
    checks: CheckRunner
    stream: EventStream
    interruption: Interruption = field(default_factory=Interruption)
    point: Point = no_point
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall-clock seconds of each stage so far."""
    undelivered: list[str] = field(default_factory=list)
    """Errors of event sinks after it was too late to stop, such as a closed pipe."""

    @classmethod
    def of(
        cls,
        prefix: Path,
        options: ApplyOptions,
        ports: EnginePorts,
        checks: CheckRunner,
        stream: EventStream,
        *,
        cancel: Cancel = never,
        point: Point = no_point,
    ) -> TransactionContext:
        """The session of a command on the environment at `prefix`; `cancel` says when to stop."""
        return cls(Store.of(prefix), options, ports, checks, stream, Interruption(cancel), point)

    @property
    def prefix(self) -> Path:
        """The environment's real path."""
        return self.store.prefix

    def emit(self, data: EventData) -> None:
        """Deliver an event. After the commit point a reader that has gone away must not stop the transaction."""
        try:
            with self.interruption.whole():
                self.stream.emit(data)
        except OSError as error:
            if not self.interruption.shielded:
                raise
            self.undelivered.append(str(error))

    def notice(self, code: str, message: str) -> None:
        """Tell the user something that matters."""
        self.emit(Notice(code=code, message=message, level="warning"))

    def progress(self, stage: Stage, unit: Any, done: int, total: int | None = None) -> None:
        """Report the progress of a stage; raises `Interrupted` if a stop was requested."""
        self.emit(Progress(stage=stage, unit=unit, done=done, total=total))
        self.interruption.poll()

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Announce and time a stage."""
        self.interruption.poll()
        self.emit(StageStarted(stage=stage))
        started = time.monotonic()
        ok = False
        try:
            yield
            ok = True
        finally:
            seconds = time.monotonic() - started
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
            self.emit(StageFinished(stage=stage, seconds=seconds, ok=ok))


class EventLog:
    """The sink that writes the events of a transaction to a file, one JSON object per line."""

    def __init__(self, directory: TransactionDirectory) -> None:
        self._transaction = directory.transaction
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(directory.events, flags, 0o600)
        self._file = open(descriptor, "ab", buffering=0)  # noqa: PTH123, SIM115  # a descriptor, closed by `close`

    def __call__(self, event: Event) -> None:
        """Append `event` if it is this transaction's."""
        if event.transaction == self._transaction and not self._file.closed:
            self._file.write(msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Keep nothing more."""
        self._file.close()


class OpenTransaction:
    """An open transaction with its journal and record. The caller holds the lock."""

    def __init__(
        self, session: TransactionContext, directory: TransactionDirectory, journal: Journal, record: Record
    ) -> None:
        self.session = session
        self.directory = directory
        self.journal = journal
        self.record = record

    @classmethod
    def load(cls, session: TransactionContext, directory: TransactionDirectory) -> OpenTransaction:
        """Open one that exists. Raises RecoveryNeeded when its journal or record is damaged."""
        journal = journals.read(directory)
        return cls(session, directory, journal, load_record(directory, journal))

    @contextmanager
    def opened(self) -> Iterator[OpenTransaction]:
        """Stamp events with this transaction and keep them meanwhile.

        An error that leaves it unsettled leaves the stamp too, which tells that there is something to recover.
        """
        stream, log = self.session.stream, EventLog(self.directory)
        stream.add(log)
        stream.transaction = self.directory.transaction
        try:
            yield self
        except BaseException:
            if self.journal.settled:
                stream.transaction = None
            raise
        else:
            stream.transaction = None
        finally:
            log.close()

    def move(self, state: State) -> None:
        """Write durably that the transaction is in `state` now."""
        self.session.point(f"before-{state}")
        self.journal = journals.move(self.directory, self.journal, state)
        self.session.point(f"after-{state}")
        self.session.emit(StateChanged(state=state))

    def note(self, **changes: Any) -> None:
        """Change the record."""
        self.record = msgspec.structs.replace(self.record, **changes)

    def save(self) -> None:
        """Write the record durably."""
        self._note_seconds()
        # Always synced: a rename may reach the disk before the content, and recovery needs a record that can be read.
        write_durably(self.directory.record, to_json(self.record).encode() + b"\n")
        self.session.point("record-saved")

    def _note_seconds(self) -> None:
        self.note(seconds={**self.record.seconds, **self.session.seconds})

    def finish(self, state: State, *, failure: EnvmedicError | None = None) -> Record:
        """Save the record as that of a transaction in the final `state`, move there, and empty the trash."""
        environment = environment_after(state, self.record.plan.purpose)
        # an undo takes a repair back, which stays what it was
        kept = (environment != "unchanged" or state == "done") and failure is None
        self.note(
            state=state,
            environment=environment,
            outcome=self.record.outcome if kept else "unchanged",
            finished=journals.now(),
            error=failure.summary if failure else None,
            failure=error_document(failure) if failure else None,
        )
        self.save()
        self.move(state)
        saved = self.record
        self.empty_trash()
        if self.session.undelivered:
            self.note(notes=(*self.record.notes, f"Events were lost: {self.session.undelivered[0]}"))
        self._note_seconds()
        if self.record != saved:
            self.save()
        self.session.emit(TransactionFinished(state=state, environment=self.record.environment))
        return self.record

    def discard_tree(self) -> None:
        """Move the tree that is not at the prefix to the trash, in one step."""
        self.directory.discard_tree()
        self.session.point("tree-discarded")

    def empty_trash(self) -> None:
        """Delete what was discarded."""
        empty_trash(self.session, self.directory)


def empty_trash(session: TransactionContext, directory: TransactionDirectory) -> None:
    """Delete discarded trees. A failure is reported, and the next command tries again."""
    if not directory.trash.is_dir():
        return

    def on_removed(files: int) -> None:
        session.point("removing")
        session.progress("prune", "files", files)

    try:
        with session.stage("prune"):
            directory.forget_gone()
            trash.empty(directory.trash, on_removed)
    except OSError as error:  # immutable files, or a directory in use on NFS: never a reason to fail a repair
        session.notice("trash-left", f"{directory.trash} could not be deleted: {error}")
    session.point("trash-emptied")


def load_record(directory: TransactionDirectory, journal: Journal) -> Record:
    """A transaction's record, in the state that its journal gives. Raises RecoveryNeeded when it is damaged."""
    try:
        record = from_json(directory.record.read_bytes(), Record, source=str(directory.record))
    except (OSError, InputError) as error:
        raise RecoveryNeeded(
            f"The record of transaction {directory.transaction} cannot be read",
            cause=f"{directory.record}: {error}",
            hint=f"Nothing was changed or deleted. Restore that file, or move {directory.path} away",
            environment=RECOVERABLE,
        ) from error
    return msgspec.structs.replace(
        record, state=journal.state, environment=environment_after(journal.state, record.plan.purpose)
    )


def environment_after(state: State, purpose: Purpose) -> EnvironmentNow:
    """What a transaction for `purpose` in `state` means for the environment."""
    return _DONE[purpose] if state == "done" else "restored" if state == "undone" else "unchanged"
