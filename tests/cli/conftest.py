from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Shell, state_of, user_of
from tests.envs.nms_cuda.case import Case, build
from tests.support.rooms import in_memory


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: transactions write durably."""
    yield from in_memory(tmp_path)


@pytest.fixture
def case(room: Path) -> Case:
    """A broken environment that the test may change."""
    return build(room / "case")


@pytest.fixture
def user(case: Case, room: Path) -> Shell:
    """The user of `case`."""
    return user_of(case, room / "home")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A broken environment that tests only look at."""
    return build(tmp_path_factory.mktemp("cli") / "case")


@pytest.fixture(scope="session")
def reader(shared: Case, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A user of `shared`."""
    return user_of(shared, tmp_path_factory.mktemp("cli-home"))


@pytest.fixture
def untouched(shared: Case) -> Iterator[None]:
    """Assert after the test that the shared environment and what lies beside it are as before."""
    before = state_of(shared.prefix.parent)
    yield
    assert state_of(shared.prefix.parent) == before
