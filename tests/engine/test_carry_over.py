"""`undo --keep-new`: the user's new files come along, whole or not at all, and nothing is written over."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.fs import file_copy
from envmedic.engine.generations import carry_over
from envmedic.engine.generations.generations import history, undo
from envmedic.engine.store.context import TransactionContext
from envmedic.engine.store.layout import Store
from envmedic.engine.store.swap import Point, no_point
from envmedic.engine.store.unsettled import unsettled
from envmedic.errors import EnvironmentBusy, EnvmedicError, Interrupted, PreflightError, RecoveryNeeded
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import NewFiles, Record
from envmedic.tree import fingerprint
from tests.engine.durability import Disk
from tests.engine.test_crashes import is_settled, make_live, recover_under_fire, small_world
from tests.engine.test_durability import moved
from tests.engine.world import SITE, Crash, World, in_child, replacement
from tests.support.races import at

pytestmark = pytest.mark.long

Manifest = dict[str, fingerprint.PathContent]
MODEL = f"{SITE}/checkpoints/first run/model.pt"
LINK = f"{SITE}/checkpoints/latest"
NOTES = f"{SITE}/other1/notes.txt"
NEW = frozenset({MODEL, LINK, NOTES})


def work(world: World, run: str = "") -> frozenset[str]:
    """What a user leaves in a repaired environment: a checkpoint in new directories, a link, a file beside others."""
    model, link, notes = (world.prefix / (name + run) for name in (MODEL, LINK, NOTES))
    model.parent.mkdir(parents=True, mode=0o750, exist_ok=True)
    model.write_bytes(b"weights" * 1000)
    model.chmod(0o640)
    link.symlink_to("first run/model.pt")
    notes.write_text("mine")
    os.utime(model.parent, ns=(5, 1_700_000_000_000_000_005))
    return frozenset(os.path.relpath(path, world.prefix) for path in (model, link, notes))


def keep(world: World, *, point: Point = no_point, **more: object) -> Record:
    """An undo that carries new files over."""
    return world.undo(keep_new=lambda _new: True, point=point, **more)


def files(manifest: Manifest) -> Manifest:
    """Without directories, whose times change with what is made in them."""
    return {name: content for name, content in manifest.items() if content.entry.kind != "d"}


def kept_tree(world: World) -> Path:
    (tree,) = world.store.glob("*/env")
    return tree


def test_new_files_come_along_with_all_that_stat_says_of_them(quick: World) -> None:
    old = files(fingerprint.manifest(quick.prefix))
    quick.apply()
    work(quick)
    repaired = fingerprint.manifest(quick.prefix)
    asked: list[NewFiles] = []

    def keep_new(new: NewFiles) -> bool:
        asked.append(new)
        return True

    record = quick.undo(keep_new=keep_new)
    now = fingerprint.manifest(quick.prefix)
    assert files(now) == {**old, **{name: repaired[name] for name in NEW}}
    for name in (f"{SITE}/checkpoints", f"{SITE}/checkpoints/first run"):
        assert now[name] == repaired[name]
    assert [(frozenset(new.files), new.taken, new.installed) for new in asked] == [(NEW, (), ())]
    assert record.state == "undone"
    assert frozenset(record.carried) == NEW
    assert any(note.startswith("Carried over") and MODEL in note for note in record.notes)
    assert fingerprint.manifest(kept_tree(quick)) == repaired, "the tree for redo keeps them too"
    assert history(quick.prefix).generations[0].only_copies == ()
    assert not list(quick.store.glob("*/carried.json"))


def test_a_carried_file_is_a_file_of_its_own(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    quick.apply()
    work(quick)
    keep(quick)
    (quick.prefix / MODEL).write_text("trained on")
    assert (kept_tree(quick) / MODEL).read_bytes() == b"weights" * 1000


def test_back_and_forth_with_carried_files_asks_nothing_and_loses_nothing(quick: World) -> None:
    quick.apply()
    work(quick)
    repaired = files(fingerprint.manifest(quick.prefix))
    keep(quick)
    undone = files(fingerprint.manifest(quick.prefix))
    for _ in range(2):
        assert quick.redo().state == "done"
        assert files(fingerprint.manifest(quick.prefix)) == repaired
        keep(quick)
        assert files(fingerprint.manifest(quick.prefix)) == undone


def test_a_carried_file_that_was_edited_is_told_before_a_redo_hides_it(quick: World) -> None:
    quick.apply()
    work(quick)
    keep(quick)
    (quick.prefix / NOTES).write_text("more of mine")
    with pytest.raises(PreflightError, match="has changed since") as caught:
        quick.redo()
    assert caught.value.details == (NOTES,)
    quick.redo(force=True)
    assert history(quick.prefix).generations[0].only_copies == (NOTES,)
    with pytest.raises(PreflightError, match="has changed since"):
        keep(quick)
    assert any("Not carried over" in note and NOTES in note for note in keep(quick, force=True).notes)
    assert (quick.prefix / NOTES).read_text() == "more of mine"


def test_files_are_carried_over_several_generations(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", keep=2)
    first = quick.apply().transaction
    quick.apply(quick.plan(*replacement("3.0", before="2.0"), version="3.0"))
    work(quick)
    assert keep(quick, to="found").transaction == first
    assert quick.version() == "1.0"
    assert (quick.prefix / MODEL).read_bytes() == b"weights" * 1000


def test_nothing_is_written_over(quick: World) -> None:
    """The old tree has a file, a link or another file's directory where the new files are."""
    quick.apply()
    kept = kept_tree(quick)
    shutil.rmtree(kept / SITE / "other2")
    (kept / SITE / "other2").symlink_to("/nowhere")
    shutil.rmtree(quick.site / "other2")
    (quick.site / "other2").mkdir()
    (quick.site / "other2" / "new.txt").write_text("mine")
    for tree, text in ((quick.prefix, "mine"), (kept, "theirs")):
        (tree / "file").write_text(text)
    record = keep(quick, force=True)
    assert record.carried == ()
    assert (quick.prefix / "file").read_text() == "theirs"
    assert os.readlink(quick.site / "other2") == "/nowhere"  # noqa: PTH115  # exact text
    (told,) = (note for note in record.notes if "have these names" in note)
    assert "file" in told
    assert str(kept) in told
    assert set(history(quick.prefix).generations[0].only_copies) >= {"file"}


def test_what_installers_put_there_stays(quick: World) -> None:
    """Files of a distribution that was installed or upgraded since would not fit, or make half a distribution."""
    quick.apply()
    (quick.site / "extra").mkdir()
    (quick.site / "extra" / "__init__.py").write_text("")
    (quick.prefix / "bin" / "extra").write_text("#!/bin/sh\n")
    info = quick.site / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: extra\nVersion: 1.0\n")
    (info / "RECORD").write_text("extra/__init__.py,,\n../../../bin/extra,,\nextra-1.0.dist-info/RECORD,,\n")
    (quick.prefix / "conda-meta").mkdir()
    (quick.prefix / "conda-meta" / "tool-1-0.json").write_text('{"name": "tool", "files": ["share/tool.txt"]}')
    (quick.prefix / "share").mkdir()
    (quick.prefix / "share" / "tool.txt").write_text("")
    (quick.prefix / NOTES).write_text("mine")
    record = keep(quick, force=True)
    assert record.carried == (NOTES,)
    assert not (quick.site / "extra-1.0.dist-info").exists()
    assert not (quick.prefix / "bin" / "extra").exists()
    assert not (quick.prefix / "share" / "tool.txt").exists()
    assert any("install again" in note and "bin/extra" in note and "share/tool.txt" in note for note in record.notes)


def test_other_changes_are_still_asked_about(quick: World) -> None:
    quick.apply()
    work(quick)
    (quick.site / "other3" / "__init__.py").unlink()
    with pytest.raises(PreflightError) as caught:
        keep(quick)
    assert caught.value.details == (f"{SITE}/other3/__init__.py",)
    assert (quick.version(), list(quick.store.glob("*/carried.json"))) == ("2.0", [])


def test_without_a_yes_new_files_stay_behind(quick: World) -> None:
    quick.apply()
    work(quick)
    record = quick.undo(keep_new=lambda _new: False, force=True)
    assert (record.carried, (quick.prefix / MODEL).exists()) == ((), False)
    assert any(str(kept_tree(quick)) in note and MODEL in note for note in record.notes)


def test_names_that_are_no_text_are_carried(quick: World) -> None:
    quick.apply()
    name = os.fsdecode(b"caf\xe9")
    (quick.prefix / name).write_text("mine")
    assert keep(quick).carried == (r"caf\xe9",)
    assert (quick.prefix / name).read_text() == "mine"
    assert quick.redo().state == "done"
    assert quick.undo().state == "undone"


@pytest.mark.parametrize("failing", ["full", "stopped", "written"])
def test_what_cannot_be_copied_leaves_everything_as_it_was(
    quick: World, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    quick.apply()
    work(quick)
    before = [fingerprint.manifest(tree) for tree in (quick.prefix, kept_tree(quick))]

    def fail(*arguments: object) -> None:
        if failing == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file_copy.keep_metadata(*arguments)  # type: ignore[arg-type]

    def grow(*arguments: object, **more: object) -> None:
        file_copy.reflink_or_copy(*arguments, **more)  # type: ignore[arg-type]
        if failing == "written":
            with (quick.prefix / NOTES).open("a") as stream:
                stream.write("!")

    def stop(name: str) -> None:
        if failing == "stopped" and name == "file-carried":
            raise Interrupted("Interrupted")

    monkeypatch.setattr(carry_over, "keep_metadata", fail)
    monkeypatch.setattr(carry_over, "reflink_or_copy", grow)
    error = {"full": PreflightError, "stopped": Interrupted, "written": EnvironmentBusy}[failing]
    with pytest.raises(error) as caught:
        keep(quick, point=stop)
    if failing == "full":
        assert "undo without --keep-new" in str(caught.value.hint)
    after = [fingerprint.manifest(tree) for tree in (quick.prefix, kept_tree(quick))]
    assert after[1] == before[1]
    assert failing == "written" or after == before
    assert quick.recover() == ()
    monkeypatch.undo()
    assert keep(quick).state == "undone"


def test_an_exchange_that_is_refused_takes_the_copies_back(quick: World) -> None:
    quick.apply()
    work(quick)
    kept = kept_tree(quick)
    before = fingerprint.manifest(kept)
    aside = quick.prefix.with_name("aside")

    def replace() -> None:
        quick.prefix.rename(aside)
        quick.prefix.symlink_to(aside)

    with pytest.raises(PreflightError, match="symbolic link"):
        keep(quick, point=Crash(0, {"after-undoing"}, replace))
    assert fingerprint.manifest(kept) == before
    assert not list(quick.store.glob("*/carried.json"))


def test_a_file_that_came_to_the_kept_tree_meanwhile_is_not_written_over(quick: World) -> None:
    quick.apply()
    work(quick)

    def write() -> None:
        (kept_tree(quick) / NOTES).write_text("theirs")

    with pytest.raises(PreflightError, match="cannot be carried over") as caught:
        keep(quick, point=Crash(0, {"carry-listed"}, write))
    assert "File exists" in str(caught.value.cause)
    assert (kept_tree(quick) / NOTES).read_text() == "theirs"
    assert not (kept_tree(quick) / MODEL).exists()
    assert quick.recover() == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_copies_in_read_only_directories_are_taken_back(quick: World) -> None:
    """By a user whom modes bind, unlike root."""
    room = quick.prefix.parent

    def as_user(work: Callable[[], object]) -> bool:
        def change() -> object:
            os.setresgid(12345, 12345, 12345)
            os.setresuid(12345, 12345, 12345)
            return work()

        return in_child(change)

    quick.apply()
    work(quick)
    for path in (room, *room.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    (quick.prefix / MODEL).parent.chmod(0o555)
    assert not as_user(lambda: keep(quick, point=Crash(0, {"carried"}), force=True))
    assert as_user(quick.recover)
    assert not (kept_tree(quick) / MODEL).parent.exists()
    assert as_user(lambda: keep(quick, force=True))
    assert (quick.prefix / MODEL).exists()


def test_an_error_after_the_undo_takes_nothing_back(quick: World) -> None:
    quick.apply()
    work(quick)

    def stop() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        keep(quick, point=Crash(0, {"after-undone"}, stop))
    quick.recover()
    assert all(os.path.lexists(tree / name) for tree in (quick.prefix, kept_tree(quick)) for name in NEW)


def test_what_another_program_made_among_the_copies_stays(quick: World) -> None:
    quick.apply()
    work(quick)
    assert not in_child(lambda: keep(quick, point=Crash(0, {"carried"})))
    other = (kept_tree(quick) / MODEL).with_name("other.pt")
    other.write_text("theirs")
    assert [record.state for record in quick.recover()] == ["done"]
    assert other.read_text() == "theirs"
    assert not (kept_tree(quick) / MODEL).exists()


def test_a_link_in_the_place_of_a_new_file_is_not_followed(quick: World) -> None:
    quick.apply()
    notes = quick.prefix / NOTES
    notes.write_text("mine")
    looks = []

    def exchange_for_link() -> bool:
        if list(quick.store.glob("*/carried.json")):
            looks.append(notes.is_symlink())
            if len(looks) == 2:  # the first one is before the file is looked at, the second after it
                notes.unlink()
                notes.symlink_to("/etc/passwd")
        return False

    session = TransactionContext.of(
        quick.prefix, quick.options, quick.ports(), quick.checks, quick.stream(), cancel=exchange_for_link
    )
    with pytest.raises(PreflightError, match="cannot be carried over"):
        undo(session, keep_new=lambda _new: True)
    assert not os.path.lexists(kept_tree(quick) / NOTES)


def test_copies_are_their_owners_alone_until_they_are_whole(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.apply()
    work(quick)
    modes: dict[str, int] = {}

    def look(*arguments: object, **more: object) -> None:
        file_copy.reflink_or_copy(*arguments, **more)  # type: ignore[arg-type]
        path = Path(f"/proc/self/fd/{arguments[1]}").readlink()
        modes[path.name] = path.stat().st_mode & 0o777
        modes[path.parent.name] = path.parent.stat().st_mode & 0o777

    monkeypatch.setattr(carry_over, "reflink_or_copy", look)
    before = os.umask(0)
    try:
        keep(quick)
    finally:
        os.umask(before)
    assert (modes["model.pt"], modes["first run"], modes["notes.txt"]) == (0o600, 0o700, 0o600)


def kill_undos(world: World) -> list[bool]:
    """Kill an undo that carries files over at each of its points; whether it happened all the same, of each."""
    world.apply()
    number, ended, happened = 0, False, []
    while not ended:
        make_live(world)
        new = work(world, str(number))
        repaired, old = (fingerprint.manifest(tree) for tree in (world.prefix, kept_tree(world)))
        crash = Crash(number)
        ended = in_child(lambda: keep(world, point=crash))  # noqa: B023  # called at once
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        assert not list(world.store.glob("*/carried.json"))
        now = fingerprint.manifest(world.prefix)
        happened.append(not history(world.prefix).generations[0].live)
        if happened[-1]:
            assert files(now) == {**files(old), **{name: repaired[name] for name in new}}
            assert fingerprint.manifest(kept_tree(world)) == repaired
            (record,) = world.store.glob("*/record.json")
            assert new <= {*msgspec.json.decode(record.read_bytes(), type=Record).carried}
        else:
            assert (now, fingerprint.manifest(kept_tree(world))) == (repaired, old)
            for name in new:  # else every run would have more to copy, and more points
                (world.prefix / name).unlink()
        number += 1
    return happened


def test_an_undo_that_carries_files_killed_anywhere_has_them_whole_or_not_at_all(memory: Path) -> None:
    happened = kill_undos(small_world(memory))
    assert happened.count(False) >= 6
    assert happened.count(True) >= 6
    assert happened == sorted(happened), "once the journal says so it goes on"


@pytest.mark.usefixtures("_no_exchange")
def test_the_same_by_renames(memory: Path) -> None:
    assert kill_undos(small_world(memory)).count(True) >= 8


def test_a_copy_stays_where_its_original_went_before_the_recovery(quick: World) -> None:
    quick.apply()
    work(quick)
    assert not in_child(lambda: keep(quick, point=Crash(0, {"carried"})))
    (quick.prefix / MODEL).unlink()
    assert [record.state for record in quick.recover()] == ["done"]
    assert (kept_tree(quick) / MODEL).read_bytes() == b"weights" * 1000
    assert not (kept_tree(quick) / NOTES).exists()
    assert quick.prune(0) == ()


def test_an_undo_that_was_killed_is_named_and_nothing_is_pruned_before_it_is_settled(quick: World) -> None:
    quick.apply()
    work(quick)
    assert unsettled(Store.of(quick.prefix)) is None
    assert not in_child(lambda: keep(quick, point=Crash(0, {"carry-listed"})))
    assert unsettled(Store.of(quick.prefix)) == history(quick.prefix).generations[0].transaction
    with pytest.raises(RecoveryNeeded, match="was interrupted"):
        quick.prune(0)
    (listed,) = quick.store.glob("*/carried.json")
    listed.write_text("{")
    with pytest.raises(RecoveryNeeded, match="are not known"):
        quick.recover()


def test_the_list_is_on_disk_before_the_copies_and_these_before_the_intent(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.apply()
    work(quick)
    disk = Disk(quick.prefix.parent).watch(monkeypatch)
    unsynced: dict[str, list[str]] = {}

    def look(name: str) -> None:
        if name in {"carry-listed", "after-undoing"}:
            listed = next(quick.store.glob("*/carried.json"))
            copies = [kept_tree(quick) / new for new in NEW if os.path.lexists(kept_tree(quick) / new)]
            unsynced[name] = disk.unsynced(listed, *copies)

    keep(quick, point=look)
    assert unsynced == {"carry-listed": [], "after-undoing": []}
    listed = "rename .envmedic/TX/.carried.json.tmp .envmedic/TX/carried.json"
    assert disk.calls[disk.calls.index(listed) + 1] == "fsync .envmedic/TX"
    assert any(call.startswith("syncfs") for call in disk.between(listed, moved("undoing")))


def test_copies_are_gone_from_the_disk_before_their_list(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.apply()
    work(quick)
    assert not in_child(lambda: keep(quick, point=Crash(0, {"carried"})))
    disk = Disk(quick.prefix.parent).watch(monkeypatch)
    unlink = Path.unlink

    def watched(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == "carried.json":
            disk.calls.append("unlink carried.json")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", watched)
    quick.recover()
    gone = disk.calls.index("unlink carried.json")
    assert disk.calls[gone - 1].startswith("syncfs")
    assert disk.calls[gone + 1] == "fsync .envmedic/TX"


@pytest.mark.parametrize("planted", ["source", "target"])
def test_a_new_file_is_copied_from_and_to_no_file_that_came_meanwhile(
    quick: World, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    quick.apply()
    secret, mine = quick.prefix.parent / "secret", quick.site / "mine.txt"
    secret.write_text("secret")
    mine.write_text("mine")
    (kept,) = quick.store.glob(f"*/env/{SITE}")

    def act() -> None:
        if planted == "source":
            mine.unlink()
            mine.symlink_to(secret)
        else:
            (kept / "mine.txt").hardlink_to(secret)

    at(monkeypatch, "open", "mine.txt", act)
    with pytest.raises((EnvmedicError, OSError)):
        quick.undo(keep_new=lambda _new: True)
    assert secret.read_text() == "secret"
    assert quick.version() == "2.0"
    copied = kept / "mine.txt"
    assert not copied.exists() or copied.samefile(secret)
