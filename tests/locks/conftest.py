from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conda.channel import Channels, channels
from tests.locks.world import World
from tests.locks.world import world as make_world


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that tests only look at."""
    with make_world(tmp_path_factory.mktemp("locks")) as made:
        yield made


@pytest.fixture
def room(shared: World, tmp_path: Path) -> World:
    """The shared environment and index, and a directory of the test's own."""
    return replace(shared, room=tmp_path)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world that the test may change."""
    with make_world(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def local() -> Channels:
    """The local conda channels."""
    return channels()
