"""A broken environment that tests only look at, and its user."""

from __future__ import annotations

import pytest

from tests.cli.support import Shell, user_of
from tests.envs.nms_cuda.case import Case, build


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A torchvision of another torch."""
    return build(tmp_path_factory.mktemp("notebook") / "case")


@pytest.fixture
def user(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The user of `case`, who has done nothing yet."""
    return user_of(case, tmp_path_factory.mktemp("home"))
