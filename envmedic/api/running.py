"""Use case ``run``: the user's command, and the diagnosis of its failure."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from envmedic import activation, proc
from envmedic.api.context.observation import observe
from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import conclude, diagnose_output
from envmedic.api.playbooks import load_playbooks
from envmedic.engine.stage.environ import variables
from envmedic.errors import InputError, Interrupted
from envmedic.linked_prefix import real_prefix
from envmedic.model.events import Notice, OutputLine
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import NO_TEXT, LoadedPlaybook
from envmedic.proc.output import OutputTail
from envmedic.proc.passthrough import Ending, run_through

FAULTHANDLER = "PYTHONFAULTHANDLER"
"""Makes Python print its stack if a signal ends it."""
Cancel = Callable[[], bool]
"""Whether to stop; asked often."""
_SHELL = 128
_UNTOLD = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGPIPE})
"""Signals by which a user or a closed pipe ended the command on purpose."""
_HEAD_BYTES = 1024
_LONG = b"'''exec' "


@dataclass(frozen=True)
class Ran:
    """A command that has ended, and what it printed."""

    argv: tuple[str, ...]
    ending: Ending
    output: OutputTail = field(default_factory=OutputTail)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those that it was given."""
    seconds: float = 0.0
    """How long it ran."""

    @property
    def exit_code(self) -> int:
        """Exit status as shells report it: 128 + n after signal n."""
        return self.ending.returncode if self.ending.returncode >= 0 else _SHELL - self.ending.returncode

    @property
    def failed(self) -> bool:
        """Whether it failed by itself, and was not stopped."""
        wanted = self.ending.stopped_by is not None or -self.ending.returncode in _UNTOLD
        return self.ending.returncode != 0 and not wanted

    def how(self) -> str:
        """Return how it ended, in words."""
        return told_ending(self.ending.returncode)

    def lines(self) -> Iterator[bytes]:
        """Return what it printed, and how it ended."""
        # a shell would have printed how the command ended ("Segmentation fault"), and signatures look for that
        return chain(self.output.lines(), [(self.how() + "\n").encode()])


def told_ending(returncode: int) -> str:
    """Return an exit status, or minus a signal's number, in words."""
    if returncode >= 0:
        return f"exit code {returncode}"
    return f"{signal.strsignal(-returncode) or 'ended'} ({signal_name(-returncode)}, signal {-returncode})"


def signal_name(number: int) -> str:
    """Name of a signal; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def run(argv: Sequence[str], *, prefix: Path | None = None) -> Ran:
    """Run `argv` with this process's terminal and streams; with `prefix`, as in a shell where that is activated.

    Raises OSError when there is no such program, or it cannot be started.
    """
    variables, output = _variables(prefix), OutputTail()
    started = time.monotonic()
    ending = run_through(_program(argv[0], variables), argv, variables, output)
    return Ran(tuple(argv), ending, output, variables, time.monotonic() - started)


def _variables(prefix: Path | None) -> dict[str, str]:
    base = dict(os.environ)
    if prefix is not None:
        own = activation.activated_values(prefix, prefix, base)
        base = activation.overlaid(variables(prefix, {}), own)
    # setdefault: the user may have switched it off
    base.setdefault(FAULTHANDLER, "1")
    return base


def _program(name: str, variables: Mapping[str, str]) -> str:
    """Return the path of the program that a shell would start. Raises OSError if there is none."""
    found = shutil.which(name, path=variables.get("PATH"))
    # a path is left to exec, whose errno says more than "not found": no permission, or a missing interpreter
    if found is None and "/" not in name:
        raise FileNotFoundError(2, os.strerror(2), name)
    return found or name


def reproduce(settings: Settings, prefix: Path, argv: Sequence[str], cancel: Cancel | None = None) -> Ran:
    """Run `argv` in the environment as it is, activated, without terminal and input.

    No byte code is written; what the command itself writes stays. Its lines are events. Raises InputError when it
    cannot be started, and Interrupted when `cancel` asked to stop it.
    """
    output = OutputTail()
    variables = {**_variables(prefix), "PYTHONDONTWRITEBYTECODE": "1"}
    # proc.run starts from this process's variables; None removes those that activation does not have
    unset: dict[str, str | None] = dict.fromkeys(name for name in os.environ if name not in variables)

    def on_line(line: str) -> None:
        output.feed("command", line.encode("utf-8", "replace") + b"\n")
        settings.stream.emit(OutputLine(source="command", line=line))

    try:
        result = proc.run(
            [_program(argv[0], variables), *argv[1:]],
            env=unset | variables,
            on_line=on_line,
            timeout_s=settings.timeout_s,
            cancel=cancel,
        )
    except OSError as error:
        raise InputError(
            f"The command {argv[0]} cannot be started", cause=error.strerror, hint="Give it as in an activated shell"
        ) from error
    if cancel is not None and cancel():
        raise Interrupted("The command was stopped", cause="cancelled")
    given = {name: value for name, value in variables.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return Ran(tuple(argv), Ending(result.returncode), output, given, result.seconds)


def diagnose_reproduced(
    settings: Settings, prefix: Path, argv: Sequence[str], *, cancel: Cancel | None = None
) -> Diagnosis:
    """Run `argv` in an environment, and return the diagnosis of its failure."""
    facts = observe(settings, prefix)
    return diagnose_command(settings, load_playbooks(settings), facts, prefix, argv, cancel=cancel)


def diagnose_command(
    settings: Settings,
    playbooks: tuple[LoadedPlaybook, ...],
    facts: Facts,
    prefix: Path,
    argv: Sequence[str],
    *,
    cancel: Cancel | None = None,
) -> Diagnosis:
    """Run `argv` in the environment, and diagnose its output and its end; facts alone if it succeeds.

    Raises Interrupted when `cancel` asked to stop the command.
    """
    return diagnose_ended(settings, playbooks, facts, prefix, reproduce(settings, prefix, argv, cancel))


def diagnose_ended(
    settings: Settings, playbooks: tuple[LoadedPlaybook, ...], facts: Facts, prefix: Path, ran: Ran
) -> Diagnosis:
    """Return the diagnosis of a command that has ended; of facts alone, with a warning, where it has not failed."""
    if ran.failed:
        return _diagnosed(settings, playbooks, facts, prefix, ran)
    told = f"{ran.argv[0]} ended with {ran.how()}"
    settings.stream.emit(Notice(code="not-reproduced", message=told, level="warning"))
    return conclude(playbooks, facts, NO_TEXT, prefix, None)


def environment_of(argv: Sequence[str]) -> Path | None:
    """Return the environment of the Python or script that `argv` names; None for other programs."""
    found = shutil.which(argv[0])
    if found is None:
        return None
    candidates = [Path(found)]
    interpreter = _interpreter_of(Path(found))
    if interpreter is not None:
        candidates.insert(0, interpreter)
    for path in candidates:
        # only the directory is resolved: a venv's python is a link to that of another installation
        prefix = real_prefix(Path(os.path.realpath(path.parent)).parent)
        if path.name.startswith("python") and ((prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir()):
            return prefix
    return None


def _interpreter_of(script: Path) -> Path | None:
    """Return the interpreter in a script's first line."""
    try:
        with script.open("rb") as file:
            first, _, rest = file.read(_HEAD_BYTES).partition(b"\n")
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    line = first[2:]
    # for a path with blanks, or longer than the kernel allows, pip writes #!/bin/sh and `exec` in the second line
    if rest.startswith(_LONG):
        line = rest.removeprefix(_LONG).partition(b"\n")[0]
    try:
        words = shlex.split(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    return Path(words[0]) if words else None


def diagnose_run(settings: Settings, prefix: Path | None, ran: Ran) -> Diagnosis:
    """Return the diagnosis of a command's output and end; without `prefix`, from the text alone."""
    facts = None if prefix is None else observe(settings, prefix)
    return _diagnosed(settings, load_playbooks(settings), facts, prefix, ran)


def _diagnosed(
    settings: Settings, playbooks: tuple[LoadedPlaybook, ...], facts: Facts | None, prefix: Path | None, ran: Ran
) -> Diagnosis:
    name = f"the command {ran.argv[0]}: {ran.how()}"
    here = settings.host_file is None
    return diagnose_output(settings, playbooks, facts, ran.lines(), prefix=prefix, name=name, here=here)
