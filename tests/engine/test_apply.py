from __future__ import annotations

from pathlib import Path

import pytest

from envmedic import tree
from tests.engine.world import World, make_environment


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(make_environment(tmp_path / "env"))


@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_undo_after_apply_gives_the_old_tree_byte_for_byte(world: World, staging: str) -> None:
    before = tree.manifest(world.prefix)
    record = world.apply()
    print(record)
    assert record.state == "done", record.failure
    assert world.version() == "2.0"
    undone = world.undo()
    assert undone.state == "undone"
    assert tree.manifest(world.prefix) == before
