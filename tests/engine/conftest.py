from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.engine.transaction import transaction
from envmedic.engine.transaction.preflight import Capabilities, preflight
from envmedic.model.ports import ApplyOptions
from tests.engine.world import ShellInstaller, World, make_environment, run_file_checks
from tests.support.rooms import in_memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: hundreds of transactions write durably, many times each."""
    yield from in_memory(tmp_path)


@pytest.fixture
def world(memory: Path) -> World:
    return World(make_environment(memory / "env"))


@pytest.fixture
def quick(memory: Path) -> World:
    """As `world`, with few and fast processes: staged by relocation, steps by the shell, checks by reading files."""
    prefix = make_environment(memory / "env")
    return World(prefix, ApplyOptions(staging="relocate"), ShellInstaller(), checks=run_file_checks)


@pytest.fixture
def _no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the probe had found that the file system cannot exchange two directories."""

    def renames(*arguments: object, **more: object) -> Capabilities:
        return dataclasses.replace(preflight(*arguments, **more), exchange="two-renames")  # type: ignore[arg-type]

    monkeypatch.setattr(transaction, "preflight", renames)
