"""An index behind HTTP, an environment made from it, and a user whose tools know it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.support import Done, Shell
from tests.support.index import IndexServer, serve, write_index
from tests.support.venvs import make_venv, python_of, uv
from tests.support.wheels import Wheel, make_wheel

ABI = f"cp{sys.version_info[0]}{sys.version_info[1]}"
COMPILED = f"{ABI}-{ABI}-manylinux_2_17_x86_64"
RENAMED = f"{ABI}-{ABI}-manylinux1_x86_64"
"""The tag in the name of a wheel whose own WHEEL says ``linux_x86_64``, as torch's does."""


@dataclass(frozen=True)
class World:
    """What a test needs."""

    room: Path
    server: IndexServer
    wheels: dict[str, Wheel]
    prefix: Path
    user: Shell

    @property
    def index(self) -> str:
        """URL of the simple index."""
        return self.server.url

    def lock(self, *arguments: str, prefix: Path | None = None) -> Done:
        """``envmedic lock``."""
        return self.user.envmedic("lock", "-p", str(prefix or self.prefix), *arguments)

    def uv(self, *arguments: str, cache: bool = True) -> str:
        """Run ``uv`` as the user; it must succeed."""
        return self.run([uv(), *arguments, *([] if cache else ["--no-cache"])])

    def pip(self, prefix: Path, *arguments: str) -> str:
        """Run pip on an environment that has none."""
        return self.run([sys.executable, "-m", "pip", "--python", str(python_of(prefix)), *arguments])

    def run(self, argv: Sequence[str]) -> str:
        """Run a command as the user; it must succeed."""
        done = self.attempt(argv)
        assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def attempt(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command as the user."""
        return subprocess.run(argv, env=self.user.environment(), capture_output=True, text=True, check=False)

    def installed(self, prefix: Path) -> set[str]:
        """``name==version`` of everything there."""
        return set(self.uv("pip", "freeze", "--python", str(python_of(prefix))).split("\n")) - {""}

    def empty(self, name: str = "new") -> Path:
        """A fresh environment."""
        return make_venv(self.room / name)

    def forget(self) -> World:
        """The same for a user whose caches are empty."""
        home = self.room / "other-home"
        home.mkdir(exist_ok=True)
        shell = Shell(home, self.user.variables)
        return World(self.room, self.server, self.wheels, self.prefix, shell)


def build_wheels(folder: Path) -> dict[str, Wheel]:
    """Wheels of every kind that a name of a wheel can be."""
    made = (
        make_wheel(folder, "alpha", "1.0", requires=["beta>=2", "colorama; sys_platform == 'win32'"]),
        make_wheel(folder, "beta", "2.0", tags=(COMPILED,)),
        make_wheel(
            folder,
            "gamma",
            "3.0",
            tags=(RENAMED,),
            wheel=f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: false\nTag: {ABI}-{ABI}-linux_x86_64\n",
        ),
    )
    return {wheel.name: wheel for wheel in made}


@contextmanager
def world(room: Path) -> Iterator[World]:
    """All of it; the environment has alpha, beta and gamma from the index."""
    wheels = build_wheels(room / "wheels")
    root = room / "index"
    write_index(root, list(wheels.values()))
    home = room / "home"
    home.mkdir()
    with serve(root) as server:
        index = server.url
        variables = {
            "PIP_INDEX_URL": index,
            "UV_DEFAULT_INDEX": index,
            "UV_LINK_MODE": "copy",
            "PIP_CONFIG_FILE": "/dev/null",
        }
        made = World(room, server, wheels, make_venv(room / "env"), Shell(home, variables))
        made.uv(
            "pip", "install", "-q", "--python", str(python_of(made.prefix)), *(w.requirement for w in wheels.values())
        )
        yield made
