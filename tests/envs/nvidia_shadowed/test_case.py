"""The variable breaks what is right without it; activation then leaves the directory out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.envs.nvidia_shadowed.case import build, other_cudnn

pytestmark = pytest.mark.long


def test_the_directory_that_hides_a_library_is_left_out_on_activation(tmp_path: Path) -> None:
    case, variable = build(tmp_path / "room")
    assert case.run().code == 0
    log = case.log(LD_LIBRARY_PATH=variable)
    assert "undefined symbol: __nvJitLinkCreate_12_4" in log.read_text(encoding="utf-8")
    told = case.envmedic("diagnose", str(log), "-p", str(case.prefix), "--json", LD_LIBRARY_PATH=variable).document
    left = variable.rpartition(":")[2]
    assert told["verdict"] == "shell"
    assert told["advice"][0] == f"In the shell that starts the program: export LD_LIBRARY_PATH={left}"
    done = case.apply("--log", str(log), LD_LIBRARY_PATH=variable)
    assert done.code == 0, done.told()
    assert done.document["plan"]["finding"]["playbook"] == "nvidia-shadowed"
    assert done.document["plan"]["changes"] == []
    shell = f". {case.prefix}/bin/activate && echo $LD_LIBRARY_PATH && python -B {case.program}"
    activated = subprocess.run(
        ["sh", "-c", shell],
        env={**case.variables(), "LD_LIBRARY_PATH": variable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert activated.stdout.splitlines() == [variable.rpartition(":")[2], "cuDNN 90100"], activated.stderr


def test_a_part_of_another_cudnn_is_found(tmp_path: Path) -> None:
    case, _ = build(tmp_path / "room")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", LD_LIBRARY_PATH=other_cudnn(tmp_path))
    (finding,) = found.document["findings"]
    assert finding["playbook"] == "nvidia-shadowed"
    assert any("libcudnn_ops.so.9" in item["what"] for item in finding["evidence"])


def test_the_same_libraries_elsewhere_hide_nothing(tmp_path: Path) -> None:
    case, _ = build(tmp_path / "room")
    folders = case.prefix.glob("lib/python3.*/site-packages/nvidia/*/lib")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", LD_LIBRARY_PATH=":".join(map(str, folders)))
    assert found.document["verdict"] == "healthy", found.told()
