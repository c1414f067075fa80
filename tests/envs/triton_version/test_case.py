"""The triton that torch requires is put back, or in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.triton_version.case import WORKS, build
from tests.support.repairs import facts_of, found_by_facts, prove_repair

pytestmark = pytest.mark.long


@pytest.mark.parametrize("installed", [("triton==3.2.0",), ()])
def test_the_release_that_torch_requires_comes(tmp_path: Path, installed: tuple[str, ...]) -> None:
    before = "3.2.0" if installed else None
    prove_repair(build(tmp_path, *installed), "triton-version", [("triton", before, "3.1.0")], WORKS)


def test_the_right_one_is_healthy(tmp_path: Path) -> None:
    case = build(tmp_path, "triton==3.1.0")
    assert facts_of(case)["triton.accepted"] is True
    assert found_by_facts(case).verdict == "healthy"
