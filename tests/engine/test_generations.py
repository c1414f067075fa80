from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.engine.fs import trash
from envmedic.engine.generations.generations import FOUND, history
from envmedic.engine.generations.tree_cost import held_alone
from envmedic.engine.generations.undo_losses import Loss
from envmedic.engine.store.layout import new_transaction_id
from envmedic.errors import EnvironmentBusy, InputError, PreflightError, RecoveryNeeded, RepairDeclined
from envmedic.model.ports import ApplyOptions, ProcessUser
from envmedic.model.record import Generation
from envmedic.tree import fingerprint
from tests.engine.world import SITE, Crash, World, in_child, replacement


def repair_twice(world: World, *, keep: int) -> tuple[str, str]:
    world.options = ApplyOptions(staging="relocate", keep=keep)
    first = world.apply()
    second = world.apply(world.plan(*replacement("3.0", before="2.0"), version="3.0"))
    assert (first.state, second.state) == ("done", "done")
    assert second.parent == first.transaction
    return first.transaction, second.transaction


def generation(world: World, transaction: str) -> Generation:
    return next(item for item in history(world.prefix).generations if item.transaction == transaction)


def test_history_is_empty_and_writes_nothing_before_the_first_repair(quick: World) -> None:
    assert history(quick.prefix).generations == ()
    assert not quick.store.exists()


def test_history_tells_what_is_live_and_where_one_can_go(quick: World) -> None:
    first, second = repair_twice(quick, keep=2)
    found = history(quick.prefix).generations
    assert [item.transaction for item in found] == [second, first]
    assert [(item.live, item.undo_possible, item.redo_possible) for item in found] == [
        (True, True, False),
        (False, False, False),
    ]
    assert found[1].changes == ("fam 1.0 -> 2.0",)
    quick.undo()
    assert [(item.live, item.undo_possible, item.redo_possible) for item in history(quick.prefix).generations] == [
        (False, False, True),
        (True, True, False),
    ]


def test_one_generation_is_kept_by_default(quick: World) -> None:
    first, second = repair_twice(quick, keep=1)
    assert not (quick.store / first / "env").exists()
    quick.undo()
    assert quick.version() == "2.0"
    with pytest.raises(InputError, match="can no longer be undone"):
        quick.undo()
    assert generation(quick, first).state == "done", "its record stays"
    assert generation(quick, second).redo_possible


def test_undo_goes_back_over_several_generations(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    first, second = repair_twice(quick, keep=2)
    record = quick.undo(to=FOUND)
    assert record.transaction == first
    assert fingerprint.manifest(quick.prefix) == old
    assert quick.redo().transaction == first
    assert quick.redo().transaction == second
    assert quick.version() == "3.0"
    assert quick.undo(to=first).transaction == second
    assert quick.version() == "2.0"


def test_an_undone_repair_keeps_its_parent_and_cannot_be_redone_on_another(quick: World) -> None:
    first, second = repair_twice(quick, keep=3)
    quick.undo()
    third = quick.apply(quick.plan(*replacement("4.0", before="2.0"), version="4.0")).transaction
    assert (generation(quick, third).parent, generation(quick, second).parent) == (first, first)
    assert not generation(quick, second).redo_possible
    with pytest.raises(InputError, match="nothing to redo"):
        quick.redo()
    quick.undo()
    assert quick.redo(to=second).transaction == second
    assert quick.version() == "3.0"


def test_there_is_nothing_to_undo_or_redo_at_first(quick: World) -> None:
    with pytest.raises(InputError, match="nothing to undo"):
        quick.undo()
    with pytest.raises(InputError, match="nothing to redo"):
        quick.redo()
    with pytest.raises(InputError, match="does not descend"):
        quick.undo(to="20200101T000000Z-00000000")


def test_undo_refuses_to_lose_changes_made_since(quick: World) -> None:
    quick.apply()
    added, edited = quick.site / "mine.py", quick.site / "fam" / "__init__.py"
    added.write_text("mine = 1\n")
    edited.write_text("__version__ = '2.0' # edited\n")
    now = fingerprint.manifest(quick.prefix)
    with pytest.raises(PreflightError, match="has changed since") as caught:
        quick.undo()
    assert caught.value.details == (f"{SITE}/fam/__init__.py", f"{SITE}/mine.py")
    assert fingerprint.manifest(quick.prefix) == now
    assert generation(quick, history(quick.prefix).generations[0].transaction).state == "done"
    assert quick.undo(force=True).state == "undone"
    assert not added.exists()
    quick.redo()
    assert added.exists(), "what was changed is kept with its tree"


def test_a_loss_can_be_accepted_or_declined(quick: World) -> None:
    transaction = quick.apply().transaction
    (quick.site / "mine.py").write_text("")
    asked: list[Loss] = []

    def refuse(loss: Loss) -> bool:
        asked.append(loss)
        return False

    with pytest.raises(RepairDeclined):
        quick.undo(accept=refuse)
    assert asked == [Loss(transaction=transaction, changed=(f"{SITE}/mine.py",))]
    assert quick.undo(accept=lambda _loss: True).state == "undone"


def test_byte_code_written_since_is_no_loss(quick: World) -> None:
    quick.apply()
    cache = quick.site / "fam" / "__pycache__"
    cache.mkdir()
    (cache / "__init__.cpython-311.pyc").write_bytes(b"code")
    assert quick.undo().state == "undone"


def test_a_shared_file_edited_in_place_is_named_since_it_cannot_come_back(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    quick.apply()
    shared = quick.site / "other3" / "__init__.py"
    assert shared.stat().st_nlink == 2
    with shared.open("a") as file:
        file.write("# edited in place\n")
    with pytest.raises(PreflightError) as caught:
        quick.undo()
    assert f"{SITE}/other3/__init__.py was edited in place in both trees" in (caught.value.cause or "")
    record = quick.undo(force=True)
    assert any("other3/__init__.py" in note for note in record.notes)


def test_a_redo_that_no_longer_works_is_taken_back(quick: World) -> None:
    transaction = quick.apply().transaction
    quick.undo()
    (quick.store / transaction / "env" / SITE / "fam" / "__init__.py").write_text("broken meanwhile\n")
    before = fingerprint.manifest(quick.prefix)
    record = quick.redo()
    assert record.failure is not None
    assert (record.state, record.failure.code) == ("undone", "checks-failed")
    assert fingerprint.manifest(quick.prefix) == before


def test_an_environment_in_use_is_not_exchanged_by_undo(quick: World) -> None:
    quick.apply()
    quick.processes = lambda _prefix: (ProcessUser(pid=4242, command="jupyter", why="maps"),)
    with pytest.raises(EnvironmentBusy):
        quick.undo()
    assert quick.version() == "2.0"


def test_prune_keeps_what_undo_needs_first(quick: World) -> None:
    first, second = repair_twice(quick, keep=3)
    quick.undo()
    third = quick.apply(quick.plan(*replacement("4.0", before="2.0"), version="4.0")).transaction
    assert quick.prune(2) == (second,)
    assert quick.prune(1) == (first,)
    assert generation(quick, third).undo_possible
    assert quick.prune(0) == (third,)
    assert quick.version() == "4.0"
    assert not list(quick.store.glob("*/env"))
    assert len(history(quick.prefix).generations) == 3


def test_prune_leaves_an_interrupted_transaction_to_recovery(quick: World) -> None:
    assert not in_child(lambda: quick.apply(point=Crash(0, {"swapped"})))
    with pytest.raises(RecoveryNeeded):
        quick.prune(0)


def refuse(number: int) -> Callable[[str], None]:
    """A `Point` at which the disk refuses everything."""

    def point(_name: str) -> None:
        raise OSError(number, os.strerror(number))

    return point


def test_a_tree_that_a_disk_lets_go_in_part_only_is_left_to_recovery(quick: World) -> None:
    quick.apply()
    with pytest.raises(RecoveryNeeded, match="removed in part") as caught:
        quick.prune(0, point=refuse(errno.EROFS))
    assert (caught.value.environment, "Read-only" in (caught.value.cause or "")) == ("recoverable", True)
    assert "writable again, then run `envmedic recover`" in (caught.value.hint or "")
    assert quick.version() == "2.0"
    quick.recover()
    assert not list(quick.store.glob("*/trash"))


def test_a_tree_that_cannot_be_removed_at_all_is_told(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.apply()

    def refused(*_arguments: object) -> None:
        refuse(errno.EACCES)("")

    monkeypatch.setattr(trash, "discard", refused)
    with pytest.raises(PreflightError, match="can be removed") as caught:
        quick.prune(0)
    assert (caught.value.environment, caught.value.exit_code) == ("unchanged", 1)
    assert generation(quick, history(quick.prefix).generations[0].transaction).undo_possible


def test_prune_where_nothing_ever_happened_writes_nothing(quick: World) -> None:
    assert quick.prune(1) == ()
    assert not quick.store.exists()


def test_the_size_of_a_kept_tree_is_what_it_holds_alone(tmp_path: Path) -> None:
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "inner" / "alone").write_bytes(b"x" * 100_000)
    (tmp_path / "tree" / "shared").write_bytes(b"x" * 500_000)
    os.link(tmp_path / "tree" / "shared", tmp_path / "elsewhere")
    assert 100_000 <= held_alone(tmp_path / "tree") < 200_000
    assert held_alone(tmp_path / "missing") == 0


def test_an_environment_made_anew_at_the_same_path_is_not_taken_for_a_generation(quick: World) -> None:
    quick.apply()
    quick.prefix.rename(quick.prefix.with_name("old"))
    quick.prefix.mkdir()
    (quick.prefix / "pyvenv.cfg").write_text("")
    assert not history(quick.prefix).generations[0].undo_possible
    with pytest.raises(InputError, match="nothing to undo"):
        quick.undo()


def test_transaction_ids_sort_by_their_time() -> None:
    times = [0, 1_000, 999_999_000, 1_000_000_000, 1_780_000_000_000_001_000]
    names = [new_transaction_id(time) for time in times]
    assert names == sorted(names)
    assert names[3].startswith("19700101T000001000000Z-")
