"""A preloaded NVRTC breaks what is right without it; activation then leaves it out of the variable."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.envs.nvrtc_preloaded.case import build


def test_the_preloaded_compiler_is_left_out_on_activation(tmp_path: Path) -> None:
    case, old, harmless = build(tmp_path / "room")
    assert case.run().code == 0
    variable = f"{harmless}:{old}"
    log = case.log(LD_PRELOAD=variable)
    assert "nvrtc: error: invalid value for --gpu-architecture" in log.read_text(encoding="utf-8")
    done = case.apply("--log", str(log), "--no-gpu", LD_PRELOAD=variable)
    assert done.code == 0, done.told()
    assert done.document["plan"]["finding"]["playbook"] == "nvrtc-preloaded"
    assert done.document["plan"]["changes"] == []
    shell = f". {case.prefix}/bin/activate && echo $LD_PRELOAD && python -B {case.program}"
    activated = subprocess.run(
        ["sh", "-c", shell],
        env={**case.variables(), "LD_PRELOAD": variable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert activated.stdout.splitlines() == [str(harmless), "cuDNN 90100"], activated.stderr


def test_what_else_is_preloaded_is_no_fault(tmp_path: Path) -> None:
    case, _, harmless = build(tmp_path / "room")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", LD_PRELOAD=str(harmless))
    assert found.document["verdict"] == "healthy", found.told()
    own = next(case.prefix.glob("lib/python3.*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", LD_PRELOAD=str(own))
    assert found.document["verdict"] == "healthy", found.told()
