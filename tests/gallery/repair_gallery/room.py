"""Copies of real environments that may be broken: hard links, in which files are replaced, never edited."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import uv

Base = Literal["torch", "plain", "light", "jax", "cupy", "onnx", "cuda", "shared", "uv", "poetry", "pdm", "conda"]
"""The last four are made anew for each fault, by the tool of that name."""
Argv = tuple[str, ...]
BASES: dict[Base, tuple[str, ...]] = {
    "torch": ("torch==2.5.1", "torchvision==0.20.1", "numpy==2.2.6", "pillow", "transformers==4.46.3"),
    # Compiled wheels and their users without torch: imports take seconds instead of half a minute
    "plain": (
        "numpy==2.2.6", "pandas==2.3.3", "scipy==1.15.3", "numba==0.61.2", "opencv-python-headless==4.12.0.88",
        "transformers==4.46.3", "protobuf==5.29.5", "click", "pillow",
    ),
    # A few seconds for all imports
    "light": ("numpy==2.2.6", "pandas==2.3.3", "contourpy==1.3.2", "pillow", "requests", "click", "tqdm"),
    # One consumer of NVIDIA's libraries each
    "jax": ("jax[cuda12]==0.6.2", "numpy==2.2.6"),
    "cupy": ("cupy-cuda12x[ctk]==14.2.0", "numpy==2.2.6"),
    "onnx": ("onnxruntime-gpu[cuda,cudnn]==1.22.0", "numpy==2.2.6"),
    # Four of them over one set of libraries
    "cuda": (
        "jax[cuda12]==0.6.2", "cupy-cuda12x[ctk]==14.2.0", "onnxruntime-gpu[cuda,cudnn]==1.22.0", "ctranslate2==4.8.5",
        "numpy==2.2.6",
    ),
    # The newest JAX that accepts the cuDNN which this torch pins
    "shared": ("torch==2.5.1", "jax[cuda12]==0.5.3", "numpy==2.2.6"),
}  # fmt: skip
LIMIT_S = 900.0


class Untried(Exception):
    """A fault cannot be made here, since something that it takes is not there."""


@dataclass(frozen=True)
class Room:
    """One copy."""

    prefix: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.prefix / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its site-packages."""
        return next(self.prefix.glob("lib/python3*/site-packages"))

    @property
    def variables(self) -> Mapping[str, str]:
        """What every program gets in its environment."""
        return {}

    @property
    def beside(self) -> tuple[Path, ...]:
        """Files outside of the prefix that a repair may write, and an undo then takes back."""
        return ()

    @property
    def asked(self) -> tuple[str, ...]:
        """Distributions that were installed on purpose."""
        return ()

    @property
    def ways(self) -> Mapping[str, tuple[Argv, ...]]:
        """Repairs that the tool offers which made the environment: names, and the commands of each."""
        return {}

    def listed(self) -> Mapping[str, str]:
        """Files that a package lists of which no metadata of Python's tell: path → name."""
        return {}

    def complaints(self) -> frozenset[str]:
        """What the tool that made the environment finds wrong in it, or would change; of a plain one nothing is asked."""
        return frozenset()

    def install(self, *requirements: str, deps: bool = False) -> None:
        """Install with real files, so that nothing is shared with a cache that a fault could reach."""
        without = () if deps else ("--no-deps",)
        run([*_install(self.python), *without, *requirements]).check_returncode()

    def uninstall(self, *names: str) -> None:
        """Remove distributions."""
        run([uv.find_uv_bin(), "pip", "uninstall", "-q", "--python", str(self.python), *names]).check_returncode()

    def compile(self) -> None:
        """Write byte code, which judging would not: else each program compiles what it imports."""
        run([str(self.python), "-m", "compileall", "-q", "-j0", str(self.site)])

    def delete(self, *patterns: str) -> None:
        """Delete files and directories below site-packages."""
        for path in self._found(patterns):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def cut(self, pattern: str, *, keep: int = 4096) -> None:
        """Cut files short, as a full disk does."""
        for path in self._found([pattern]):
            self.write(path, path.read_bytes()[:keep])

    def write(self, path: Path, content: str | bytes) -> None:
        """Put `content` at `path` in a new file."""
        mode = path.stat().st_mode if path.exists() else None
        path.unlink(missing_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            path.chmod(mode)

    def append(self, path: Path, text: str) -> None:
        """Add `text` to a file."""
        self.write(path, path.read_text(encoding="utf-8") + text)

    def rename(self, name: str, new: str) -> None:
        """Give something in site-packages another name."""
        (self.site / name).rename(self.site / new)

    def variable(self, name: str, value: str) -> None:
        """Let activation set a variable, as users do who follow an old answer."""
        self.append(self.prefix / "bin" / "activate", f"\nexport {name}={value}\n")

    def _found(self, patterns: Sequence[str]) -> list[Path]:
        found = [path for pattern in patterns for path in sorted(self.site.glob(pattern))]
        if not found:
            raise FileNotFoundError(f"nothing matches {patterns} in {self.site}")
        return found

    def activated(self, command: Sequence[str], *, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run `command` as a shell does in which the environment is active, with `text` on stdin."""
        script = f'. "{self.prefix}/bin/activate"; exec "$@"'
        return run(["bash", "-c", script, "bash", *command], text=text, variables=self.variables)

    def pin(self, *requirements: str) -> None:
        """State limits of the user, in the directory that holds the environment."""
        (self.prefix.parent / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements))

    def smoke(self, code: str, *, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program in the activated environment, by its own Python even where activation leads elsewhere."""
        return self.activated([str(self.python), "-c", code], text=text)


def _install(python: Path) -> list[str]:
    return [uv.find_uv_bin(), "pip", "install", "-q", "--link-mode=copy", "--python", str(python)]


def run(
    argv: Sequence[str],
    *,
    text: str | None = None,
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run to the end, without leaving byte code."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", **(variables or {})}
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, env=environment, timeout=LIMIT_S, input=text, cwd=folder
    )


def base(folder: Path, name: Base) -> Room:
    """The environment that all copies are made from; built once."""
    room = Room(folder / name)
    done = folder / f"{name}.done"
    if not done.exists():
        shutil.rmtree(room.prefix, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(room.prefix)], check=True)
        run([*_install(room.python), "--compile-bytecode", *BASES[name]]).check_returncode()
        done.touch()
    return room


def copy(origin: Room, prefix: Path) -> Room:
    """A copy of hard links whose scripts and settings name its own path."""
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.copytree(origin.prefix, prefix, symlinks=True, copy_function=os.link)
    room = Room(prefix)
    for path in (prefix / "pyvenv.cfg", *(prefix / "bin").iterdir()):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if str(origin.prefix).encode() in content:
            room.write(path, content.replace(str(origin.prefix).encode(), str(prefix).encode()))
    return room
