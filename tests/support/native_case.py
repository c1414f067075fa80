"""Environments of small wheels with real shared libraries, and a user who runs envmedic on them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.copies import NAME, copied
from tests.support.forking import run_envmedic
from tests.support.index import write_index
from tests.support.venvs import install, make_venv, python_of
from tests.support.wheels import Wheel

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "A miniature for tests"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What stdout holds under ``--json``."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def found_by(self, playbook: str) -> list[dict[str, Any]]:
        """The findings of a playbook in a diagnosis, those that follow from other findings among them."""
        roots = self.document["findings"]
        return [found for root in roots for found in (root, *root["consequences"]) if found["playbook"] == playbook]

    def told(self) -> str:
        """Both streams, for a failed assertion."""
        return f"exit {self.code}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


@dataclass(frozen=True)
class NativeCase:
    """A broken environment, and where its wheels come from."""

    room: Path
    prefix: Path
    program: Path
    """The user's program, which fails until the environment is repaired."""
    index: str
    """``file://`` URL of a simple index of every wheel."""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return python_of(self.prefix)

    def variables(self) -> dict[str, str]:
        """A user without settings, whose pip and uv know the case's index alone."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.room),
            "XDG_CACHE_HOME": str(self.room.parent / "cache"),
            "XDG_CONFIG_HOME": str(self.room / "config"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.index,
            "UV_NO_CONFIG": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, **more: str) -> Done:
        """Run the user's program."""
        return run([str(self.python), "-X", "faulthandler", str(self.program)], {**self.variables(), **more}, self.room)

    def log(self, **more: str) -> Path:
        """What the program prints, as a file: with the words of a shell where a signal ended it."""
        done = self.run(**more)
        assert done.code != 0, done.told()
        said = {-11: "Segmentation fault (core dumped)\n", -6: "Aborted (core dumped)\n"}.get(done.code, "")
        file = self.room / "error.log"
        file.write_text(done.out + done.err + said, encoding="utf-8")
        return file

    def envmedic(self, *arguments: str, **more: str) -> Done:
        """Run envmedic."""
        code, out, err = run_envmedic(arguments, {**self.variables(), **more})
        done = Done(code, out.decode(), err.decode())
        if repaired_by(arguments, done):
            settled(self, more)
        return done

    def apply(self, *arguments: str, **more: str) -> Done:
        """Repair by ``envmedic apply``, without a question."""
        target = ("-p", str(self.prefix), "--yes", "--no-gpu", "--json")
        return self.envmedic("apply", *target, *arguments, **more)


WATCHERS: list[Callable[[Any, dict[str, str]], None]] = []
"""What is told of each environment that was repaired or is healthy: its case, and variables of the command."""


def settled(case: object, variables: dict[str, str] | None = None) -> None:
    """Tell the watchers, of which there are none but in runs that ask for one (`tests.support.round_trip`)."""
    for watcher in WATCHERS:
        watcher(case, variables or {})


def repaired_by(arguments: Sequence[str], done: Done) -> bool:
    """Whether that command of envmedic's, with ``--json``, left its environment in order by changing it."""
    asked = done.code == 0 and arguments[0] == "apply" and "--json" in arguments
    return asked and done.document.get("environment") == "repaired"


def run(argv: Sequence[str], env: dict[str, str], cwd: Path) -> Done:
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=1800, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def build_native(room: Path, wheels: Sequence[Wheel], installed: Sequence[str], program: str) -> NativeCase:
    """An environment in ``room/env`` with the wheels called `installed` (names or pins), and `program` beside it."""
    room.mkdir(parents=True, exist_ok=True)
    by_name = {wheel.name: wheel for wheel in wheels} | {wheel.requirement: wheel for wheel in wheels}
    index = write_index(room / "index", list(wheels))
    prefix = room / NAME
    chosen = [by_name[name] for name in installed]
    copied(tuple(wheel.sha256 for wheel in chosen), lambda place: install(make_venv(place), chosen), prefix)
    file = room / "program.py"
    file.write_text(program, encoding="utf-8")
    return NativeCase(room=room, prefix=prefix, program=file, index=index)
