"""How uv, poetry and PDM are asked to write manifest and lock of a project without its environment, and for a dry run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from envmedic import proc
from envmedic.installers.projects.project_copy import NoEditError
from envmedic.installers.resolution.dry_run import path_outside
from envmedic.installers.uv import find_uv
from envmedic.model.ports import CommandResult
from envmedic.owner import owner
from envmedic.redact import redact_text

TIMEOUT_S = 600.0
_UNSET = (
    *(
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "UV_PROJECT",
        "UV_PROJECT_ENVIRONMENT",
        "UV_WORKING_DIR",
        "UV_PYTHON",
        "UV_FROZEN",
    ),
    *("UV_LOCKED", "PDM_PROJECT", "PDM_PYTHON", "PDM_IGNORE_SAVED_PYTHON", "POETRY_ACTIVE"),
)
_NO_ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    # uv then builds nothing to learn what it requires
    "uv": ("--no-build", "--no-python-downloads", "--color=never", "--no-progress"),
    "poetry": ("--no-ansi", "--no-interaction"),
    "pdm": (),
}
_ONLY_WRITES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("uv", "add"): ("--no-sync",),
    ("uv", "remove"): ("--no-sync",),
    ("poetry", "add"): ("--lock",),
    ("poetry", "remove"): ("--lock",),
    ("poetry", "update"): ("--lock",),
    ("pdm", "add"): ("--no-sync",),
    ("pdm", "remove"): ("--no-sync",),
    ("pdm", "update"): ("--no-sync",),
}
"""Options with which a command writes manifest and lock alone."""


class ProjectProgram(msgspec.Struct, frozen=True):
    """A tool of projects, and the Python that it may start."""

    tool: str
    program: str
    python: str
    """A Python of an environment outside of the project: poetry and PDM would make one in the copy."""
    variables: Mapping[str, str | None]
    offline: bool
    timeout_s: float

    def write(self, folder: Path, verb: str, words: Sequence[str]) -> CommandResult:
        """Run a command in `folder` that writes manifest and lock there."""
        alone = () if "--frozen" in words else _ONLY_WRITES.get((self.tool, verb), ())
        return self.run(folder, verb, *(option for option in alone if option not in words), *words)

    def run(self, folder: Path, *words: str) -> CommandResult:
        """Run a command in `folder`. Raises NoEditError where the tool cannot be started."""
        argv = [self.program, words[0], *_NO_ENVIRONMENT[self.tool]]
        argv += [f"--python={self.python}"] if self.tool == "uv" else []
        argv += ["--offline"] if self.offline and self.tool == "uv" else []
        place = str(Path(self.python).parent.parent)
        env: dict[str, str | None] = {**self.variables, **dict.fromkeys(_UNSET)}
        env |= {"UV_PROJECT_ENVIRONMENT": place} if self.tool == "uv" else {"VIRTUAL_ENV": place}
        env |= {
            # PDM then builds no source archive for its metadata; poetry has no such option
            "PDM_ONLY_BINARY": ":all:",
            "PDM_CHECK_UPDATE": "0",
            "PDM_NON_INTERACTIVE": "1",
            "NO_COLOR": "1",
            "POETRY_VIRTUALENVS_CREATE": "false",
        }
        try:
            return proc.run([*argv, *words[1:]], env=env, cwd=str(folder), timeout_s=self.timeout_s)
        except OSError as error:
            raise NoEditError(f"{self.tool} cannot be started: {error.strerror}") from error


def find(tool: str, prefix: Path) -> str:
    """Path of the user's own tool outside of the environment: it must read the lock afterwards. Raises NoEditError."""
    found = shutil.which(tool, path=path_outside(os.environ.get("PATH", ""), prefix))
    if found is None and tool == "uv":
        return find_uv()
    if found is None:
        raise NoEditError(f"there is no {tool} on PATH that could be asked")
    if owner(Path(found)) is not None:
        raise NoEditError(f"{found} belongs to another user, whose programs root does not run")
    return found


_SAID = 600
"""Characters of a failure that are told: its end, where tools say what decided."""


def said(result: CommandResult) -> str:
    """What a tool says of its failure, in one line."""
    text = result.stderr.strip() or result.stdout.strip()
    lines = [line.strip(" \u00d7\u2570\u2500\u25b6\u2502") for line in text.splitlines()]
    told = redact_text(" ".join(filter(None, lines)))
    return told if len(told) <= _SAID else f"… {told[-_SAID:].partition(' ')[2]}"
