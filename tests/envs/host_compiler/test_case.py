"""CC and CXX name a compiler that nvcc accepts, where the machine has one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.building import activated, failing, programs, script, toolkit, torch_wheel
from tests.support.native_case import NativeCase, build_native

NEWEST = '#!/bin/sh\necho "g++ (Distribution) 14.2.0"\n'
NVCC = """\
#!/bin/sh
if [ "$1" = --version ]; then
    echo "Cuda compilation tools, release 12.4, V12.4.131"
    exit 0
fi
case "$("${CXX:-g++}" --version)" in
    *" 14."*) echo "host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!" >&2; exit 1 ;;
esac
echo compiled
"""
BUILD = "nvcc -c ops.cu"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PATH with nvcc 12.4 and compilers of version 14."""
    folder = toolkit(tmp_path, "12.4")
    script(folder / "bin" / "nvcc", NVCC)
    newest = programs(tmp_path, without=("gcc",))
    for name in ("gcc", "g++"):
        script(newest / name, NEWEST)
    return f"{folder / 'bin'}:{newest}"


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """An environment with torch for CUDA 12.4."""
    return build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], "")


def test_an_older_compiler_beside_it_is_named(case: NativeCase, path: str, tmp_path: Path) -> None:
    for name in ("gcc", "g++"):
        (tmp_path / "programs" / f"{name}-12").symlink_to(shutil.which("gcc") or "/usr/bin/gcc")
    log = failing(case, BUILD, PATH=path)
    done = case.apply("--log", str(log), PATH=path)
    assert done.code == 0, done.told()
    kept = activated(case, "echo $CC $CXX", PATH=path).out.split()
    assert kept == [f"{tmp_path}/programs/gcc-12", f"{tmp_path}/programs/g++-12"]


def test_without_one_there_is_no_repair(case: NativeCase, path: str) -> None:
    done = case.apply("--log", str(failing(case, BUILD, PATH=path)), PATH=path)
    assert done.code == 1, done.told()
    assert not (case.room / ".envmedic").exists()
