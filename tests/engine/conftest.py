from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.model.ports import ApplyOptions
from tests.engine.world import ShellInstaller, World, make_environment, run_file_checks


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(make_environment(tmp_path / "env"))


@pytest.fixture
def quick(tmp_path: Path) -> World:
    """As `world`, with few and fast processes: staged by relocation, steps by the shell, checks by reading files."""
    prefix = make_environment(tmp_path / "env")
    return World(prefix, ApplyOptions(staging="relocate"), ShellInstaller(), checks=run_file_checks)
