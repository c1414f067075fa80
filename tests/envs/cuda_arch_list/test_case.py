"""A list of architectures that torch does not know is replaced, in the environment, by one that it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import activated, export, failing, programs, toolkit, torch_wheel
from tests.support.native_case import NativeCase, build_native

pytestmark = pytest.mark.long

PROGRAM = """\
from torch.utils import cpp_extension

print("flags:", *cpp_extension._get_cuda_arch_flags())
"""
BAD = "8.6;10.1"


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """An environment whose builds work once the list is right."""
    return build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], PROGRAM)


def test_a_line_of_the_activate_script_is_found_and_overruled(case: NativeCase) -> None:
    export(case, f'export TORCH_CUDA_ARCH_LIST="{BAD}"')
    log = failing(case)
    assert log.read_text().splitlines()[-1] == "ValueError: Unknown CUDA arch (10.1) or GPU not supported"
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json").document
    assert [item["playbook"] for item in found["findings"]] == ["cuda-arch-list"], "facts alone show it"
    assert "bin/activate:" in str(found["findings"][0]["evidence"]), "and who sets it"
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    assert activated(case, "python program.py").out == "flags: 8.6+PTX\n"


def test_the_variable_of_a_shell_is_overruled_in_the_environment(case: NativeCase) -> None:
    log = failing(case, TORCH_CUDA_ARCH_LIST=BAD)
    healthy = case.envmedic("diagnose", "-p", str(case.prefix), "--json", TORCH_CUDA_ARCH_LIST=BAD).document
    assert healthy["verdict"] == "healthy", "without a failing build, the shell is the user's own"
    done = case.apply("--log", str(log), TORCH_CUDA_ARCH_LIST=BAD)
    assert done.code == 0, done.told()
    assert activated(case, "python program.py", TORCH_CUDA_ARCH_LIST=BAD).out == "flags: 8.6+PTX\n"


def test_no_gpu_and_no_list(case: NativeCase, tmp_path: Path) -> None:
    path = f"{toolkit(tmp_path, '12.4') / 'bin'}:{programs(tmp_path)}"
    log = failing(case, PATH=path)
    assert log.read_text().splitlines()[-1] == "IndexError: list index out of range"
    refused = case.apply("--log", str(log), PATH=path)
    assert refused.code == 1, "this torch has no GPU code that would tell what it is for"
    assert not (case.room / ".envmedic").exists()


def test_a_list_that_torch_knows_is_left_alone(case: NativeCase) -> None:
    export(case, "export TORCH_CUDA_ARCH_LIST='8.0;9.0+PTX'")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json").document
    assert found["verdict"] == "healthy"
