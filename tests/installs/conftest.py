"""An environment like those in which people install: miniatures of numpy, torch and what is built against them, with pip."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done, Shell
from tests.real.manifest import Entry, manifest
from tests.support.index import write_index
from tests.support.repairs import pure, torch
from tests.support.rooms import in_memory
from tests.support.venvs import install, python_of
from tests.support.wheels import Wheel, make_wheel

_NUMPY_1 = """
import numpy
if not numpy.__version__.startswith("1."):
    raise ImportError("A module that was compiled using NumPy 1.x cannot be run in NumPy " + numpy.__version__)
"""
_NEEDS_TORCH = """
import torch
if not torch.__version__.startswith("{}"):
    raise ImportError("undefined symbol: _ZN3c104cuda9SetDeviceEi")
"""
INSTALLED = (
    "numpy==1.26.4", "scipy==1.11.4", "torch==2.5.1", "torchvision==0.20.1", "transformers==4.40.0", "tokenizers==0.19.1",
    "opencv-python==4.8.0", "cuda-python==12.4.0", "cuda-bindings==12.4.0", "protobuf==4.25.0", "onnx==1.15.0", "pillow==10.0.0",
    "requests==2.31.0", "urllib3==1.26.0", "six==1.16.0", "fam-kernels==1.0", "pydantic==1.10.0", "fastapi==0.95.0",
    "setuptools-ext==1.0", "typing-ext==4.5.0", "namespace-a==1.0", "legacy==1.0",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A user with an environment of their own."""

    prefix: Path
    index: str
    wheels: Path
    shell: Shell

    def run(self, *words: str, folder: Path | None = None, **variables: str) -> Done:
        """Run envmedic on the environment, which is active."""
        active = {"VIRTUAL_ENV": str(self.prefix), **variables}
        return self.shell.having(**active).envmedic(*words, folder=folder or self.wheels)

    def by_hand(self, *words: str) -> None:
        """Run the environment's own pip, in place."""
        argv = [str(python_of(self.prefix)), "-m", "pip", *words]
        subprocess.run(argv, env=self.shell.environment(), check=True, capture_output=True, timeout=1800)

    def imports(self, name: str) -> bool:
        """Whether an import works in the environment as it is."""
        argv = [str(python_of(self.prefix)), "-B", "-c", f"import {name}"]
        return subprocess.run(argv, check=False, capture_output=True, timeout=600).returncode == 0

    def version(self, name: str) -> str | None:
        """The installed version of a distribution."""
        found = [
            path.name for path in self.prefix.glob(f"lib/python3*/site-packages/{name.replace('-', '_')}-*.dist-info")
        ]
        return found[0].removesuffix(".dist-info").partition("-")[2] if found else None

    def state(self) -> dict[str, Entry]:
        """Every file with its SHA-256, mode and time."""
        return manifest(self.prefix)

    def history(self) -> list[dict[str, Any]]:
        """The generations, newest first."""
        found: list[dict[str, Any]] = self.run("history", "--json").document["generations"]
        return found


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The environment from which each test gets its own."""
    root = tmp_path_factory.mktemp("installs")
    pins = {wheel.requirement: wheel for wheel in _wheels(root / "wheels")}
    index = write_index(root / "index", list(pins.values()))
    write_index(root / "cpu", [_cpu_torch(root / "cpu")])
    write_index(root / "broken", [pure(root / "broken", "numpy", "1.26.4", "raise ImportError('libopenblas.so')\n")])
    source_archive(root / "index", "flash-attn-src", "1.0", "import torch_of_the_host\n")
    prefix = root / "env"
    subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True, timeout=1800)
    install(prefix, [pins[pin] for pin in INSTALLED])
    shell = Shell(root / "home", {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index})
    shell.home.mkdir()
    return Place(prefix, index, root / "wheels", shell)


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Iterator[Place]:
    for room in in_memory(tmp_path):
        prefix = room / "env"
        shutil.copytree(template.prefix, prefix, symlinks=True)
        yield Place(prefix, template.index, template.wheels, template.shell)


def _cpu_torch(folder: Path) -> Wheel:
    files = {
        "torch/__init__.py": "from torch.version import __version__\n",
        "torch/version.py": "__version__ = '2.5.1+cpu'\ndebug = False\ncuda = None\ngit_version = '0'\nhip = None\n",
    }
    return make_wheel(folder, "torch", "2.5.1+cpu", files=files)


def source_archive(index: Path, name: str, version: str, code: str) -> None:
    """Add a release to `index` whose build runs `code` first."""
    setup = f"{code}from setuptools import setup\nsetup(name={name!r}, version={version!r})\n"
    path = index / "files" / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, text in (("setup.py", setup), ("PKG-INFO", f"Name: {name}\nVersion: {version}\n")):
            entry = tarfile.TarInfo(f"{name}-{version}/{member}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    page = index / "simple" / name / "index.html"
    page.parent.mkdir()
    page.write_text(f'<!DOCTYPE html><html><body><a href="../../files/{path.name}">{path.name}</a></body></html>')


def _wheels(folder: Path) -> list[Wheel]:
    numpy = [pure(folder, "numpy", version, "") for version in ("1.26.4", "2.1.0")]
    old = "raise ImportError('cannot import name HybridCache')\n"
    return [
        *numpy,
        pure(folder, "scipy", "1.11.4", _NUMPY_1, requires=("numpy>=1.21",)),
        pure(folder, "scipy", "1.14.0", "", requires=("numpy>=1.23",)),
        torch(folder, "2.5.1"),
        torch(folder, "2.6.0"),
        pure(folder, "torchvision", "0.20.1", "", requires=("torch==2.5.1",)),
        pure(folder, "torchvision", "0.21.0", "", requires=("torch==2.6.0",)),
        pure(folder, "fam-kernels", "1.0", _NEEDS_TORCH.format("2.5"), requires=("torch",)),
        pure(folder, "fam-kernels", "2.0", _NEEDS_TORCH.format("2.6"), requires=("torch",)),
        pure(folder, "transformers", "4.40.0", "import tokenizers\n", requires=("tokenizers<0.20,>=0.19",)),
        pure(folder, "transformers", "5.0.0", "import tokenizers\n", requires=("tokenizers>=0.22",)),
        pure(folder, "tokenizers", "0.19.1", ""),
        pure(folder, "tokenizers", "0.22.0", ""),
        make_wheel(folder, "opencv-python", "4.8.0", files={"cv2/__init__.py": "kind = 'gui'\n", "cv2/gui.py": ""}),
        make_wheel(folder, "opencv-python-headless", "4.10.0", files={"cv2/__init__.py": "kind = 'headless, longer'\n"}),
        pure(folder, "cuda-python", "12.4.0", "import cuda_bindings\n", requires=("cuda-bindings==12.4.0",)),
        pure(folder, "cuda-python", "12.9.0", "import cuda_bindings\n", requires=("cuda-bindings==12.9.0",)),
        pure(folder, "cuda-bindings", "12.4.0", ""),
        pure(folder, "cuda-bindings", "12.9.0", ""),
        pure(folder, "cuda-bindings", "13.0.0", ""),
        pure(folder, "protobuf", "4.25.0", ""),
        pure(folder, "protobuf", "5.29.0", ""),
        pure(
            folder, "onnx", "1.15.0",
            "import protobuf\nif protobuf.__version__ > '5':\n    raise TypeError('Descriptors cannot be created directly')\n",
            requires=("protobuf>=3",),
        ),
        pure(folder, "pillow", "10.0.0", ""),
        pure(folder, "requests", "2.31.0", "import urllib3\n", requires=("urllib3<3,>=1.21",)),
        pure(folder, "urllib3", "1.26.0", ""),
        pure(folder, "urllib3", "2.2.0", ""),
        pure(folder, "urllib3", "3.0.0", ""),
        pure(folder, "six", "1.16.0", ""),
        pure(folder, "six", "1.17.0", ""),
        pure(folder, "pydantic", "1.10.0", "", requires=("typing-ext>=4.2",)),
        pure(folder, "pydantic", "2.7.0", "", requires=("typing-ext>=4.2",)),
        pure(
            folder, "fastapi", "0.95.0",
            "import pydantic\nif pydantic.__version__ > '2':\n    raise ImportError('BaseSettings has been moved')\n",
            requires=("pydantic>=1.6",),
        ),
        pure(folder, "setuptools-ext", "1.0", ""),
        pure(folder, "legacy", "1.0", "import setuptools_ext\n"),
        pure(folder, "typing-ext", "4.5.0", ""),
        pure(folder, "typing-ext", "4.12.0", ""),
        pure(folder, "typing-ext", "3.0.0", ""),
        make_wheel(folder, "namespace-a", "1.0", files={"spaced/a/__init__.py": "a = 1\n"}),
        make_wheel(folder, "namespace-b", "1.0", files={"spaced/b/__init__.py": "b = 1\n"}),
        make_wheel(
            folder, "namespace-c", "1.0", files={"spaced/__init__.py": "__path__ = []\n", "spaced/c.py": "c = 1\n"}
        ),
        make_wheel(folder, "shadow", "1.0", files={"six/__init__.py": "raise ImportError('not the six that you want')\n"}),
        pure(folder, "old-hub", "1.0", old, requires=("transformers<4",)),
        pure(folder, "greedy", "1.0", "", requires=("numpy>=2",)),
        pure(folder, "lazy", "1.0", "", requires=("requests",)),
        pure(folder, "tool-a", "1.0", "", requires=("six>=1.17",)),
        pure(folder, "tool-b", "1.0", ""),
        make_wheel(
            folder, "tool-c", "1.0", files={"tool_c.py": "import sys\n\n\ndef main():\n    print(sys.prefix)\n"},
            entry_points="[console_scripts]\ntool-c = tool_c:main\n",
        ),
        pure(folder, "vision-zoo", "1.0", "", requires=("torchvision>=0.21",)),
        pure(folder, "flash-attn", "2.6.0", _NEEDS_TORCH.format("2.6")),
        pure(folder, "downgrader", "1.0", "", requires=("urllib3<1.27", "typing-ext<4")),
    ]  # fmt: skip
