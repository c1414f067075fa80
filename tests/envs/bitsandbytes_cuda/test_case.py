"""A bitsandbytes that knows torch's CUDA release, and no longer calls triton.ops, replaces the other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.bitsandbytes_cuda.case import WORKS, build
from tests.support.repairs import facts_of, found_by_facts, prove_repair

pytestmark = pytest.mark.long


@pytest.mark.parametrize("version", ["0.42.0", "0.44.1"])
def test_a_release_that_fits_torch_comes(tmp_path: Path, version: str) -> None:
    changes = [("bitsandbytes", version, "0.45.5")]
    prove_repair(build(tmp_path, f"bitsandbytes=={version}"), "bitsandbytes-cuda", list(changes), WORKS)


def test_one_that_fits_is_healthy(tmp_path: Path) -> None:
    case = build(tmp_path, "bitsandbytes==0.45.5")
    assert facts_of(case)["bitsandbytes.cuda-libraries"] == ("12.1", "12.4", "12.6")
    assert found_by_facts(case).verdict == "healthy"
