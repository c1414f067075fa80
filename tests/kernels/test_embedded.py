"""The kernels also run from their sources on the command line, where the environment's owner cannot read them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from envmedic.engine.verify.kernel_session import program
from tests.kernels.driving import STAND_IN, outcomes, statuses

LONGEST_ARGUMENT = 128 * 1024
"""Bytes of one argument that Linux takes: 32 pages of 4 KiB (MAX_ARG_STRLEN)."""


def test_every_check_is_there_without_any_file(tmp_path: Path) -> None:
    arguments = program(readable=False)
    assert max(map(len, arguments)) < LONGEST_ARGUMENT
    checks = "matmul,fft,attention,all-reduce,torchvision-nms,torchaudio-lfilter,import:json"
    argv = [sys.executable, "-B", *arguments, "--devices", "cpu", "--checks", checks]
    environment = {**os.environ, "PYTHONPATH": str(STAND_IN)}
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = statuses(outcomes(done.stdout))
    assert set(found.values()) == {"pass"}
    assert len(found) == 8
