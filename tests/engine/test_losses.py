"""What an undo would lose is told of both trees."""

from __future__ import annotations

import pytest

from envmedic.engine.generations import undo_losses
from envmedic.engine.store.layout import Store
from envmedic.errors import PreflightError
from envmedic.model.ports import ApplyOptions
from tests.engine.world import SITE, World, replacement


def test_an_edit_in_place_in_both_trees_is_told_of_each(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    quick.apply()
    with (quick.site / "other3" / "__init__.py").open("a") as shared:
        shared.write("# edited in place in both trees\n")
    (quick.site / "mine.py").write_text("")
    with pytest.raises(PreflightError, match="has changed since") as caught:
        quick.undo()
    edited = f"{SITE}/other3/__init__.py"
    assert sorted(caught.value.details) == [f"{SITE}/mine.py", edited, edited]


def test_of_two_generations_the_live_one_is_compared(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", keep=2)
    quick.apply()
    quick.apply(quick.plan(*replacement("3.0", before="2.0"), version="3.0"))
    (quick.site / "mine.py").write_text("")
    with pytest.raises(PreflightError) as caught:
        quick.undo()
    assert caught.value.details == (f"{SITE}/mine.py",)


def test_trees_that_were_exchanged_by_hand_differ_in_both(quick: World) -> None:
    """The tree under the name is another one, though marker and fingerprints have the same names again."""
    record = quick.apply()
    directory = next(item for item in Store.of(quick.prefix).transactions() if item.transaction == record.transaction)
    other = quick.prefix.with_name("other")
    quick.prefix.rename(other)
    directory.tree.rename(quick.prefix)
    other.rename(directory.tree)
    now = undo_losses.changes(directory.live_fingerprint, quick.prefix)
    found = undo_losses.of_undo(directory, quick.prefix, now)
    assert f"{SITE}/fam/__init__.py" in found.changed
    assert f"{SITE}/fam/__init__.py" in found.damaged
