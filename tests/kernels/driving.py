"""Runs the driver as a person would, on the stand-ins, and reads its lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import envmedic

KERNELS = Path(envmedic.__file__).parent / "kernels"
STAND_IN = Path(__file__).parent / "stand_in"
Key = tuple[str, str | None]


def drive(
    *options: str, path: Path = STAND_IN, variables: Mapping[str, str] | None = None, **more: str
) -> dict[Key, dict[str, Any]]:
    """Outcomes by (check, device) of one session with `options` and environment `variables` and `more` of them."""
    argv = [sys.executable, "-B", str(KERNELS / "driver.py"), *options]
    environment = {**os.environ, "PYTHONPATH": str(path), **(variables or {}), **more}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    return outcomes(done.stdout)


def outcomes(stdout: str) -> dict[Key, dict[str, Any]]:
    """Outcomes in what a session printed; it must have come to its end, and report nothing twice."""
    lines = [line for line in stdout.splitlines() if line.startswith("@envmedic ")]
    messages = [json.loads(line.partition(" ")[2]) for line in lines]
    assert messages[-1] == {"end": True}
    found = [message["outcome"] for message in messages if "outcome" in message]
    by_key = {(outcome["check"], outcome["device"]): outcome for outcome in found}
    assert len(by_key) == len(found)
    return by_key


def statuses(found: dict[Key, dict[str, Any]]) -> dict[Key, str]:
    """The status of each outcome."""
    return {key: outcome["status"] for key, outcome in found.items()}


def spec(limits: Mapping[str, float], **arguments: tuple[str, ...]) -> str:
    """Requests for GPUs, as the engine makes them: checks with their limits in seconds, some with arguments."""
    requests = [
        {
            "index": index,
            "name": name,
            "arguments": arguments.get(name.replace("-", "_"), ()),
            "gpu": True,
            "timeout_s": limit,
        }
        for index, (name, limit) in enumerate(limits.items())
    ]
    return json.dumps({"requests": requests})
