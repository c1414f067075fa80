"""What the engine refuses where it would be misled: each refusal alone."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envmedic.engine.clone.shared_links import refuse_outside
from envmedic.engine.fs import syscalls
from envmedic.engine.fs.exchange import ExchangeProbe
from envmedic.engine.generations import finish
from envmedic.engine.stage import namespace_helper
from envmedic.engine.stage.runners import NamespaceProbe
from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker, uv_lock, workspace
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.lock import locked
from envmedic.engine.store.swap import swap
from envmedic.engine.store.unsettled import require_no_exchange
from envmedic.engine.transaction import create, preflight, rebuild_step, rounds
from envmedic.errors import (
    EnvironmentBusy,
    InputError,
    InstallerError,
    InternalError,
    PreflightError,
    RecoveryNeeded,
)
from envmedic.tree.fingerprint import MARKER, Fingerprint
from tests.engine.test_failed_command import Scripted
from tests.engine.world import World

NOBODY = 65534
TRANSACTION = "20260101T000000000000Z-abcdef"


def some(**values: object) -> Any:
    return SimpleNamespace(**values)


def test_a_file_system_that_cannot_be_synced_is_an_error() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        syscalls.syncfs(-1)


def test_a_link_is_exchanged_with_nothing(tmp_path: Path) -> None:
    directory = TransactionDirectory(tmp_path / TRANSACTION)
    (directory.tree / "kept").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "env").symlink_to("elsewhere")
    with pytest.raises(PreflightError, match="symbolic link"):
        swap(tmp_path / "env", directory, "exchange")
    assert (tmp_path / "env").is_symlink()
    assert (directory.tree / "kept").is_dir()


def test_a_conda_package_whose_files_lie_elsewhere_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "env" / "conda-meta").mkdir(parents=True)
    (tmp_path / "env" / "share").symlink_to(tmp_path / "elsewhere")
    record = {"name": "tool", "version": "1", "build": "0", "build_number": 0, "files": ["share/tool/file"]}
    (tmp_path / "env" / "conda-meta" / "tool-1-0.json").write_text(json.dumps(record))
    with pytest.raises(PreflightError, match="lies elsewhere"):
        refuse_outside(tmp_path / "env", tmp_path / "env")


def test_a_held_lock_of_uv_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as held, (tmp_path / "lock").open() as other:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not uv_lock._try(other.fileno())


def test_root_makes_nothing_where_another_user_could_exchange_it(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    os.chown(tmp_path, NOBODY, NOBODY)
    with pytest.raises(PreflightError):
        create.require_free(tmp_path / "new")


def test_what_is_no_file_in_the_place_of_the_marker_marks_nothing(tmp_path: Path) -> None:
    (tmp_path / "directory" / MARKER).mkdir(parents=True)
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / MARKER)
    (tmp_path / "link").mkdir()
    (tmp_path / "other").write_text(TRANSACTION)
    (tmp_path / "link" / MARKER).symlink_to("../other")
    assert [marker.read(tmp_path / kind) for kind in ("directory", "fifo", "link")] == [None] * 3


@pytest.mark.parametrize("kind", ["file", "dangling link", "full directory"])
def test_what_stands_at_the_place_of_a_new_environment_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "new"
    if kind == "file":
        place.touch()
    elif kind == "dangling link":
        place.symlink_to("nowhere")
    else:
        (place / "inside").mkdir(parents=True)
    with pytest.raises(InputError, match="exists already"):
        create.require_free(place)


def test_a_namespace_that_was_asked_for_and_does_not_work_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create, "probe_namespace", lambda *_: NamespaceProbe(ok=False, reason="denied"))
    with pytest.raises(PreflightError, match="cannot be shown"), create.made(tmp_path / "new", staging="namespace"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_exchanged_is_refused(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = ExchangeProbe(method=None, reason="it is a mount point")
    monkeypatch.setattr(preflight, "probe_exchange", lambda *_: probe)
    with pytest.raises(PreflightError, match="cannot take the place") as raised:
        quick.apply()
    assert raised.value.cause == "it is a mount point"


def test_a_bug_is_no_transaction_that_waits_for_recovery(tmp_path: Path) -> None:
    with pytest.raises(SystemError, match="bad call"), finish.recoverable(tmp_path):
        raise SystemError("bad call")


def test_a_clone_that_is_live_is_never_dropped(tmp_path: Path) -> None:
    marker.write(tmp_path, TRANSACTION)
    session = some(prefix=tmp_path, interruption=some(shield=lambda: None))
    with pytest.raises(InternalError, match="live"):
        finish.drop(some(session=session, directory=some(transaction=TRANSACTION)), PreflightError("x"))


def fails(number: int) -> Callable[..., int]:
    def call(*_: object) -> int:
        ctypes.set_errno(number)
        return -1

    return call


def test_a_namespace_that_fails_for_another_reason_than_rights_is_not_tried_as_a_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def unshare(flags: int) -> int:
        asked.append(flags)
        return fails(errno.ENOSPC)()

    monkeypatch.setattr(namespace_helper, "libc", some(unshare=unshare))
    with pytest.raises(namespace_helper.SetupError):
        namespace_helper.own_mounts()
    assert len(asked) == 1


def test_a_clone_that_is_not_seen_at_the_prefix_is_not_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("clone", "env"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(namespace_helper, "_mount", lambda *_: None)
    with pytest.raises(namespace_helper.SetupError):
        namespace_helper.show_clone(os.fsencode(tmp_path / "clone"), os.fsencode(tmp_path / "env"))


def a_journal(transaction: str) -> journals.Journal:
    return journals.Journal(
        transaction=transaction, parent=None, prefix="/env", state="done", method="exchange", started="", updated=""
    )


def test_the_journal_of_another_transaction_is_not_taken_for_its_own(tmp_path: Path) -> None:
    directory = TransactionDirectory(tmp_path / TRANSACTION)
    directory.path.mkdir()
    directory.journal.write_bytes(journals.encode(a_journal("another")))
    with pytest.raises(RecoveryNeeded, match="cannot be read"):
        journals.read(directory)


def test_no_state_is_skipped(tmp_path: Path) -> None:
    directory = TransactionDirectory(tmp_path / TRANSACTION)
    directory.path.mkdir()
    with pytest.raises(InternalError, match="cannot go from done to ready"):
        journals.move(directory, a_journal(TRANSACTION), "ready")
    assert not directory.journal.exists()


def test_a_prefix_that_is_missing_while_somebody_exchanges_it_is_busy(quick: World) -> None:
    record = quick.apply()
    store = Store.of(quick.prefix)
    with locked(store):
        quick.prefix.rename(store.root / record.transaction / "displaced")
        with pytest.raises(EnvironmentBusy, match="being exchanged"):
            require_no_exchange(store)
    with pytest.raises(RecoveryNeeded, match="missing"):
        require_no_exchange(store)


def test_a_conda_step_needs_an_installer_for_it() -> None:
    with pytest.raises(InternalError, match="conda packages"):
        workspace.required(None)


@pytest.mark.parametrize("names", [(), ("ops-1.0-py3-none-any.whl", "ops-1.1-py3-none-any.whl")])
def test_a_build_makes_one_wheel(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "other-1.0-py3-none-any.whl").touch()
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InstallerError, match="wheels"):
        rebuild_step._wheel(some(distribution=some(name="ops")), tmp_path)


def test_a_plan_without_a_check_is_not_carried_out(quick: World) -> None:
    failure = quick.apply(quick.plan(checks=())).failure
    assert failure is not None
    assert "no check that would prove" in failure.summary
    assert quick.version() == "1.0"


def test_a_step_that_fails_ends_the_repair_whose_plan_the_user_named(quick: World) -> None:
    asked: list[object] = []
    quick.installer = Scripted("exit 3")
    quick.extend = asked.append
    record = quick.apply()
    assert record.failure is not None
    assert record.failure.code == "installer"
    assert (record.rounds, asked) == ((), [])


def test_a_clone_is_observed_only_where_there_is_a_way_to() -> None:
    with pytest.raises(InternalError, match="observe"):
        rounds._observe_clone(some(session=some(ports=some(observe=None))))


@pytest.mark.parametrize("document", [[], {"format": "another", "entries": {}}])
def test_a_fingerprint_of_another_format_is_refused(tmp_path: Path, document: object) -> None:
    (tmp_path / "fingerprint").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="not a fingerprint"):
        Fingerprint.load(tmp_path / "fingerprint")
