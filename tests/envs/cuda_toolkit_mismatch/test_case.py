"""CUDA_HOME is set, in the environment, to the toolkit that torch was compiled with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import activated, export, failing, programs, toolkit, torch_wheel
from tests.support.native_case import NativeCase, build_native

PROGRAM = """\
from torch.utils import cpp_extension

print("nvcc of CUDA", cpp_extension.check_cuda_version())
"""


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """An environment with torch for CUDA 12.4."""
    return build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], PROGRAM)


def test_the_environment_points_at_another_toolkit(case: NativeCase, tmp_path: Path) -> None:
    old, right = toolkit(tmp_path, "11.8"), toolkit(tmp_path, "12.4")
    path = f"{right / 'bin'}:{programs(tmp_path)}"
    export(case, f"export CUDA_HOME={old}")
    log = failing(case, PATH=path)
    assert "The detected CUDA version (11.8) mismatches" in log.read_text()
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", PATH=path).document
    assert [item["playbook"] for item in found["findings"]] == ["cuda-toolkit-mismatch"], "facts alone show it"
    done = case.apply("--log", str(log), PATH=path)
    assert done.code == 0, done.told()
    assert activated(case, "python program.py", PATH=path).out == "nvcc of CUDA 12.4\n"


def test_the_first_nvcc_on_path_is_another(case: NativeCase, tmp_path: Path) -> None:
    old, right = toolkit(tmp_path, "11.8"), toolkit(tmp_path, "12.4")
    path = f"{old / 'bin'}:{programs(tmp_path)}"
    log = failing(case, PATH=path)
    without = case.apply("--log", str(log), PATH=path)
    assert without.code == 1, "no toolkit of torch's version is found"
    assert "the toolkit with an nvcc that fits torch best" in without.told()
    variables = {"PATH": path, "CUDA_PATH": str(right)}
    assert activated(case, "python program.py", **variables).code == 0, "CUDA_PATH leads to it"


def test_a_machine_with_another_nvcc_is_no_fault_of_an_environment(case: NativeCase, tmp_path: Path) -> None:
    path = f"{toolkit(tmp_path, '11.8') / 'bin'}:{programs(tmp_path)}"
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json", PATH=path).document["verdict"] == "healthy"
