"""The three measures: cloning, probing, and what a repair costs besides installer and checks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from envmedic.engine.clone.clone import clone
from envmedic.probe.environment import observe_environment
from tests.bench.place import Place
from tests.bench.sampling import Samples, rounds
from tests.support.venvs import python_of
from tests.support.wheels import make_wheel

SOURCE = Path(__file__).with_name("linkloop.c")
IMPORTS = "import torch, torchvision"
PROBE = "import sys; from pathlib import Path; from envmedic.probe.environment import observe_environment as o; o(Path(sys.argv[1]))"


class SkippedError(Exception):
    """Why something cannot be measured here."""


@dataclass
class Trees:
    """Makes trees of one round beside those of the others."""

    place: Place
    environment: Path
    loop: Path | None
    """The compiled C loop."""

    def fresh(self, measure: str, number: int) -> Path:
        """A path for one tree; its parent exists, holds nothing else, and nothing waits to be written."""
        folder = self.place.root / "samples" / f"{measure}-{number}"
        folder.mkdir()
        os.sync()
        return folder / "env"

    def link_loop(self, number: int, measure: str = "loop") -> float:
        """Clone by the C loop; returns the seconds that it took."""
        if self.loop is None:
            raise SkippedError("there is no C compiler")
        target = self.fresh(measure, number)
        output = _run([str(self.loop), str(self.environment), str(target)])
        return float(output.split()[1])

    def clone(self, number: int) -> float:
        """Clone as a repair does where hard links are the best way."""
        target = self.fresh("clone", number)
        return clone(self.environment, target, "link").seconds

    def links(self, number: int) -> float:
        """Clone by ``cp -al``."""
        target = self.fresh("links", number)
        return _timed(["cp", "-al", str(self.environment), str(target)])

    def copy(self, number: int) -> float:
        """Clone by ``cp -a``."""
        target = self.fresh("copy", number)
        return _timed(["cp", "-a", str(self.environment), str(target)])


def compile_loop(folder: Path) -> Path:
    """Compile the C loop into `folder`. Raises `SkippedError` where there is no compiler."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise SkippedError("there is no C compiler (cc, gcc or clang)")
    program = folder / "linkloop"
    _run([compiler, "-O2", "-Wall", "-o", str(program), str(SOURCE)])
    return program


def cloning(trees: Trees, count: int) -> Samples:
    """Samples ``clone``, ``cp -al`` and ``cp -a``, and ``loop`` where there is one."""
    measures: dict[str, Callable[[int], float]] = {"clone": trees.clone, "cp -al": trees.links, "cp -a": trees.copy}
    return rounds(({"loop": trees.link_loop} if trees.loop else {}) | measures, count)


@dataclass
class Overhead:
    """Repairs of copies of the environment, each in a process of its own."""

    trees: Trees
    stages: list[dict[str, float]] = field(default_factory=list)
    """Seconds of every stage of each repair, and ``own``."""

    def samples(self, count: int) -> Samples:
        """Samples ``loop`` and ``overhead``: each loop makes the environment that is then repaired."""
        wheel = make_wheel(self.trees.place.root / "samples" / "wheels", "tiny", "1.0").path
        made: dict[int, Path] = {}

        def loop(number: int) -> float:
            seconds = self.trees.link_loop(number, "repaired")
            made[number] = self.trees.place.root / "samples" / f"repaired-{number}" / "env"
            return seconds

        def repair(number: int) -> float:
            os.sync()
            output = _run([sys.executable, "-m", "tests.bench.one_apply", str(made[number]), str(wheel)])
            answer = json.loads(output)
            if number:
                self.stages.append({"own": answer["own"], **answer["stages"]})
            return float(answer["own"])

        return rounds({"loop": loop, "overhead": repair}, count)

    def by_stage(self) -> dict[str, float]:
        """Median seconds of each stage."""
        return {name: median(stages.get(name, 0.0) for stages in self.stages) for name in self.stages[0]}


def real_environment(candidates: list[Path]) -> Path:
    """The first environment in which torch and torchvision import, with their byte code cached.

    Raises `SkippedError` with what is wrong with each.
    """
    reasons = []
    for prefix in candidates:
        reason = _unfit(prefix)
        if not reason:
            return prefix
        reasons.append(f"{prefix}: {reason}")
    raise SkippedError("; ".join(reasons) or "set ENVMEDIC_BENCH_PREFIX to an environment with torch and torchvision")


def _unfit(prefix: Path) -> str:
    if not python_of(prefix).exists():
        return "no environment"
    if not any(prefix.glob("lib/python3.*/site-packages/torch/__pycache__/__init__.*.pyc")):
        return "torch's byte code is not cached (python -m compileall)"
    result = subprocess.run(_import(prefix), capture_output=True, text=True, check=False)
    return (result.stderr.strip().splitlines() or ["it failed"])[-1] if result.returncode else ""


def probing(prefix: Path, byte_code: Path, count: int) -> Samples:
    """Samples ``imports``, ``probe`` in this process, ``probe process``, and whole commands: ``facts``, ``diagnose``.

    ``imports compiling`` are imports without byte code at hand, as they are the first time after an installer that
    writes none. `byte_code` is a directory for envmedic's own, which is thus cached as that of the others is,
    whatever this shell's settings.
    """
    fresh = [sys.executable, "-c", PROBE, str(prefix)]
    facts, diagnose = (
        [sys.executable, "-m", "envmedic", name, "--json", "--prefix", str(prefix)] for name in ("facts", "diagnose")
    )
    theirs = variables()
    compiling = variables(PYTHONPYCACHEPREFIX=str(byte_code / "none"))
    ours = variables(PYTHONPYCACHEPREFIX=str(byte_code))
    return rounds(
        {
            "imports": lambda _: _timed(_import(prefix), theirs),
            "imports compiling": lambda _: _timed(_import(prefix), compiling),
            "probe": lambda _: _probe(prefix),
            "probe process": lambda _: _timed(fresh, ours),
            "facts": lambda _: _timed(facts, ours),
            "diagnose": lambda _: _timed(diagnose, ours),
        },
        count,
    )


def variables(**more: str) -> dict[str, str]:
    """This process's variables without those that say where byte code lies and whether it is written."""
    left_out = {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
    return {name: value for name, value in os.environ.items() if name not in left_out} | more


def _import(prefix: Path) -> list[str]:
    """Argv that imports without writing anything into the environment."""
    return [str(python_of(prefix)), "-B", "-c", IMPORTS]


def _probe(prefix: Path) -> float:
    started = time.perf_counter()
    observe_environment(prefix)
    return time.perf_counter() - started


def _timed(argv: list[str], variables: dict[str, str] | None = None) -> float:
    started = time.perf_counter()
    _run(argv, variables)
    return time.perf_counter() - started


def _run(argv: list[str], variables: dict[str, str] | None = None) -> str:
    """Run a command that must succeed and return what it prints."""
    result = subprocess.run(argv, capture_output=True, text=True, check=False, env=variables)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}\n{result.stdout}{result.stderr}")
    return result.stdout
