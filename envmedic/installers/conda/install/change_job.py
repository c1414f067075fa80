"""The context of one conda change: clone, runner, working directory and helper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envmedic.errors import InstallerError
from envmedic.installers.conda.install import package_cache
from envmedic.installers.conda.solve import helper_client
from envmedic.model.conda import CondaArtifact, CondaChange
from envmedic.model.events import Emit, OutputLine
from envmedic.model.ports import CommandResult, Runner

WORK = ".envmedic-conda"
"""Working directory in the environment during a change. Packages are unpacked there: hard links from it into the
environment stay on one mount, and share their content with no other file once the directory is removed."""


@dataclass(frozen=True)
class ChangeJob:
    """A change, and where to carry it out."""

    change: CondaChange
    prefix: Path
    """The environment's real path, at which it is used."""
    runner: Runner
    emit: Emit
    timeout_s: float | None = None

    @property
    def seen(self) -> Path:
        """Where commands see the environment: at `prefix`, or in its clone."""
        return self.runner.python.parent.parent

    @property
    def tree(self) -> Path:
        """Path of its files for this process."""
        return self.runner.tree

    @property
    def work(self) -> Path:
        """The directory for this change, as commands see it."""
        return self.seen / WORK

    def archive(self, artifact: CondaArtifact) -> Path:
        """Path of the fetched package file. Raises InstallerError if it is missing."""
        path = package_cache.path_of(artifact)
        if not path.is_file():
            raise InstallerError(
                f"{artifact.filename} is not among the fetched packages",
                cause=f"{path} does not exist",
                hint="Run the same command again",
            )
        return path

    def prepare(self) -> None:
        """Create the working directory."""
        (self.tree / WORK).mkdir()

    def write(self, name: str, text: str) -> str:
        """Write a file for this change and return its path as commands see it."""
        (self.tree / WORK / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        return str(self.work / name)

    def ask(self, what: str, **request: Any) -> helper_client.Answer:
        """Send a request to a helper run by the runner, which sees the staged environment. Raises InstallerError."""
        full = {"do": what, "paths": helper_client.paths(), "prefix": str(self.seen), "work": str(self.work), **request}
        # A runner takes neither standard input nor descriptors: the request is a file, the answer a line of output.
        argv = helper_client.command("-", self.write("request.json", json.dumps(full)))
        result = self._run(argv, source="py-rattler")
        _require_end(result, "py-rattler")
        lines = result.stdout.splitlines()
        # Only the last marked line is the answer.
        answers = [line.removeprefix(helper_client.MARK) for line in lines if line.startswith(helper_client.MARK)]
        return helper_client.checked(answers[-1:], result.returncode, result.stderr)

    def run(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> CommandResult:
        """Run a command to its end, its output as events. Raises InstallerError on a timeout or a signal."""
        name = Path(argv[0]).name
        result = self._run(argv, source=name, env=env)
        _require_end(result, name)
        return result

    def _run(self, argv: Sequence[str], *, source: str, env: Mapping[str, str] | None = None) -> CommandResult:
        def on_line(line: str) -> None:
            if not line.startswith(helper_client.MARK):
                self.emit(OutputLine(source=source, line=line))

        return self.runner(argv, env=env, on_line=on_line, timeout_s=self.timeout_s)


def failed(result: CommandResult) -> InstallerError:
    """The error for a command with a non-zero exit status."""
    lines = (result.stdout + result.stderr).splitlines()[-20:]
    return InstallerError(
        f"{Path(result.argv[0]).name} exited with status {result.returncode}",
        cause=next((line for line in reversed(lines) if line.strip()), None),
        hint="See the output above; the other --installer may do it",
        details=(" ".join(result.argv), *lines),
    )


def _require_end(result: CommandResult, name: str) -> None:
    if result.timed_out or result.signal is not None:
        how = f"took longer than {result.seconds:.0f} s" if result.timed_out else f"was ended by signal {result.signal}"
        raise InstallerError(
            f"{name} {how}", hint="Run the same command again; --timeout gives it longer",
            details=(" ".join(result.argv), *result.stderr.splitlines()[-20:]),
        )  # fmt: skip
