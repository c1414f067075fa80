"""Checks share the cores: each process computes with few threads, unless the shell says how many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envmedic.engine.verify.kernel_session import KERNELS

MODULE = "import os\nopen(__file__ + '.said', 'w').write(os.environ['OMP_NUM_THREADS'])\n"


@pytest.mark.parametrize(("given", "used"), [(None, "2"), ("5", "5")])
def test_processes_of_checks_have_few_threads(tmp_path: Path, given: str | None, used: str) -> None:
    (tmp_path / "telling.py").write_text(MODULE)
    kept = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    variables = {**kept, "PYTHONPATH": str(tmp_path), **({"OMP_NUM_THREADS": given} if given else {})}
    argv = [sys.executable, "-B", str(KERNELS / "driver.py"), "--checks", "import:telling", "--devices", "cpu"]
    subprocess.run(argv, env=variables, capture_output=True, check=True)
    assert (tmp_path / "telling.py.said").read_text() == used
