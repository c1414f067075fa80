"""What tests of conda environments share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conda.channel import Channels, channels
from tests.conda.room import Room, make_room


@pytest.fixture(scope="session")
def local() -> Channels:
    """The local channels."""
    return channels()


@pytest.fixture
def old(local: Channels, tmp_path: Path) -> Room:
    """A room with the channels of PyTorch's old instructions."""
    return make_room(tmp_path / "room", local.old)


@pytest.fixture
def forge(local: Channels, tmp_path: Path) -> Room:
    """A room with conda-forge, on a machine whose driver knows CUDA 12.6."""
    return make_room(tmp_path / "room", [local.forge], cuda="12.6")
