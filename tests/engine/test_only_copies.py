"""Files that exist only in a kept tree outlive repairs and prune, and are told."""

from __future__ import annotations

from envmedic.engine.generations.generations import history
from envmedic.model.ports import ApplyOptions
from tests.engine.world import SITE, World

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
