"""What is on disk at the moments that a power cut may choose: the order of syncs, renames, journal states and exchanges."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.fs.durable import write_durably, write_whole
from envmedic.engine.fs.safe_paths import replace_file
from envmedic.engine.generations.generations import history
from envmedic.engine.store import installed_by_repairs, swap
from envmedic.engine.store import journal as journals
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.transaction import create
from envmedic.errors import InternalError, PreflightError
from envmedic.model.record import Record
from tests.engine.durability import Disk
from tests.engine.world import PROJECT, Crash, World, fails_in_place, in_child, project_around

EXCHANGE = "exchange env .envmedic/TX/env"

RECORD = "rename .envmedic/TX/.record.json.tmp .envmedic/TX/record.json"


def moved(state: str) -> str:
    """The rename that puts the journal in this state."""
    return f"rename .envmedic/TX/.journal.json.tmp .envmedic/TX/journal.json {state}"


@pytest.fixture
def disk(quick: World, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(quick.prefix.parent).watch(monkeypatch)


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_durable_file_is_synced_whole_then_renamed_then_its_directory_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path).watch(monkeypatch)
    write_durably(tmp_path / "file", b"whole")
    assert disk.calls == ["fsync .file.tmp", "rename .file.tmp file", "fsync ."]
    assert disk.unsynced(tmp_path) == []
    disk.calls.clear()
    replace_file(tmp_path, "file", b"another")
    assert disk.calls == ["fsync .file.tmp", "rename .file.tmp file", "fsync ."]
    assert disk.unsynced(tmp_path) == []


def test_a_file_whose_caller_syncs_is_renamed_without_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path).watch(monkeypatch)
    write_whole(tmp_path / "file", b"whole")
    write_whole(tmp_path / "file", b"later", synced=False)
    assert disk.calls == ["fsync .file.tmp", "rename .file.tmp file", "rename .file.tmp file"]
    assert disk.unsynced(tmp_path / "file") == ["file"]


@pytest.mark.usefixtures("_open_umask")
def test_a_file_has_its_mode_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    write_durably(tmp_path / "file", b"")
    write_durably(tmp_path / "script", b"", mode=0o755)
    assert [mode for mode in modes if mode != stat.S_IMODE(tmp_path.stat().st_mode)] == [0o600, 0o755]


def test_the_directory_of_a_transaction_is_durable_with_all_its_files(quick: World, disk: Disk) -> None:
    store = Store.of(quick.prefix)
    store.prepare()
    disk.calls.clear()
    content = {"journal.json": b'{"state": "cloning"}', "plan.json": b"{}"}
    directory = store.create(content, transaction="20260101T000000000000Z-abcdef")
    files = ("prefix", "journal.json", "plan.json")
    written = [f"fsync .envmedic/TX/.{name}.tmp" for name in files]
    assert [call for call in disk.calls if call in written] == written
    assert disk.calls[-3:] == ["fsync .envmedic/TX", "rename .envmedic/TX .envmedic/TX", "fsync .envmedic"]
    assert disk.unsynced(directory.path) == []


def test_a_state_of_the_journal_is_durable_before_its_caller_goes_on(quick: World, disk: Disk) -> None:
    record = quick.apply()
    directory = TransactionDirectory(quick.store / record.transaction)
    journal = journals.read(directory)
    disk.calls.clear()
    with pytest.raises(InternalError):
        journals.move(directory, journal, "ready")
    assert disk.calls == []
    journals.move(directory, journal, "undoing")
    assert disk.calls == ["fsync .envmedic/TX/.journal.json.tmp", moved("undoing"), "fsync .envmedic/TX"]


def test_all_of_a_repair_is_on_disk_before_the_exchange_and_the_exchange_before_the_journal_says_so(
    quick: World, disk: Disk
) -> None:
    left: list[list[str]] = []

    def look() -> None:
        (directory,) = quick.store.glob("[0-9]*")
        kept = [path for path in directory.iterdir() if path.name not in {"events.jsonl", "env"}]
        # the exchange has taken place: the clone is at the prefix
        left.append(disk.unsynced(quick.prefix, *kept))

    disk.on_exchange = look
    assert quick.apply().state == "done"
    assert left == [[]]
    assert any(call.startswith("syncfs") for call in disk.between(moved("repairing"), moved("ready")))
    ready = disk.between(moved("ready"), EXCHANGE)
    assert "fsync .envmedic/TX" in ready
    assert not any(call.startswith("rename") for call in ready)
    after = disk.between(EXCHANGE, moved("exchanged"))
    assert {"fsync .", "fsync .envmedic/TX"} <= {*after}
    assert {RECORD, "fsync .envmedic/TX"} <= {*disk.between(moved("exchanged"), moved("done"))}
    assert disk.calls.index(moved("done")) < len(disk.calls) - 1
    assert disk.calls[disk.calls.index(moved("done")) + 1] == "fsync .envmedic/TX"


def test_nothing_slow_comes_between_the_last_comparison_and_the_exchange(quick: World, disk: Disk) -> None:
    quick.apply(point=lambda name: disk.calls.append(f"point {name}"))
    calls = disk.calls[disk.calls.index("point synced") :]
    assert not any(call.startswith("syncfs") for call in calls)
    assert calls.index("fsync .envmedic/TX", calls.index(moved("ready"))) < calls.index("point compared")
    assert disk.between("point compared", "point swapped") == [EXCHANGE]
    assert disk.between("point swapped", "point compared-again") == []


@pytest.mark.parametrize("operation", ["apply", "undo", "redo"])
def test_the_removal_of_a_lock_file_is_on_disk_before_recovery_looks_no_more(
    quick: World, disk: Disk, operation: str
) -> None:
    operations = ("apply", "undo", "redo")
    for earlier in operations[: operations.index(operation)]:
        getattr(quick, earlier)()
    disk.calls.clear()
    record = getattr(quick, operation)()
    after = disk.between(EXCHANGE, moved(record.state))
    assert {"fsync env", "fsync .envmedic/TX/env"} <= {*after}


def test_a_lock_file_has_its_content_before_its_name(quick: World, disk: Disk) -> None:
    quick.apply()
    made = [call for call in disk.calls if "uv-lock" in call]
    written = ["fsync .envmedic/TX/.uv-lock.tmp", "rename .envmedic/TX/.uv-lock.tmp .envmedic/TX/uv-lock"]
    assert made == [
        *written, "rename .envmedic/TX/uv-lock env/.lock", *written, "rename .envmedic/TX/uv-lock .envmedic/TX/env/.lock"
    ]  # fmt: skip


def test_a_record_is_never_renamed_before_its_content_is_on_disk(quick: World, disk: Disk) -> None:
    quick.apply()
    renamed = [number for number, call in enumerate(disk.calls) if call == RECORD]
    assert len(renamed) >= 3
    assert {disk.calls[number - 1] for number in renamed} == {"fsync .envmedic/TX/.record.json.tmp"}


@pytest.mark.parametrize(
    ("move", "first", "last"),
    [(World.undo, "undoing", "undone"), (World.redo, "redoing", "done")],
    ids=["undo", "redo"],
)
def test_an_intent_is_on_disk_before_the_exchange_and_the_exchange_before_its_end(
    quick: World, disk: Disk, move: Callable[[World], object], first: str, last: str
) -> None:
    quick.apply()
    if first == "redoing":
        quick.undo()
    disk.calls.clear()
    move(quick)
    assert disk.between(moved(first), EXCHANGE) == ["fsync .envmedic/TX"]
    assert {"fsync .", "fsync .envmedic/TX", RECORD} <= {*disk.between(EXCHANGE, moved(last))}
    assert disk.calls[disk.calls.index(moved(last)) + 1] == "fsync .envmedic/TX"


@pytest.mark.parametrize(("operations", "state"), [("apply undo", "done"), ("apply undo redo", "undone")])
def test_an_intent_is_taken_back_where_the_exchange_is_refused(quick: World, operations: str, state: str) -> None:
    *before, refused = operations.split()
    for earlier in before:
        getattr(quick, earlier)()
    aside = quick.prefix.with_name("aside")

    def replace() -> None:
        quick.prefix.rename(aside)
        quick.prefix.symlink_to(aside)

    under = {"undo": "after-undoing", "redo": "after-redoing"}[refused]
    with pytest.raises(PreflightError, match="symbolic link"):
        getattr(quick, refused)(point=Crash(0, {under}, replace))
    quick.prefix.unlink()
    aside.rename(quick.prefix)
    assert [item.state for item in history(quick.prefix).generations] == [state]
    assert quick.recover() == ()


def test_an_exchange_back_is_on_disk_before_the_journal_gives_up(quick: World, disk: Disk) -> None:
    quick.checks = fails_in_place(quick)
    assert quick.apply().state == "aborted"
    back = len(disk.calls) - 1 - disk.calls[::-1].index(EXCHANGE)
    assert disk.calls.index(EXCHANGE) < back
    assert {"fsync .", "fsync .envmedic/TX"} <= {*disk.calls[back : disk.calls.index(moved("aborted"))]}


@pytest.mark.parametrize(
    ("operations", "state", "last"),
    [
        ("apply", "swapped", "exchanged"),
        ("apply undo", "after-undoing", "undone"),
        ("apply undo", "swapped", "undone"),
        ("apply undo redo", "after-redoing", "done"),
        ("apply undo redo", "swapped", "done"),
    ],
)
def test_a_recovery_has_the_exchange_on_disk_before_the_journal_says_so(
    quick: World, disk: Disk, operations: str, state: str, last: str
) -> None:
    *before, killed = operations.split()
    for earlier in before:
        getattr(quick, earlier)()
    assert not in_child(lambda: getattr(quick, killed)(point=Crash(0, {state})))
    disk.calls.clear()
    assert len(quick.recover()) == 1
    assert (EXCHANGE in disk.calls) == state.startswith("after-")
    start = disk.calls.index(EXCHANGE) if EXCHANGE in disk.calls else 0
    assert {"fsync .", "fsync .envmedic/TX"} <= {*disk.calls[start : disk.calls.index(moved(last))]}


def test_files_of_the_project_are_on_disk_before_the_journal_says_that_all_is_over(quick: World, disk: Disk) -> None:
    quick.project_edit = project_around(quick.prefix)
    kept = ".envmedic/TX/project"
    left: list[list[str]] = []

    def look() -> None:
        (directory,) = quick.store.glob("[0-9]*")
        left.append(disk.unsynced(directory / "project", directory / "project.json"))

    disk.on_exchange = look
    assert quick.apply().project == "edited"
    assert left[0] == [], "before anything is exchanged"
    files = [f"exchange {kept}/{name} {name}" for name in PROJECT]
    assert [call for call in disk.calls if call in files] == files
    assert {"fsync .", f"fsync {kept}"} <= {*disk.between(files[-1], moved("done"))}
    disk.calls.clear()
    assert quick.undo().project == "restored"
    assert {"fsync .", f"fsync {kept}"} <= {*disk.between(files[-1], moved("undone"))}


def test_a_snapshot_is_on_disk_with_its_record_before_the_environment_is_marked(quick: World, disk: Disk) -> None:
    left: list[list[str]] = []

    def look(point: str) -> None:
        if point == "synced":
            (directory,) = quick.store.glob("[0-9]*")
            left.append(disk.unsynced(*(path for path in directory.iterdir() if path.name != "events.jsonl")))

    plan = msgspec.structs.replace(quick.plan(), purpose="snapshot", steps=(), checks=(), changes=())
    assert quick.apply(plan, point=look).state == "done"
    assert left == [[]]


def test_a_mended_swap_is_on_disk(quick: World, disk: Disk) -> None:
    directory = TransactionDirectory(quick.store / "20260101T000000000000Z-abcdef")
    directory.path.mkdir(parents=True)
    quick.prefix.rename(directory.displaced)
    disk.calls.clear()
    swap.mend(quick.prefix, directory)
    assert disk.calls == ["rename .envmedic/TX/displaced env", "fsync .", "fsync .envmedic/TX"]


def test_a_new_environment_is_on_disk_with_all_its_files_before_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path).watch(monkeypatch)
    with create.made(tmp_path / "new", staging="relocate") as site:
        (site.tree / "bin").mkdir()
        (site.tree / "bin" / "tool").write_text("a tool\n")
    renamed = next(number for number, call in enumerate(disk.calls) if call.startswith("rename"))
    assert disk.calls[renamed - 1].startswith("syncfs")
    assert disk.calls[renamed + 1 :] == ["fsync ."]
    assert disk.unsynced(tmp_path) == []


@pytest.mark.usefixtures("_open_umask")
def test_nobody_else_enters_the_store_whatever_the_umask(quick: World) -> None:
    for path in (quick.prefix, quick.prefix.parent):
        path.chmod(0o755)  # else root refuses to work where others can exchange the environment
    record = quick.apply()
    directory = quick.store / record.transaction
    for path in (quick.store, quick.store / "locks", directory):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    files = [path for root in (quick.store, quick.store / "locks", directory) for path in root.iterdir()]
    written = [path for path in files if path.is_file() and not path.name.startswith("fingerprint")]
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in written if path.stat().st_mode & 0o077} == {}


def test_notes_on_a_finished_repair_are_on_disk_with_its_record(quick: World, disk: Disk) -> None:
    record = quick.apply()
    disk.calls.clear()
    told = installed_by_repairs.noted(quick.prefix, record, ("locked",))
    assert disk.calls == ["fsync .envmedic/TX/.record.json.tmp", RECORD, "fsync .envmedic/TX"]
    (generation,) = quick.store.glob("[0-9]*/record.json")
    assert msgspec.json.decode(generation.read_bytes(), type=Record) == told
    assert told.notes == (*record.notes, "locked")


def test_a_store_says_what_it_is_to_git_and_to_backups(quick: World) -> None:
    Store.of(quick.prefix).prepare()
    assert (quick.store / ".gitignore").read_text() == "*\n"
    assert (quick.store / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("name", ["", "locks"])
def test_a_store_of_another_user_is_refused(quick: World, name: str) -> None:
    store = Store.of(quick.prefix)
    store.prepare()
    os.chown(store.root / name, 54321, 54321)
    with pytest.raises(PreflightError, match="is not a directory of this user"):
        store.prepare()
