"""A worker inherits the wrong threading layer, and the right one, kept in the environment, cures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.mkl_threading_layer.case import build
from tests.support.native_case import NativeCase


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_nobody_set_the_variable_that_ends_the_worker(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == 1
    assert "MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1 library" in done.err
    assert broken.envmedic("diagnose", "-p", str(broken.prefix), "--json").document["verdict"] == "healthy"


def test_the_layer_is_kept_in_the_environment(broken: NativeCase) -> None:
    command = (str(broken.python), str(broken.program))
    done = broken.apply("--log", str(broken.log()), "--reproduce", "--", *command)
    assert done.code == 0, done.told()
    statuses = {item["check"].partition(" ")[0]: item["status"] for item in done.document["checks_after"]}
    assert (statuses["command"], statuses["facts"]) == ("pass", "pass")
    assert "export MKL_THREADING_LAYER='GNU'" in (broken.prefix / "bin" / "activate").read_text()
