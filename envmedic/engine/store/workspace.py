"""The clone as the workspace of a plan's steps, and running a command in it."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from envmedic.errors import EnvmedicError, InstallerError, InternalError, Killed, StorageError
from envmedic.model.events import Emit, OutputLine
from envmedic.model.ports import CommandResult, CondaInstaller, Installer, Runner, UserCommand

_TAIL_LINES = 20
_KILLED = re.compile(r"Killed signal terminated program|\bsignal(?:led)?:? (?:9|SIGKILL)\b|died with <Signals\.SIGKILL")
"""What compilers, build tools and Python say of a child that was killed."""
_FULL = re.compile(r"No space left on device|[Dd]isk quota exceeded|\[Errno (?:28|122)\]|os error (?:28|122)\b")


@dataclass(frozen=True)
class Workplace:
    """The clone and the tools that change it."""

    tree: Path
    trash: Path
    runner: Runner
    installer: Installer
    emit: Emit
    poll: Callable[[], None]
    """Raises `Interrupted` when somebody asked to stop."""
    timeout_s: float | None = None
    conda: CondaInstaller | None = None
    """None outside a conda prefix."""
    command: UserCommand | None = None
    """Of an install."""

    @property
    def conda_side(self) -> CondaInstaller:
        """The installer of conda packages. Raises InternalError if the plan has a conda step and none was given."""
        return required(self.conda)


def required(conda: CondaInstaller | None) -> CondaInstaller:
    """`conda`, which a plan with a step for it cannot do without. Raises InternalError."""
    if conda is None:
        raise InternalError("The plan changes conda packages, and nothing was given to do that")
    return conda


def run(
    argv: tuple[str, ...], place: Workplace, *, env: Mapping[str, str] | None = None, directory: str | None = None
) -> None:
    """Run a command in the clone, its output as events. Raises InstallerError if it fails, and `Interrupted`."""
    source = called(argv)
    if directory is not None:
        argv = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', directory, *argv)

    def on_line(line: str) -> None:
        place.emit(OutputLine(source=source, line=line))
        place.poll()

    place.poll()
    result = place.runner(argv, env=env, on_line=on_line, timeout_s=place.timeout_s)
    place.poll()
    if result.returncode != 0:
        words = argv if directory is None else argv[4:]
        raise _failed(msgspec.structs.replace(result, argv=words), place.tree)


def called(argv: Sequence[str]) -> str:
    """The common name of a command: its program, or the module that Python runs, without ``env`` and variables."""
    words = list(argv)
    if os.path.basename(words[0]) == "env":  # noqa: PTH119  # no path is asked about
        words = [word for word in words[1:] if "=" not in word] or words
    if "-m" in words[1:-1]:
        return words[words.index("-m", 1) + 1]
    return os.path.basename(words[0])  # noqa: PTH119  # a word for people


def _failed(result: CommandResult, tree: Path) -> EnvmedicError:
    lines = (result.stdout + result.stderr).splitlines()
    details = (" ".join(result.argv), *lines[-_TAIL_LINES:])
    # The kernel's choice where memory runs out may be envmedic's child, or a compiler below it.
    below = next((line for line in reversed(lines) if _KILLED.search(line)), None)
    if not result.timed_out and (result.signal == signal.SIGKILL or below is not None):
        killed = Killed(called(result.argv) if below is None else f"A program that {called(result.argv)} ran")
        killed.details = details
        return killed
    full = next((line.strip() for line in reversed(lines) if _FULL.search(line)), None)
    if full is not None:
        free = shutil.disk_usage(tree).free
        return StorageError(
            f"There is no room left for {called(result.argv)}",
            cause=f"{full} ({free / 1e6:,.0f} MB are free at {tree.parent})",
            hint="Make room there, and where TMPDIR and the caches of pip and uv are; `envmedic prune` removes kept generations",
            details=details,
        )
    return _unexplained(result, details)


def _unexplained(result: CommandResult, details: tuple[str, ...]) -> InstallerError:
    hint = "See the output above, and `envmedic plan` for other ways"
    if result.timed_out:
        how, silent = (
            f"took longer than {result.seconds:.0f} s",
            "It said nothing, and was killed with all it had started",
        )
        hint = "Give it more time with --timeout SECONDS, or see `envmedic plan` for other ways"
    elif result.signal is not None:
        how, silent = f"was ended by signal {result.signal}", "It said nothing before"
    else:
        how, silent = f"exited with status {result.returncode}", "It did not say why"
    return InstallerError(
        f"{called(result.argv)} {how}",
        cause=next((line for line in reversed(details[1:]) if line.strip()), silent),
        hint=hint,
        details=details,
    )
