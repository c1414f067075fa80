"""What an install behind envmedic costs beside the installer's own command and the checks: of 50 packages from a local index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.sampling import Samples, rounds
from tests.support.index import write_index
from tests.support.venvs import python_of, run, uv
from tests.support.wheels import Wheel, make_wheel

PACKAGES, FILES, LINES = 50, 60, 200
"""Packages, modules of each, and lines of each module: 3,000 files, as a set of real packages has."""
AIM = 0.1


def installing(root: Path, count: int) -> Samples:
    """Samples ``pip install`` of 50 packages in an environment, behind envmedic and bare, and what of it are the checks."""
    names = [f"package-{number}" for number in range(PACKAGES)]
    index = write_index(root / "index", [_wheel(root / "wheels", name) for name in names])
    variables = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
    variables |= {"UV_CACHE_DIR": str(root / "uv"), "XDG_CACHE_HOME": str(root / "cache")}
    template, prefix = root / "template", root / "env"
    run([uv(), "venv", "--quiet", "--seed", "--clear", "--no-config", "--python", sys.executable, str(template)])
    parts: dict[int, tuple[float, float]] = {}

    def fresh() -> None:
        for folder in (prefix, root / ".envmedic"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, prefix, symlinks=True)

    def bare(_number: int) -> float:
        fresh()
        started = time.perf_counter()
        argv = [str(python_of(prefix)), "-m", "pip", "install", "--quiet", *names]
        subprocess.run(argv, env=variables, check=True, capture_output=True)
        return time.perf_counter() - started

    def behind(number: int) -> float:
        fresh()
        started = time.perf_counter()
        argv = [sys.executable, "-m", "envmedic", "pip", "-p", str(prefix), "--json", "install", "--quiet", *names]
        done = subprocess.run(argv, env=variables, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        stages = json.loads(done.stdout)["seconds"]
        parts[number] = (sum(stages.get(name, 0.0) for name in ("reproduce", "verify", "smoke")), stages["steps"])
        return seconds

    samples = rounds({"bare": bare, "behind": behind}, count)
    checks = tuple(parts[number][0] for number in range(1, count + 1))
    own = tuple(seconds - sum(parts[number + 1]) for number, seconds in enumerate(samples["behind"]))
    beside = tuple(seconds - check for seconds, check in zip(samples["behind"], checks, strict=True))
    return {**samples, "checks": checks, "own": own, "beside": beside}


def _wheel(folder: Path, name: str) -> Wheel:
    module = name.replace("-", "_")
    text = "".join(f"def function_{line}(value):\n    return value + {line}\n" for line in range(LINES // 2))
    files = {f"{module}/part_{number}.py": text for number in range(FILES - 1)}
    return make_wheel(folder, name, "1.0", files={f"{module}/__init__.py": "", **files})
