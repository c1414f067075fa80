"""Runs the real command line on a miniature environment, in a shell of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from tests.envs.nms_cuda.case import Case
from tests.real.manifest import Entry, manifest
from tests.support import forking
from tests.support.venvs import site_packages

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "envs" / "nms_cuda"
ENVMEDIC, LIMIT_S = forking.PROGRAM, forking.LIMIT_S
REPAIR = ("apply", "--playbook", "nms-cuda", "--yes", "--no-gpu")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What stdout holds under ``--json``: exactly one document."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def lines(self) -> list[str]:
        """stderr by line, without indentation."""
        return [line.strip() for line in self.err.splitlines()]

    def told(self) -> str:
        """Both streams, for a failed assertion."""
        return f"exit {self.code}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


@dataclass(frozen=True)
class Shell:
    """A user's shell: a home and a cache of its own, and no settings of this machine."""

    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ENVMEDIC
    forked: bool = True
    """Whether commands that run to their end may be forks (`tests.support.forking`)."""

    def having(self, **variables: str) -> Shell:
        """The same with further variables."""
        return replace(self, variables={**self.variables, **variables})

    def environment(self) -> dict[str, str]:
        """The variables that commands see."""
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_CONFIG_DIRS": str(self.home / "xdg"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        return {**own, **self.variables}

    def envmedic(
        self,
        *arguments: str,
        stdin: bytes = b"",
        limit_s: float = LIMIT_S,
        folder: Path = ROOT,
    ) -> Done:
        """Run envmedic to its end, with `folder` as working directory."""
        if self.forked and self.program == ENVMEDIC and limit_s == LIMIT_S:
            code, out, err = forking.run_envmedic(arguments, self.environment(), folder, stdin=stdin)
        else:
            argv = [*self.program, *arguments]
            code, out, err = forking.run_process(argv, self.environment(), folder, stdin=stdin, limit_s=limit_s)
        return Done(code, out.decode(), err.decode())

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Envmedic while it runs; it is killed when the block ends too early."""
        process = subprocess.Popen(
            [*self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=self.environment(),
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=LIMIT_S)


def user_of(case: Case, home: Path) -> Shell:
    """A user whose pip and uv know the case's index."""
    home.mkdir(parents=True, exist_ok=True)
    return Shell(home, case.index_variables())


def lines_of(stream: IO[bytes] | None) -> Iterator[str]:
    """Lines of a pipe as they come."""
    assert stream is not None
    for line in stream:
        yield line.decode()


def wait_for(path: Path, limit_s: float = 30.0) -> None:
    """Wait until `path` exists."""
    deadline = time.monotonic() + limit_s
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.01)


def state_of(*roots: Path) -> dict[str, dict[str, Entry]]:
    """Every file with its SHA-256, mode and mtime."""
    return {str(root): manifest(root) for root in roots if root.exists()}


def torchvision(prefix: Path) -> str:
    """The version that is installed."""
    found = next(site_packages(prefix).glob("torchvision-*.dist-info"))
    return found.name.removeprefix("torchvision-").removesuffix(".dist-info")


def copied(case: Case, prefix: Path) -> Path:
    """A copy of the case's environment, for a test that damages it; its scripts name the original."""
    shutil.copytree(case.prefix, prefix, symlinks=True)
    return prefix


def failure(done: Done, *, code: int, kind: str, says: str, hint: bool = True) -> None:
    """Assert that a command failed as users expect it to: told once, with a next step, and nothing changed."""
    assert done.code == code, done.told()
    assert "Traceback" not in done.err, done.told()
    start = next((number for number, line in enumerate(done.lines) if line.startswith("error: ")), None)
    assert start is not None, done.told()
    told = done.lines[start:]
    assert says in "\n".join(told), done.told()
    assert sum(line.startswith("hint: ") for line in told) == hint, done.told()
    assert done.err.lower().count("environment is unchanged") == 1, done.told()
    assert len(told) == len(set(told)), done.told()
    if done.out:
        document = done.document
        assert (document["schema"], document["code"], document["exit_code"]) == ("envmedic.error/1", kind, code)
        assert document["environment"] == "unchanged"
