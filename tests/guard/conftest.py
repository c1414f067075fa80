"""An environment with pip, and an index with several releases of what it holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.support import Done, Shell
from tests.support.index import normalise, write_index
from tests.support.venvs import install, python_of
from tests.support.wheels import Wheel, make_wheel


@dataclass(frozen=True)
class World:
    """An environment, its index, and its user's shell."""

    prefix: Path
    index: str
    wheels: Path
    shell: Shell

    def ask(self, *words: str, prefix: Path | None = None) -> Done:
        """Ask about a command, and hold the environment against what it was."""
        target = prefix or self.prefix
        before = looks(target)
        done = self.shell.envmedic("guard", "--json", "-p", str(target), *words)
        assert looks(target) == before
        return done

    def copied(self, place: Path) -> Path:
        """A copy of the environment, for what really changes it: installers replace files, and edit none."""
        shutil.copytree(self.prefix, place, symlinks=True, copy_function=os.link)
        return place

    def carry_out(self, prefix: Path, *arguments: str, uv: str | None = None) -> int:
        """Run pip of `prefix` (or uv on it) for real."""
        argv = [str(python_of(prefix)), "-m", "pip"] if uv is None else [uv, "pip"]
        target = ["--python", str(python_of(prefix))] if uv else []
        done = subprocess.run(
            [*argv, *arguments, *target],
            env=self.shell.environment(),
            capture_output=True,
            check=False,
            timeout=1800,
            cwd=self.wheels,
        )
        return done.returncode


def looks(prefix: Path) -> dict[str, tuple[int, int, int]]:
    """Kind, size and time of every file."""
    status = {str(path): path.lstat() for path in (prefix, *prefix.rglob("*"))}
    return {path: (item.st_mode, item.st_size, item.st_mtime_ns) for path, item in status.items()}


def installed(prefix: Path) -> dict[str, str]:
    """What is installed, by its metadata."""
    found = (path.name.removesuffix(".dist-info") for path in prefix.glob("lib/python3*/site-packages/*.dist-info"))
    return {normalise(name): version for name, _, version in (item.partition("-") for item in found)}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """alpha 1.0 and 2.0, which needs beta>=2; beta 1.0 to 3.0; gamma, which needs beta<2; delta only as a source archive."""
    root = tmp_path_factory.mktemp("guard")
    folder = root / "wheels"
    pins = {wheel.requirement: wheel for wheel in _wheels(folder)}
    index = write_index(root / "index", list(pins.values()))
    _source_archive(root / "index", "delta", "2.0")
    prefix = root / "env"
    subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True, timeout=1800)
    install(prefix, [pins["alpha==1.0"], pins["beta==1.0"], pins["gamma==1.0"]])
    shell = Shell(root / "home", {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index})
    shell.home.mkdir()
    return World(prefix, index, folder, shell)


def _wheels(folder: Path) -> list[Wheel]:
    return [
        make_wheel(folder, "alpha", "1.0", requires=["beta"]),
        make_wheel(folder, "alpha", "2.0", requires=["beta>=2"]),
        make_wheel(folder, "beta", "1.0"),
        make_wheel(folder, "beta", "1.5"),
        make_wheel(folder, "beta", "2.0"),
        make_wheel(folder, "beta", "3.0"),
        make_wheel(folder, "gamma", "1.0", requires=["beta<2"]),
        make_wheel(folder, "delta", "1.0"),
        make_wheel(folder, "epsilon", "1.0", requires=["alpha"]),
        make_wheel(folder, "epsilon", "2.0a1", requires=["alpha"]),
    ]


def _source_archive(index: Path, name: str, version: str) -> None:
    """A release that has to be built; building it leaves a trace beside the index."""
    import io
    import tarfile

    setup = (
        f"open({str(index / 'built')!r}, 'w').close()\n"
        f"from setuptools import setup\nsetup(name={name!r}, version={version!r})\n"
    )
    content = {f"{name}-{version}/setup.py": setup, f"{name}-{version}/PKG-INFO": f"Name: {name}\nVersion: {version}\n"}
    path = index / "files" / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, text in content.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    page = index / "simple" / name / "index.html"
    page.write_text(
        page.read_text(encoding="utf-8").replace(
            "</body>", f'<a href="../../files/{path.name}">{path.name}</a></body>'
        ),
        encoding="utf-8",
    )
