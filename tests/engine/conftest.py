from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.world import World, make_environment


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(make_environment(tmp_path / "env"))
