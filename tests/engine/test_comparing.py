from __future__ import annotations

import shutil

import pytest

from envmedic.engine.generations.generations import surplus
from envmedic.engine.generations.state_diff import difference
from envmedic.engine.store.layout import Store
from envmedic.errors import InputError, RecoveryNeeded
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Difference, KeepLimits
from tests.engine.world import SITE, World, distributions, replacement


def compared(world: World, before: str | None = None, after: str | None = None) -> Difference:
    return difference(world.prefix, distributions, before=before, after=after)


def changes(found: Difference) -> list[tuple[str, str | None, str | None]]:
    return [(item.name, item.before, item.after) for item in found.distributions]


def repaired_twice(world: World) -> tuple[str, str]:
    world.options = ApplyOptions(staging="relocate", keep=2)
    first = world.apply()
    second = world.apply(world.plan(*replacement("3.0", before="2.0"), version="3.0"))
    return first.transaction, second.transaction


def test_what_was_changed_outside_is_told_by_the_live_generation(quick: World) -> None:
    _, second = repaired_twice(quick)
    clean = compared(quick)
    assert (clean.before, clean.after) == (second, "now")
    assert (clean.distributions, clean.added, clean.removed, clean.changed) == ((), (), (), ())
    site = quick.prefix / SITE
    (site / "other1" / "__init__.py").write_text("value = 'patched'\n")
    (site / "new.py").write_text("")
    (site / "__pycache__").mkdir(exist_ok=True)
    (site / "__pycache__" / "new.pyc").write_text("")
    shutil.rmtree(site / "other2-3.1.dist-info")
    found = compared(quick)
    assert changes(found) == [("other2", "3.1", None)]
    assert found.added == (f"{SITE}/new.py",)
    assert found.changed == (f"{SITE}/other1/__init__.py",)
    assert f"{SITE}/other2-3.1.dist-info/METADATA" in found.removed


def test_two_generations_are_compared_by_name(quick: World) -> None:
    first, second = repaired_twice(quick)
    assert changes(compared(quick, first, second)) == [("fam", "2.0", "3.0")]
    assert changes(compared(quick, "found", first)) == [("fam", "1.0", "2.0")]
    assert changes(compared(quick, second, "found")) == [("fam", "3.0", "1.0")]
    files = compared(quick, first, second)
    assert not [path for path in (*files.added, *files.removed, *files.changed) if "other" in path]
    assert f"{SITE}/fam/__init__.py" in files.changed


def test_after_an_undo_the_environment_as_found_is_the_live_state(quick: World) -> None:
    transaction = quick.apply().transaction
    quick.undo()
    found = compared(quick)
    assert (found.before, found.after) == ("found", "now")
    assert (found.distributions, found.added, found.removed, found.changed) == ((), (), (), ())
    assert changes(compared(quick, transaction)) == [("fam", "2.0", "1.0")]


def test_what_cannot_be_compared_is_said(quick: World) -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        compared(quick)
    transaction = quick.apply().transaction
    with pytest.raises(InputError, match="no generation nonsense"):
        compared(quick, "nonsense")
    (quick.store / transaction / "fingerprint-live").write_text("{")
    with pytest.raises(RecoveryNeeded, match="cannot be told"):
        compared(quick)


def test_what_prune_would_remove_is_told_before(quick: World) -> None:
    first, second = repaired_twice(quick)
    found = [
        [item.transaction for item in surplus(Store.of(quick.prefix), KeepLimits(count=keep))] for keep in range(3)
    ]
    assert found == [[first, second], [first], []]
