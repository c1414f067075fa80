"""Where the steps of a plan are carried out, and running a command there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.files import Owner
from envmedic.errors import InstallerError, InternalError
from envmedic.model.events import Emit, OutputLine
from envmedic.model.ports import CommandResult, CondaInstaller, Installer, Runner

_TAIL_LINES = 20


@dataclass(frozen=True)
class Workplace:
    """The clone and the tools that change it."""

    tree: Path
    trash: Path
    owner: Owner | None
    runner: Runner
    installer: Installer
    emit: Emit
    poll: Callable[[], None]
    """Raises `Interrupted` when somebody asked to stop."""
    timeout_s: float | None = None
    conda: CondaInstaller | None = None
    """None outside a conda prefix."""

    @property
    def conda_side(self) -> CondaInstaller:
        """What changes conda packages. Raises InternalError where a plan has such a step and nothing to take it."""
        return required(self.conda)


def required(conda: CondaInstaller | None) -> CondaInstaller:
    """`conda`, which a plan with a step for it cannot do without. Raises InternalError."""
    if conda is None:
        raise InternalError("The plan changes conda packages, and nothing was given to do that")
    return conda


def run(argv: tuple[str, ...], place: Workplace, *, env: Mapping[str, str] | None = None) -> None:
    """Run a command in the clone, its output as events. Raises InstallerError when it fails, and `Interrupted`."""
    source = os.path.basename(argv[0])  # noqa: PTH119  # a word for people

    def on_line(line: str) -> None:
        place.emit(OutputLine(source=source, line=line))
        place.poll()

    place.poll()
    result = place.runner(argv, env=env, on_line=on_line, timeout_s=place.timeout_s)
    place.poll()
    if result.returncode != 0:
        raise _failed(result)


def _failed(result: CommandResult) -> InstallerError:
    if result.timed_out:
        how = f"took longer than {result.seconds:.0f} s"
    elif result.signal is not None:
        how = f"was ended by signal {result.signal}"
    else:
        how = f"exited with status {result.returncode}"
    lines = (result.stdout + result.stderr).splitlines()[-_TAIL_LINES:]
    return InstallerError(
        f"{os.path.basename(result.argv[0])} {how}",  # noqa: PTH119  # a word for people
        cause=next((line for line in reversed(lines) if line.strip()), None),
        hint="See the output above, and `envmedic plan` for other ways",
        details=(" ".join(result.argv), *lines),
    )
