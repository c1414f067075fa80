"""The xformers that was built for the installed torch replaces the other one."""

from __future__ import annotations

from pathlib import Path

from tests.envs.xformers_build.case import WORKS, build
from tests.support.repairs import prove_repair


def test_the_xformers_of_this_torch_comes_and_torch_stays(tmp_path: Path) -> None:
    prove_repair(build(tmp_path), "xformers-build", [("xformers", "0.0.28.post1", "0.0.29.post1")], WORKS)
