"""How cost grows with the files and with the distributions of an environment, and how much memory is taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.clone.clone import clone
from tests.bench import held
from tests.bench.environment import environment
from tests.bench.scan import scan

FILES = (10_000, 30_000, 100_000, 300_000)
DISTRIBUTIONS = (10, 50, 200, 500)
FILES_BESIDE = 10_000
"""Of the environments that differ by their distributions."""
_WARMING = 1


@dataclass(frozen=True)
class Grown:
    """What one environment cost, seconds as the least of the rounds."""

    files: int
    distributions: int
    diagnose: float
    memory: int
    """Bytes, the most that one process of the diagnosis held at once."""
    clone: float
    scan: float
    """One look at every file."""


def growing(folder: Path, count: int, files: tuple[int, ...] = FILES) -> Iterator[Grown]:
    """Environments of ever more files."""
    for number in files:
        yield _measured(folder, number, None, count)


def filling(folder: Path, count: int, distributions: tuple[int, ...] = DISTRIBUTIONS) -> Iterator[Grown]:
    """Environments of one size and ever more distributions."""
    for number in distributions:
        yield _measured(folder, FILES_BESIDE, number, count)


def _measured(folder: Path, files: int, distributions: int | None, count: int) -> Grown:
    prefix = environment(folder / f"grown-{files}-{distributions or 0}", files, distributions)
    try:
        times = [_diagnosed(prefix) for _ in range(count + _WARMING)][_WARMING:]
        return Grown(
            files=sum(len(names) for _, _, names in os.walk(prefix)),
            distributions=len(list(prefix.glob("lib/python3*/site-packages/*.dist-info"))),
            diagnose=min(times),
            memory=_held(prefix),
            clone=min(_cloned(prefix, folder / "clones", number) for number in range(count)),
            scan=min(_scanned(prefix) for _ in range(count)),
        )
    finally:
        shutil.rmtree(prefix)
        shutil.rmtree(folder / "clones", ignore_errors=True)


def _diagnosed(prefix: Path) -> float:
    """Seconds of a diagnosis from facts."""
    started = time.perf_counter()
    done = subprocess.run(_diagnosis(prefix), capture_output=True, check=False)
    _require_told(done.returncode)
    return time.perf_counter() - started


def _held(prefix: Path) -> int:
    """Bytes that it holds at the most."""
    done = subprocess.run(
        [sys.executable, "-S", held.__file__, *_diagnosis(prefix)], capture_output=True, text=True, check=True
    )
    status, size = map(int, done.stdout.split())
    _require_told(status)
    return size


def _diagnosis(prefix: Path) -> list[str]:
    return [sys.executable, "-m", "envmedic", "diagnose", "-p", str(prefix), "--json"]


def _require_told(status: int) -> None:
    if status not in {0, 1}:
        raise RuntimeError(f"envmedic diagnose ended with {status}")


def _cloned(prefix: Path, folder: Path, number: int) -> float:
    target = folder / str(number) / "env"
    target.parent.mkdir(parents=True)
    os.sync()
    return clone(prefix, target, "link").seconds


def _scanned(prefix: Path) -> float:
    started = time.perf_counter()
    scan(str(prefix))
    return time.perf_counter() - started
