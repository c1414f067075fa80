"""A broken conda environment, the user's program that shows it, and a user who runs envmedic on it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conda.referee import Referee, builds
from tests.conda.room import Room
from tests.real.manifest import Entry, manifest
from tests.support.forking import run_envmedic
from tests.support.native_case import Done, repaired_by, run, settled

PROGRAM = '''\
"""Keeps the best of overlapping boxes."""

import torch
import torchvision

boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
scores = torch.tensor([0.9, 0.8, 0.7])
print("kept boxes:", torchvision.ops.nms(boxes, scores, 0.5).tolist())
'''
PRINTS = "kept boxes: [0, 2]\n"


@dataclass(frozen=True)
class CondaCase:
    """An environment of a room."""

    room: Room
    prefix: Path
    index: str
    """``file://`` URL of an index of miniature wheels."""
    complaints: frozenset[str]
    """What ``conda doctor`` said before the fault."""

    @property
    def referee(self) -> Referee:
        """The conda that judges it."""
        return Referee(self.room)

    def variables(self) -> dict[str, str]:
        """A user whose conda and pip know the room's channels and the case's index alone."""
        return {
            **self.room.environment,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.index,
            "UV_NO_CONFIG": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self) -> Done:
        """Run the user's program by the environment's Python."""
        file = self.room.root / "program.py"
        file.write_text(PROGRAM, encoding="utf-8")
        return run([str(self.prefix / "bin" / "python"), str(file)], self.variables(), self.room.root)

    def log(self) -> Path:
        """What the program prints as it fails, as a file."""
        done = self.run()
        assert done.code != 0, done.told()
        file = self.room.root / "error.log"
        file.write_text(done.out + done.err, encoding="utf-8")
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
        return self.envmedic("apply", "-p", str(self.prefix), "--yes", "--no-gpu", "--json", *arguments, **more)

    def undo(self, before: dict[str, Entry]) -> None:
        """Undo the last repair; the environment must be as `before`, byte for byte."""
        done = self.envmedic("undo", "-p", str(self.prefix), "--yes")
        assert done.code == 0, done.told()
        assert manifest(self.prefix) == before

    def packages(self) -> dict[str, str]:
        """Name of each conda package → version and build."""
        return {name: text.rpartition(" ")[0] for name, text in builds(self.prefix).items()}


def changes_of(done: Done) -> list[tuple[str, str | None, str | None]]:
    """What a plan changes: name, before and after."""
    plan: dict[str, Any] = done.document["plan"]
    return [(item["name"], item["before"], item["after"]) for item in plan["changes"]]
