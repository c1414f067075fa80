"""A disk that fills up around the beginning of a transaction is no bug of envmedic."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from envmedic.engine.fs.durable import write_durably
from envmedic.errors import PreflightError, RecoveryNeeded
from envmedic.model.events import Event, EventStream, StageStarted, TransactionStarted
from tests.engine.test_crashes import is_settled
from tests.engine.world import World


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_before_the_transaction_ends_in_an_error_with_a_next_step(quick: World) -> None:
    def fill(name: str) -> None:
        if name == "before-create":
            raise no_space()

    with pytest.raises(PreflightError, match="no room left") as caught:
        quick.apply(point=fill)
    assert caught.value.hint
    assert quick.version() == "1.0"
    assert not list(quick.store.glob("*/journal.json"))


def test_an_announcement_that_cannot_be_written_drops_the_transaction(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(event: Event) -> None:
        if isinstance(event.data, TransactionStarted):
            raise no_space()

    monkeypatch.setattr(quick, "stream", lambda: EventStream([fail_once]))
    record = quick.apply()
    assert record.state == "aborted"
    assert record.failure is not None
    assert "no room left" in record.failure.summary
    assert is_settled(quick)
    assert quick.version() == "1.0"


@pytest.mark.parametrize("operation", ["undo", "redo"])
def test_an_undo_or_redo_whose_first_word_cannot_be_written_changes_nothing(
    quick: World, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    def fail(event: Event) -> None:
        if isinstance(event.data, StageStarted):
            raise no_space()

    quick.apply()
    if operation == "redo":
        quick.undo()
    before = quick.version()
    with monkeypatch.context() as patched:
        patched.setattr(quick, "stream", lambda: EventStream([fail]))
        with pytest.raises(RecoveryNeeded) as caught:
            getattr(quick, operation)()
    assert "No space left" in (caught.value.cause or "")
    assert quick.version() == before
    assert is_settled(quick)


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise no_space()

    write_durably(tmp_path / "journal.json", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_durably(tmp_path / "journal.json", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("journal.json", b"old")]
