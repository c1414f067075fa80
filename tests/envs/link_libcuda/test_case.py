"""The stub's folder is put on LIBRARY_PATH, for the linker, and not on LD_LIBRARY_PATH, for programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.building import activated, failing, toolkit, torch_wheel
from tests.support.native_case import NativeCase, build_native

BUILD = "gcc -shared -fPIC -o ops.so ops.c -lcuda"

pytestmark = pytest.mark.skipif(
    any(Path("/").glob("usr/lib*/**/libcuda.so")), reason="this machine's linker finds the driver's library"
)


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """An environment, and a source that is linked with the driver's library."""
    made = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], "")
    (made.room / "ops.c").write_text("int cuInit(unsigned); int start(void) { return cuInit(0); }\n")
    return made


def test_the_linker_gets_the_stub(case: NativeCase, tmp_path: Path) -> None:
    assert shutil.which("gcc"), "the system's own compiler and linker are under test"
    folder = toolkit(tmp_path, "12.4", stubs=True)
    variables = {"CUDA_HOME": str(folder), "LIBRARY_PATH": "/opt/mine"}
    log = failing(case, BUILD, **variables)
    assert "-lcuda" in log.read_text()
    done = case.apply("--log", str(log), **variables)
    assert done.code == 0, done.told()
    assert activated(case, BUILD, **variables).code == 0
    kept = activated(case, "echo $LIBRARY_PATH; echo $LD_LIBRARY_PATH", **variables).out.splitlines()
    assert kept == [f"{folder}/lib64/stubs:/opt/mine", ""]


def test_without_a_stub_there_is_nothing_to_set(case: NativeCase, tmp_path: Path) -> None:
    variables = {"CUDA_HOME": str(toolkit(tmp_path, "12.4"))}
    done = case.apply("--log", str(failing(case, BUILD, **variables)), **variables)
    assert done.code == 1, done.told()
