"""torch does not load with an MKL that is too new, which facts alone show, and the newest older one cures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.mkl_jit_symbols.case import BROKEN, REPAIRED, build
from tests.support.native_case import NativeCase

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_import_ends_as_with_the_real_ones(broken: NativeCase) -> None:
    assert "libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent" in broken.run().err.splitlines()[-1]


@pytest.mark.parametrize("with_log", [True, False])
def test_the_newest_mkl_that_has_them_is_installed(broken: NativeCase, *, with_log: bool) -> None:
    done = broken.apply(*(["--log", str(broken.log())] if with_log else []))
    assert done.code == 0, done.told()
    changes = [(item["name"], item["before"], item["after"]) for item in done.document["plan"]["changes"]]
    assert changes == [("mkl", BROKEN, REPAIRED)]
    before = {item["check"]: item["status"] for item in done.document["checks_before"] if item["role"] == "playbook"}
    assert set(before.values()) == {"fail"}
    assert broken.run().out == "threads: 2\n"


def test_with_the_right_one_nothing_is_wrong(tmp_path: Path) -> None:
    case = build(tmp_path, mkl=REPAIRED)
    assert case.run().out == "threads: 2\n"
    done = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert done.document["verdict"] == "healthy", done.told()


def test_nothing_changes_where_a_record_of_conda_cannot_be_read(broken: NativeCase) -> None:
    (broken.prefix / "conda-meta").mkdir()
    (broken.prefix / "conda-meta" / "mkl-2024.2.0-ha770c72_16.json").write_text("{}")
    done = broken.apply("--log", str(broken.log()))
    assert done.code == 1, done.told()
    assert "conda's records of this environment are damaged: conda-meta/mkl-2024.2.0-ha770c72_16.json" in done.told()
    assert broken.run().code == 1
