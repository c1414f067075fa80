"""What tests of the hosts' faults share."""

from __future__ import annotations

import pytest

from tests.support.cuda_family import broken
from tests.support.native_case import NativeCase


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> NativeCase:
    """An environment in which nothing is wrong, which tests leave as it is."""
    return broken(tmp_path_factory.mktemp("sound") / "room")
