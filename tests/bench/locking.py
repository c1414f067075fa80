"""What a lock takes: ``envmedic lock`` of a conda environment with wheels on top, as conda-lock.yml.

The environment is as large as they are in practice, in packages; their records and metadata are what is read, so the
files themselves are small. It is written here, since no channel can be asked for that many packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.measures import SkippedError
from tests.bench.sampling import Samples, rounds
from tests.support.index import write_index
from tests.support.venvs import install, make_venv, site_packages
from tests.support.wheels import make_wheel

CONDA, PIP = 40, 20
FILES = 40
"""Of each conda package."""
AIM_S = 2.0


def mixed_environment(root: Path) -> Path:
    """An environment of `CONDA` conda packages and `PIP` wheels, of which uv has the pages of an index in its cache.

    It keeps its pyvenv.cfg, without which its Python would be that of the machine.
    """
    prefix = make_venv(root / "mixed")
    wheels = [make_wheel(root / "wheels", f"wheel-{number}", "1.0") for number in range(PIP)]
    write_index(root / "index", wheels)
    install(prefix, wheels)
    (prefix / "conda-meta").mkdir()
    site = site_packages(prefix).relative_to(prefix)
    _record(prefix, "python", sys.version.split()[0], {})
    for number in range(1, CONDA):
        files = {f"{site}/part_{number}/{file}.py": b"" for file in range(FILES)}
        _record(prefix, f"part-{number}", "1.0", files)
    return prefix


def _record(prefix: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_bytes(content)
    stem = f"{name}-{version}-0"
    paths = [{"_path": path, "path_type": "hardlink", "sha256": "0" * 64, "size_in_bytes": 0} for path in files]
    record = {
        "name": name, "version": version, "build": "0", "build_number": 0, "channel": "file:///channel",
        "subdir": "linux-64", "fn": f"{stem}.conda", "url": f"file:///channel/linux-64/{stem}.conda",
        "md5": "0" * 32, "sha256": "0" * 64, "size": 1, "depends": [] if name == "python" else ["python"],
        "files": list(files), "paths_data": {"paths": paths, "paths_version": 1},
    }  # fmt: skip
    (prefix / "conda-meta" / f"{stem}.json").write_text(json.dumps(record), encoding="utf-8")


def locking(root: Path, count: int) -> Samples:
    """Samples ``lock``, and ``import conda_lock`` as anybody else does it. Raises `SkippedError` without conda-lock."""
    prefix, target = mixed_environment(root), root / "conda-lock.yml"
    index = (root / "index" / "simple").as_uri()
    variables = {"UV_CACHE_DIR": str(root / "uv"), "UV_DEFAULT_INDEX": index, "PIP_CONFIG_FILE": os.devnull}
    lock = [sys.executable, "-m", "envmedic", "lock", "-q", "-p", str(prefix), "-o", str(target)]
    _, said = _timed([*lock, "--fetch-hashes"], variables)  # fills uv's cache
    if not target.exists():
        raise SkippedError(said)
    library = [sys.executable, "-c", "import conda_lock.lockfile"]
    return rounds(
        {"lock": lambda _: _timed(lock, variables)[0], "import": lambda _: _timed(library, variables)[0]}, count
    )


def _timed(argv: list[str], variables: dict[str, str]) -> tuple[float, str]:
    """Seconds that a command takes, and the end of what it says where it fails."""
    started = time.perf_counter()
    done = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return time.perf_counter() - started, done.stderr[-300:] if done.returncode else ""
