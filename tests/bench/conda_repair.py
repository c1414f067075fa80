"""What a repair of a conda environment costs besides the installer: ``envmedic apply`` against its own stages.

The environment is a small one of genuine packages from a local channel: what is paid per repair, and not per byte,
shows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envmedic.engine.clone.clone import clone
from tests.bench.measures import SkippedError
from tests.bench.sampling import Samples
from tests.conda.channel import channels
from tests.conda.client import conda_program
from tests.conda.room import Room, make_room

SOUND = ("python=3.11", "pytorch=2.4", "torchvision", "pytorch-cuda=12.1", "pip", "packaging")
WRONG, RIGHT = "torchvision=0.18.1=py311_cu121", "torchvision=0.19.1=py311_cu121"
INSTALLER = ("solve", "fetch", "steps")
"""Stages that are the installer's: solving, packages, and the change itself with the check of every new file."""
CHECKS = ("reproduce", "verify", "smoke")


def repairing(folder: Path, count: int) -> Samples:
    """Seconds of a repair by their kind, and of py-rattler making the same change in place. Raises `SkippedError`.

    Samples: ``whole``, of it ``installer``, ``checks`` and ``own``; ``rattler``; ``clone`` beside ``conda clone``; and
    ``diagnose`` beside ``doctor``.
    """
    taken: dict[str, list[float]] = {}
    with _room(folder) as room:
        prefix, plain = (room.by_rattler(name, SOUND) for name in ("env", "plain"))
        room.force(prefix, WRONG)
        for number in range(count + 1):
            alone = {"rattler": _alone(room, plain)} | _cloned(room, plain, number) | _told(room, plain)
            for name, seconds in (_repair(room, prefix) | alone).items():
                if number:  # the first one warms caches
                    taken.setdefault(name, []).append(seconds)
    return {name: tuple(values) for name, values in taken.items()}


@contextmanager
def _room(folder: Path) -> Iterator[Room]:
    root = folder / "conda-room"
    shutil.rmtree(root, ignore_errors=True)
    try:
        found = channels()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SkippedError(f"no local channel could be made: {error}") from error
    try:
        yield make_room(root, found.old)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _repair(room: Room, prefix: Path) -> dict[str, float]:
    started = time.perf_counter()
    record = _envmedic(room, "apply", "-p", str(prefix), "--playbook", "nms-cuda", "--yes", "--no-gpu", "--json")
    whole = time.perf_counter() - started
    seconds = record["seconds"]
    installer = sum(seconds.get(stage, 0.0) for stage in INSTALLER)
    checks = sum(seconds.get(stage, 0.0) for stage in CHECKS)
    _envmedic(room, "undo", "-p", str(prefix), "--yes", "--json")
    return {"whole": whole, "installer": installer, "checks": checks, "own": whole - installer - checks}


def _alone(room: Room, prefix: Path) -> float:
    """The same change by py-rattler in place, in a new process, without a way back."""
    room.force(prefix, WRONG)
    started = time.perf_counter()
    room.force(prefix, RIGHT)
    return time.perf_counter() - started


def _cloned(room: Room, prefix: Path, number: int) -> dict[str, float]:
    """Clones of the environment, by envmedic and by conda."""
    own, other = (prefix.with_name(f"{name}-{number}") for name in ("own", "other"))
    seconds = clone(prefix, own, "link").seconds
    whole = _conda(room, "create", "--quiet", "--yes", "--offline", "--clone", str(prefix), "--prefix", str(other))
    for path in (own, other):
        shutil.rmtree(path)
    return {"clone": seconds, "conda clone": whole}


def _told(room: Room, prefix: Path) -> dict[str, float]:
    """What is wrong with the environment, by envmedic and by conda."""
    started = time.perf_counter()
    _envmedic(room, "diagnose", "-p", str(prefix), "--json")
    return {"diagnose": time.perf_counter() - started, "doctor": _conda(room, "doctor", "--prefix", str(prefix))}


def _conda(room: Room, *arguments: str) -> float:
    """Seconds of one command of conda."""
    started = time.perf_counter()
    done = subprocess.run(
        [str(conda_program()), *arguments], env=room.environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise SkippedError(f"conda {arguments[0]} ended with {done.returncode}: {done.stderr[-300:]}")
    return seconds


def _envmedic(room: Room, *arguments: str) -> dict[str, dict[str, float]]:
    variables = {**room.environment, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "envmedic", *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SkippedError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-300:]}")
    document: dict[str, dict[str, float]] = json.loads(done.stdout)
    return document
