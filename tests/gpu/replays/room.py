"""A copy of a real environment that may be broken: hard links, in which files are replaced and never edited."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 300.0
"""For each command but a repair."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What it printed, errors last."""
        return self.out + self.err

    def must(self) -> Done:
        """Raise RuntimeError where it failed."""
        if self.code != 0:
            raise RuntimeError(f"{' '.join(self.argv)}: exit status {self.code}\n{self.text[-3000:]}")
        return self


@dataclass(frozen=True)
class Room:
    """One copy with a folder of its own, in which sources and wheels for its repair lie too."""

    folder: Path
    wheels: Path
    """Wheels that were brought along: another torchvision, for one."""
    outside: dict[str, str] = field(default_factory=dict)
    """Variables of the shell that everything is called from."""
    within: list[str] = field(default_factory=list)
    """What every command is started by: a program that hides something of the machine from it."""

    @property
    def prefix(self) -> Path:
        """The environment."""
        return self.folder / "env"

    @property
    def links(self) -> Path:
        """The directory of wheels that the repair may use."""
        path = self.folder / "links"
        path.mkdir(exist_ok=True)
        return path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.prefix / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its site-packages."""
        return next(self.prefix.glob("lib/python3*/site-packages"))

    def run(self, *argv: str | Path, limit_s: float = LIMIT_S, cwd: Path | None = None, **more: str) -> Done:
        """Run to the end, without leaving byte code behind."""
        words = tuple(str(word) for word in (*self.within, *argv))
        return run(words, {**self.outside, **more}, limit_s=limit_s, cwd=cwd)

    def activated(self, *argv: str, cwd: Path | None = None) -> Done:
        """Run in a shell in which the environment is active."""
        script = f'. "{self.prefix}/bin/activate"; exec "$@"'
        return self.run("bash", "-c", script, "bash", *argv, cwd=cwd or self.folder)

    def python_here(self, text: str) -> str:
        """What a program prints that the copy's Python runs."""
        return self.run(self.python, "-c", text).must().out.strip()

    def install(self, *what: str | Path, **more: str) -> None:
        """Install without needs and without isolation, in files of its own; built against this copy's torch."""
        python = ("--python", self.python, "--link-mode=copy", "--no-deps", "--no-build-isolation", "--offline")
        cache = ("--cache-dir", self.folder / "cache")
        path = f"{self.prefix}/bin{os.pathsep}{os.environ['PATH']}"
        words = ("uv", "pip", "install", *map(str, (*python, *cache, *what)))
        run(words, {**self.outside, "PATH": path, **more}).must()

    def without(self, *names: str) -> None:
        """Uninstall packages that a replay has no use for and whose imports take long; those not there are left out."""
        uv = ("uv", "pip", "uninstall", "--offline", "--python", str(self.python))
        run((*uv, *names), self.outside).must()

    def found(self, pattern: str) -> list[Path]:
        """Files of site-packages that match; raises FileNotFoundError where none does."""
        paths = sorted(self.site.glob(pattern))
        if not paths:
            raise FileNotFoundError(f"nothing matches {pattern} in {self.site}")
        return paths

    def write(self, path: Path, content: str | bytes) -> None:
        """Put `content` at `path` in a new file, so that the original that it may share is not touched."""
        mode = path.stat().st_mode if path.exists() else None
        path.unlink(missing_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            path.chmod(mode)

    def variable(self, name: str, value: str) -> None:
        """Let activation set a variable, as users do who follow an old answer."""
        path = self.prefix / "bin" / "activate"
        self.write(path, f"{path.read_text(encoding='utf-8')}\nexport {name}={value}\n")


def run(argv: Sequence[str], more: Mapping[str, str], *, limit_s: float = LIMIT_S, cwd: Path | None = None) -> Done:
    """Run a command to its end; one that outlasts `limit_s` seconds ends with status 124, as `timeout` has it."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, env=environment, timeout=limit_s, cwd=cwd
        )
    except subprocess.TimeoutExpired as late:
        texts = [
            part.decode(errors="replace") if isinstance(part, bytes) else "" for part in (late.stdout, late.stderr)
        ]
        return Done(tuple(argv), 124, texts[0], f"{texts[1]}\nno end within {limit_s:.0f} s")
    return Done(tuple(argv), done.returncode, done.stdout, done.stderr)


def copied(origin: Path, folder: Path, wheels: Path, outside: Mapping[str, str]) -> Room:
    """A copy of the environment at `origin` below `folder`, whose scripts name its own path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    room = Room(folder, wheels, dict(outside))
    run(("cp", "-al", str(origin), str(room.prefix)), {}).must()
    (room.prefix / ".lock").unlink(missing_ok=True)  # uv's: as one file under several names it would lock all copies
    for script in (*(room.prefix / "bin").iterdir(), room.prefix / "pyvenv.cfg"):
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        if str(origin).encode() in content:
            room.write(script, content.replace(str(origin).encode(), str(room.prefix).encode()))
    return room
