"""What people use today, beside envmedic: for seeing what is wrong, for mending it, and for going back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import scan
from tests.bench.measures import IMPORTS, SkippedError, variables
from tests.bench.sampling import Samples, rounds
from tests.gpu.replays.packing import pack
from tests.support.venvs import python_of, site_packages, uv

BROKEN = "torchvision"
"""The distribution that is damaged, mended and reinstalled."""
_LIBRARY = "_C*.so"
_TOLD = frozenset({0, 1})
"""Exit codes of what works: nothing is wrong, or something is."""
CHECKS = ("reproduce", "verify", "smoke")
INSTALLER = ("resolve", "fetch", "steps")
OTHERS = (*INSTALLER, *CHECKS)
"""Stages of a repair whose time is the installer's and the checks'."""


def diagnosing(prefix: Path, byte_code: Path, count: int) -> Samples:
    """Seconds of ``envmedic diagnose`` and of what else tells of an environment's state, each a whole new process."""
    python = str(python_of(prefix))
    commands = {
        "diagnose": [sys.executable, "-m", "envmedic", "diagnose", "--json", "-p", str(prefix)],
        "collect_env": [python, "-B", "-m", "torch.utils.collect_env"],
        "pip check": _pip(prefix, "check"),
        "uv pip check": [uv(), "pip", "check", "--python", python],
    }
    given = variables(PYTHONPYCACHEPREFIX=str(byte_code))
    own = variables()
    return rounds(
        {name: partial(_timed, argv, given if name == "diagnose" else own) for name, argv in commands.items()}, count
    )


@dataclass
class Mending:
    """The same damage, mended by envmedic and by what people do today, on copies of a real environment."""

    prefix: Path
    folder: Path
    exchanges: list[float] = field(default_factory=list)
    """Seconds of the exchange of each undo, from the journal's word that it begins to its word that it is over."""
    repairs: list[dict[str, float]] = field(default_factory=list)
    """Seconds of each repair by stage, and the ``whole``."""
    imports: list[float] = field(default_factory=list)
    """Seconds of two imports of torch and torchvision, each in a new process, after each repair."""
    skipped: str = ""
    """Why the environment was not made anew."""

    def samples(self, count: int) -> Samples:
        """Samples ``repair`` (without its checks), ``undo``, its ``exchange``, ``scan``, ``recreate``, ``pip`` and ``uv``."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        wheel = pack(site_packages(self.prefix), BROKEN, self._made("links"))
        frozen = self._made("frozen") / "requirements.txt"
        frozen.write_text(_output([uv(), "pip", "freeze", "--python", str(python_of(self.prefix))]), encoding="utf-8")
        env = self._copied("env")
        plain = self._copied("plain")
        measures: dict[str, Callable[[int], float]] = {
            "repair": lambda _: self._repair(env),
            "undo": lambda _: self._back(env),
            "scan": lambda _: _timed([sys.executable, "-S", scan.__file__, str(env)], variables()),
            "pip": lambda _: self._reinstall(plain, _pip(plain, *PIP_OFFLINE, str(wheel))),
            "uv": lambda _: self._reinstall(plain, [*_uv_install(plain), "--reinstall", "--no-deps", str(wheel)]),
        }
        reason = self._why_not_recreated(frozen)
        if reason:
            self.skipped = reason
        else:
            measures["recreate"] = lambda number: self._recreate(frozen, number)
        samples = {**rounds(measures, count), "exchange": tuple(self.exchanges[1:])}
        shutil.rmtree(self.folder, ignore_errors=True)
        return samples

    def parts(self) -> Samples:
        """Seconds of each repair: envmedic's ``own``, and those of all ``others``."""
        others = [sum(stages.get(name, 0.0) for name in OTHERS) for stages in self.repairs[1:]]
        own = [stages["whole"] - other for stages, other in zip(self.repairs[1:], others, strict=True)]
        return {"own": tuple(own), "others": tuple(others)}

    def against_imports(self) -> Samples:
        """Seconds of each ``whole`` repair with its checks, and of the two ``imports`` after it."""
        return {"whole": tuple(stages["whole"] for stages in self.repairs[1:]), "imports": tuple(self.imports[1:])}

    def by_stage(self) -> dict[str, float]:
        """Median seconds of each stage, and of what lies between them."""
        stages = self.repairs[1:]
        medians = {name: median(item.get(name, 0.0) for item in stages) for name in stages[0] if name != "whole"}
        return medians | {"between them": median(2 * item["whole"] - sum(item.values()) for item in stages)}

    def _made(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        return path

    def _copied(self, name: str) -> Path:
        """A copy by hard links, in which files are replaced and none is edited."""
        path = self.folder / name
        _output(["cp", "-al", str(self.prefix), str(path)])
        return path

    def _repair(self, env: Path) -> float:
        for library in site_packages(env).glob(f"{BROKEN}/{_LIBRARY}"):
            library.unlink()
        links = ("--offline", "--find-links", str(self.folder / "links"))
        started = time.perf_counter()
        events = self.folder / "events"
        _envmedic("apply", "-p", str(env), "--yes", "--no-gpu", *links, "--events", str(events))
        whole = time.perf_counter() - started
        seconds = stage_seconds(events)
        self.repairs.append(seconds | {"whole": whole})
        argv = [str(python_of(env)), "-c", IMPORTS]
        self.imports.append(_timed(argv, variables()) + _timed(argv, variables()))
        return whole - sum(seconds.get(stage, 0.0) for stage in CHECKS)

    def _back(self, env: Path) -> float:
        """Undo. The tree that comes back is the broken one, which the next round finds as it should be."""
        events = self.folder / "events"
        started = time.perf_counter()
        _envmedic("undo", "-p", str(env), "--yes", "--events", str(events))
        seconds = time.perf_counter() - started
        moved = {event["data"]["state"]: event["time"] for event in taken(events) if "state" in event["data"]}
        self.exchanges.append(moved["undone"] - moved["undoing"])
        _envmedic("prune", "-p", str(env), "--keep", "0", "--yes")
        return seconds

    def _reinstall(self, plain: Path, argv: Sequence[str]) -> float:
        for library in site_packages(plain).glob(f"{BROKEN}/{_LIBRARY}"):
            library.unlink()
        return _timed(argv, variables())

    def _why_not_recreated(self, frozen: Path) -> str:
        """uv makes an environment from its cache alone where it holds every wheel."""
        try:
            self._recreate(frozen, -1)
        except RuntimeError as error:
            return str(error).strip().splitlines()[-1]
        return ""

    def _recreate(self, frozen: Path, number: int) -> float:
        fresh = self.folder / f"fresh-{number}"
        base = str(Path(python_of(self.prefix)).resolve())
        started = time.perf_counter()
        _output([uv(), "venv", "--quiet", "--python", base, str(fresh)])
        _output([*_uv_install(fresh), "--offline", "--no-deps", "-r", str(frozen)])
        return time.perf_counter() - started


def taken(events: Path) -> list[dict[str, Any]]:
    """The events of one command; the file is deleted."""
    found = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    events.unlink()
    return found


def stage_seconds(events: Path) -> dict[str, float]:
    """Seconds of each stage that the events of one command tell."""
    found: dict[str, float] = {}
    for data in (event["data"] for event in taken(events)):
        if data["type"] == "stage-finished":
            found[data["stage"]] = found.get(data["stage"], 0.0) + data["seconds"]
    return found


PIP_OFFLINE = ("install", "--force-reinstall", "--no-deps", "--no-index", "--quiet")


def _pip(prefix: Path, *arguments: str) -> list[str]:
    """The environment's own pip, else one beside it that is told of it."""
    if any(site_packages(prefix).glob("pip-*.dist-info")):
        return [str(python_of(prefix)), "-m", "pip", "--disable-pip-version-check", *arguments]
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python_of(prefix)), *arguments]


def _uv_install(prefix: Path) -> list[str]:
    return [uv(), "pip", "install", "--quiet", "--python", str(python_of(prefix))]


def _envmedic(*arguments: str) -> None:
    quiet = {"CUDA_VISIBLE_DEVICES": "", "UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull}
    _output([sys.executable, "-m", "envmedic", *arguments, "--json"], variables(**quiet))


def _timed(argv: Sequence[str], given: dict[str, str], _number: int = 0) -> float:
    """Seconds of a command, which may find something wrong."""
    started = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=given)
    seconds = time.perf_counter() - started
    if done.returncode not in _TOLD:
        raise SkippedError(f"{' '.join(argv)}: {done.stderr[-300:]}")
    return seconds


def _output(argv: Sequence[str], given: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=given)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout
