"""Every check that runs on the CPU fails on a real torch in which what it checks is broken."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import uv

from tests.gpu import checks
from tests.real.test_repair import ROOT

pytestmark = [
    pytest.mark.real_torch,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.version_info >= (3, 13), reason="torch 2.5.1 has no wheel for this Python"),
]


@pytest.fixture(scope="module")
def sound() -> Iterator[Path]:
    """An environment with the torch and the torchvision that belong together."""
    prefix = ROOT / ".real/checks"
    shutil.rmtree(prefix, ignore_errors=True)
    prefix.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
    install = [uv.find_uv_bin(), "pip", "install", "--quiet", "--python", str(prefix / "bin/python")]
    subprocess.run([*install, "torch==2.5.1", "torchvision==0.20.1", "numpy", "setuptools"], check=True)
    yield prefix
    shutil.rmtree(prefix)


def test_faults_put_into_a_real_torch_are_reported_as_what_they_are(sound: Path) -> None:
    assert checks.main([str(sound), "--device", "cpu", "--no-verify", "--kinds", "wrong,missing,crash"]) == 0


def test_hangs_of_a_real_torch_are_reported_as_such(sound: Path) -> None:
    words = ["--device", "cpu", "--no-verify", "--kinds", "hang", "--only", "conv,torchvision-nms"]
    assert checks.main([str(sound), *words]) == 0


def test_a_real_torch_without_faults_passes_them(sound: Path) -> None:
    options, _ = checks.parse([str(sound), "--device", "cpu"])
    # whether an extension for CUDA can be built is for the machine's toolkit to say
    victims = [item for item in options.victims() if item.check != "extension-build"]
    for outcome in checks.session(options, None, victims):
        assert outcome["status"] in {"pass", "skip"}, outcome
