"""A CUDA_HOME that leads nowhere is overruled by one that leads to the toolkit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import activated, export, failing, programs, toolkit, torch_wheel
from tests.support.native_case import NativeCase, build_native

pytestmark = pytest.mark.long

PROGRAM = """\
from torch.utils import cpp_extension

print("nvcc of CUDA", cpp_extension.check_cuda_version())
"""


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """An environment with torch for CUDA 12.4."""
    return build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], PROGRAM)


@pytest.mark.parametrize("wrong", ["list", "deleted", "empty"])
def test_a_folder_that_is_no_toolkit(case: NativeCase, tmp_path: Path, wrong: str) -> None:
    right = toolkit(tmp_path, "12.4")
    (tmp_path / "empty").mkdir()
    value = f":{right}" if wrong == "list" else str(tmp_path / wrong)
    path = f"{right / 'bin'}:{programs(tmp_path)}"
    export(case, f"export CUDA_HOME={value}")
    log = failing(case, PATH=path)
    assert "No such file or directory" in log.read_text()
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", PATH=path).document
    assert [item["playbook"] for item in found["findings"]] == ["cuda-home"], "facts alone show it"
    done = case.apply("--log", str(log), PATH=path)
    assert done.code == 0, done.told()
    assert activated(case, "python program.py", PATH=path).out == "nvcc of CUDA 12.4\n"


def test_it_is_not_set_and_there_is_no_toolkit(case: NativeCase, tmp_path: Path) -> None:
    path = str(programs(tmp_path))
    log = failing(case, PATH=path)
    assert "CUDA_HOME environment variable is not set" in log.read_text()
    done = case.apply("--log", str(log), PATH=path)
    assert done.code == 1, done.told()
    assert not (case.room / ".envmedic").exists()
