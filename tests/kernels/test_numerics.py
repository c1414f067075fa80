"""Settings that make results less exact are told with what they cost, and seeds are those that were asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from envmedic.engine.verify import kernel_session
from tests.kernels.driving import KERNELS, STAND_IN, drive

GPU = "cuda:0 Stand-in GPU"
TOLD = """
import json, os, sys
sys.path.insert(0, {kernels!r})
import driver
driver.package()
from envmedic_kernels.checks import numerics
print(json.dumps(numerics._told(*json.loads(sys.argv[1]))))
"""
PLAIN = {"tf32 products": False, "deterministic": False, "deterministic convolutions": False}


def told(here: float, *, variables: dict[str, str] | None = None, **found: bool) -> list[str]:
    """The sentences about settings as they were found, where products err by `here` and plain ones by 1e-7."""
    settings = {name: value for name, value in os.environ.items() if "TF32" not in name and "CUBLAS" not in name}
    argument = json.dumps([PLAIN | {name.replace("_", " "): value for name, value in found.items()}, here, 1e-7])
    argv = [sys.executable, "-B", "-c", TOLD.format(kernels=str(KERNELS)), argument]
    done = subprocess.run(argv, env=settings | (variables or {}), capture_output=True, text=True, check=True)
    answer: list[str] = json.loads(done.stdout)
    return answer


def test_a_plain_shell_gives_nothing_to_tell() -> None:
    assert told(1.1e-7) == []


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"NVIDIA_TF32_OVERRIDE": "1"}, "NVIDIA_TF32_OVERRIDE=1"),
        ({"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"),
        ({}, "what is imported with torch (no variable)"),
    ],
)
def test_tf32_is_told_with_its_cost(variables: dict[str, str], why: str) -> None:
    (only,) = told(2e-4, variables=variables, tf32_products=True)
    assert only == f"TF32 is on by {why}: fp32 products err by 2.0e-04, 2000 times what fp32 does"


def test_workspaces_and_deterministic_mode_are_told() -> None:
    (only,) = told(1e-7, variables={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})
    assert "products give the same numbers in each run, with the same error (1.0e-07)" in only
    without = told(1e-7, deterministic=True)
    assert "operators without one raise an error" in without[0]
    assert "CUBLAS_WORKSPACE_CONFIG is not set to :4096:8 or :16:8" in without[1]
    assert len(told(1e-7, variables={"CUBLAS_WORKSPACE_CONFIG": ":16:8"}, deterministic=True)) == 2
    assert "slower, none less exact" in told(1e-7, deterministic_convolutions=True)[0]
    assert "keeps TF32 off" in told(1e-7, variables={"NVIDIA_TF32_OVERRIDE": "0"})[0]


def outcome(fault: str, **request: Any) -> dict[str, Any]:
    one = {"index": 0, "name": "numerics", "arguments": [], "gpu": True, "timeout_s": 60.0, **request}
    spec = json.dumps({"requests": [one]})
    found = drive(
        "--spec", spec, variables={"GPUS": "1", "CUDA_BUILD": "12.4", "FAULT": fault, "PYTHONPATH": str(STAND_IN)}
    )
    return found["numerics", GPU]


def test_the_product_is_that_of_the_settings_as_imported() -> None:
    """The stand-in has TF32 on, as a torch before 1.12."""
    sound, wrong = outcome(""), outcome("element at tf32 matmul")
    assert (sound["status"], wrong["status"]) == ("pass", "fail")
    assert "where plain fp32 errs by" in sound["reason"]


def test_seeds_come_from_the_session_or_from_the_check() -> None:
    assert outcome("", seed=77)["reason"].startswith("seed 77,")
    assert outcome("", seed=77, arguments=["seed=5"])["reason"].startswith("seed 5,")
    assert 0 <= kernel_session.SEED < 10**6
