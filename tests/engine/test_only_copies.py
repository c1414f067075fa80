"""Files that exist only in a kept tree outlive repairs and prune, and are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.engine.generations import generations
from envmedic.engine.generations.generations import history, prune
from envmedic.engine.generations.only_copies import only_copies
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import EnvironmentBusy, PreflightError
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import KeepLimits, KeptTree, State
from tests.engine.world import SITE, World, fails_in_place

MODEL = f"{SITE}/checkpoints/model.pt"


def undone_with_new_files(world: World) -> str:
    """A repair, work in the environment, and an undo; the transaction whose kept tree has that work."""
    world.options = ApplyOptions(staging="relocate", clone="link")
    transaction = world.apply().transaction
    (world.prefix / MODEL).parent.mkdir()
    (world.prefix / MODEL).write_text("weights")
    undone = world.undo(force=True)
    told = next(note for note in undone.notes if MODEL in note)
    assert str(world.store / transaction / "env") in told
    assert "stay there" in told
    return transaction


def test_new_files_outlive_an_undo_and_the_next_repairs(quick: World) -> None:
    first = undone_with_new_files(quick)
    kept = quick.store / first / "env" / MODEL
    for _ in range(2):
        record = quick.apply()
        assert kept.read_text() == "weights"
        assert any(str(quick.store / first / "env") in note and MODEL in note for note in record.notes)
        quick.undo()
    assert kept.read_text() == "weights"


def test_prune_removes_the_only_copy_of_files_only_when_told(quick: World) -> None:
    first = undone_with_new_files(quick)
    assert quick.prune(0) == ()
    found = history(quick.prefix)
    assert (found.generations[0].tree, found.generations[0].only_copies) == (str(quick.store / first / "env"), (MODEL,))
    assert quick.prune(0, drop_new=True) == (first,)
    assert history(quick.prefix).generations[0].only_copies == ()


def test_prune_names_the_files_under_the_lock_and_removes_no_others(quick: World) -> None:
    first = undone_with_new_files(quick)
    tree = quick.store / first / "env"
    listed: list[tuple[KeptTree, ...]] = []

    def drop_new(trees: tuple[KeptTree, ...]) -> bool:
        listed.append(trees)
        with pytest.raises(EnvironmentBusy, match="works on"):
            quick.prune(0)
        (tree / "late.txt").write_text("written while the question was open")
        return True

    with pytest.raises(EnvironmentBusy, match="changed after they were listed") as caught:
        prune(quick.prefix, limits=KeepLimits(count=0), stream=quick.stream(), drop_new=drop_new)
    assert listed == [(KeptTree(transaction=first, tree=str(tree), only_copies=(MODEL,)),)]
    assert str(tree) in str(caught.value.cause)
    assert (tree / MODEL).exists()
    assert quick.prune(0, drop_new=True) == (first,)


def test_each_kept_tree_is_compared_once(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    undone_with_new_files(quick)
    compared: list[str] = []

    def counted(directory: TransactionDirectory, state: State, prefix: Path) -> tuple[str, ...]:
        compared.append(directory.transaction)
        return only_copies(directory, state, prefix)

    monkeypatch.setattr(generations, "only_copies", counted)
    quick.apply()
    assert len(compared) == 1
    compared.clear()
    quick.prune(0)
    assert len(compared) == 2


def test_files_that_the_environment_has_as_well_keep_no_tree(quick: World) -> None:
    first = undone_with_new_files(quick)
    (quick.prefix / MODEL).parent.mkdir()
    (quick.prefix / MODEL).write_text("weights")
    assert quick.prune(0) == (first,)


def test_a_tree_without_its_fingerprint_stays(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate")
    first = quick.apply().transaction
    (quick.store / first / "fingerprint").unlink()
    assert quick.prune(0) == ()
    assert history(quick.prefix).generations[0].only_copies == (".",)


def test_edits_in_place_of_shared_files_keep_no_tree(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    first = quick.apply().transaction
    shared = quick.site / "other3" / "__init__.py"
    shared.write_text("edited in both trees\n")
    assert shared.samefile(quick.store / first / "env" / SITE / "other3" / "__init__.py")
    assert quick.prune(0) == (first,)


def test_a_redo_loses_no_file_that_was_made_since_the_undo(quick: World) -> None:
    quick.apply()
    quick.undo()
    mine = quick.site / "mine.txt"
    mine.write_text("mine")
    with pytest.raises(PreflightError):
        quick.redo()
    record = quick.redo(force=True)
    (kept,) = quick.store.glob(f"*/env/{SITE}/mine.txt")
    assert any(f"{SITE}/mine.txt" in note and "They stay there" in note for note in record.notes)
    quick.prune(0)
    assert kept.read_text() == "mine"
    quick.undo()  # nothing of it would be lost, so nothing is asked
    assert mine.read_text() == "mine"


def test_a_redo_that_is_taken_back_names_no_file_of_the_tree_that_is_live(quick: World) -> None:
    quick.apply()
    quick.undo()
    (quick.site / "mine.txt").write_text("mine")
    quick.checks = fails_in_place(quick)
    record = quick.redo(force=True)
    assert record.state == "undone"
    assert not record.notes
