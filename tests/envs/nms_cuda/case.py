"""Builds the broken environment of this case from miniature wheels. See README.md."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support import miniature
from tests.support.copies import copied
from tests.support.index import write_index
from tests.support.venvs import editable_project, install, install_editable, make_venv, python_of, site_packages
from tests.support.wheels import Wheel, make_wheel

PROGRAM = '''\
"""Keeps the best of overlapping boxes."""

import torch
import torchvision

boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
scores = torch.tensor([0.9, 0.8, 0.7])
print("kept boxes:", torchvision.ops.nms(boxes, scores, 0.5).tolist())
'''
EDIT = "\n# edited by hand\n"


TORCH, BROKEN, REPAIRED = ("2.5.1", "0.18.1", "0.20.1") if sys.version_info < (3, 13) else ("2.9.1", "0.22.1", "0.24.1")
"""torch, the torchvision of another one, and its own: releases that have wheels for this Python."""


@dataclass(frozen=True)
class Case:
    """A broken environment, and where its wheels come from."""

    prefix: Path
    wheels: Path
    """Directory of every wheel, for ``--find-links``."""
    index: str
    """``file://`` URL of a simple index of them."""
    project: Path
    """The editable install's source tree; holds the user's program."""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return python_of(self.prefix)

    @property
    def program(self) -> Path:
        """The user's program, which fails until the environment is repaired."""
        return self.project / "detector.py"

    @property
    def edited(self) -> Path:
        """The file of a distribution that was edited by hand."""
        return site_packages(self.prefix) / "PIL" / "__init__.py"

    def index_variables(self) -> dict[str, str]:
        """Variables that make pip and uv see the case's index and no other configuration."""
        return {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": self.index, "UV_NO_CONFIG": "1"}


def build(directory: Path, *, torchvision: str = BROKEN, name: str = "env", python: str = sys.executable) -> Case:
    """Build the environment at ``directory/name`` with a torchvision that belongs to another torch."""
    copied(("nms-cuda", torchvision, name, python), lambda place: _build(place, torchvision, name, python), directory)
    index = (directory / "index" / "simple").as_uri()
    return Case(directory / name, directory / "wheels", index, directory / "detector")


def _build(directory: Path, torchvision: str, name: str, python: str) -> None:
    pins = _wheels(directory)
    prefix = make_venv(directory / name, python=python)
    wanted = [f"torch=={TORCH}", "numpy==1.26.4", "pillow==10.4.0", "box-labels==1.2"]
    install(prefix, [pins[pin] for pin in wanted])
    install(prefix, [pins[f"torchvision=={torchvision}"]])
    project = editable_project(directory / "detector", "detector")
    (project / "detector.py").write_text(PROGRAM, encoding="utf-8")
    install_editable(prefix, project)
    with (site_packages(prefix) / "PIL" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(EDIT)


def _wheels(directory: Path) -> dict[str, Wheel]:
    pins, _ = miniature.build(directory, torch=TORCH)
    labels = make_wheel(
        directory / "wheels",
        "box-labels",
        "1.2",
        files={"box_labels.py": "def main():\n    print('labels')\n"},
        requires=["numpy"],
        entry_points="[console_scripts]\nbox-labels = box_labels:main\n",
    )
    pins[labels.requirement] = labels
    write_index(directory / "index", list(pins.values()))
    return pins
