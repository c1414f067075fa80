"""An environment that somebody moves while envmedic works on it."""

from __future__ import annotations

import pytest

from envmedic.errors import PreflightError
from envmedic.tree import fingerprint
from tests.engine.test_crashes import is_settled
from tests.engine.world import World


def put_link(world: World) -> None:
    aside = world.prefix.with_name("aside")
    world.prefix.rename(aside)
    world.prefix.symlink_to(aside)


def take_link_away(world: World) -> None:
    world.prefix.unlink()
    world.prefix.with_name("aside").rename(world.prefix)


def test_a_link_in_the_place_of_the_environment_is_not_exchanged(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    record = quick.apply(point=lambda name: put_link(quick) if name == "after-ready" else None)
    assert quick.prefix.is_symlink()
    take_link_away(quick)
    assert record.state == "aborted"
    assert record.failure is not None
    assert "symbolic link" in record.failure.summary
    assert is_settled(quick)
    assert fingerprint.manifest(quick.prefix) == old


def test_an_undo_of_what_became_a_link_changes_nothing(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    quick.apply()
    with pytest.raises(PreflightError, match="symbolic link"):
        quick.undo(point=lambda name: put_link(quick) if name == "after-undoing" else None)
    take_link_away(quick)
    assert is_settled(quick)
    assert quick.version() == "2.0"
    quick.undo()
    assert fingerprint.manifest(quick.prefix) == old
