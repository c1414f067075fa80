"""NumPy 1 comes back where nothing asks for NumPy 2; else what was compiled for NumPy 1 is upgraded."""

from __future__ import annotations

from pathlib import Path

from tests.envs.numpy_abi.case import HAS_NUMPY_ONE, TWO, WORKS, build
from tests.support.repairs import Changes, facts_of, found_by_facts, prove_repair

UPGRADE: Changes = [("boxmath", "1.0", "1.1")]


def test_numpy_goes_back_where_nothing_asks_for_the_new_one(tmp_path: Path) -> None:
    case = build(tmp_path)
    assert "_ARRAY_API" not in case.run().out
    assert "boxmath/_boxmath" in str(facts_of(case)["numpy.modules-for-one"])
    prove_repair(case, "numpy-abi", [("numpy", "2.2.6", "1.26.4")] if HAS_NUMPY_ONE else UPGRADE, WORKS)


def test_the_old_module_is_upgraded_where_something_asks_for_numpy_two(tmp_path: Path) -> None:
    prove_repair(build(tmp_path, wants_two=True), "numpy-abi", UPGRADE, WORKS, log=False)


def test_a_module_that_knows_both_is_healthy_with_both(tmp_path: Path) -> None:
    for version in ("1.26.4", "2.2.6"):
        case = build(tmp_path / version, built_for=TWO, installed=version)
        assert case.run().out == WORKS
        assert facts_of(case)["numpy.built-for-one"] == ()
        assert found_by_facts(case).verdict == "healthy"
