"""A crash that only an order of imports brings about: the smallest set is found, and the order that works is advised."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.import_order_crash.case import build
from tests.support.native_case import NativeCase


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_smallest_set_is_found_from_a_bare_line(broken: NativeCase) -> None:
    assert broken.run().code == -11
    log = broken.room / "bare.log"
    log.write_text("Segmentation fault (core dumped)\n")
    done = broken.envmedic("diagnose", str(log), "-p", str(broken.prefix), "--json")
    best = done.document["findings"][0]
    assert (best["playbook"], best["confirmed"]) == ("import-order-crash", True), done.told()
    crash = done.document["facts"]["import_crash"]
    assert (crash["sequence"], crash["works"]) == (["pyarrow", "open3d"], ["open3d", "pyarrow"])
    assert done.document["verdict"] == "env"


def test_the_order_that_works_is_advised_and_nothing_changed(broken: NativeCase) -> None:
    before = sorted(broken.prefix.rglob("*"))
    done = broken.apply("--log", str(broken.log()))
    assert done.code == 1, done.told()
    assert "import open3d; import pyarrow" in done.told()
    assert sorted(broken.prefix.rglob("*")) == before
    broken.program.write_text("import open3d; import pyarrow; import numexpr; print('shapes')\n")
    assert broken.run().out == "shapes\n"


def test_a_text_without_an_environment_stays_a_guess(broken: NativeCase) -> None:
    done = broken.envmedic("diagnose", "--log-only", str(broken.log()), "--json")
    assert done.document["verdict"] in {"env", "unknown"}
    assert done.document["facts"] is None
