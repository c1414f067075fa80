"""Use case ``guard``: whether a command of pip, uv or conda would undo a repair or break the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from envmedic import xdg
from envmedic.api.context.observation import observe, stage
from envmedic.api.context.settings import Settings
from envmedic.engine.store.live_records import live_records
from envmedic.errors import InputError, NotAnEnvironment
from envmedic.installers.conda.solve import conda_dry_run
from envmedic.installers.index.credentials import redacted
from envmedic.installers.resolution import dry_run
from envmedic.installers.uv import find_uv, pip_help
from envmedic.model.answers.guard import CondaCommand, Guard, GuardVerdict, Harm, PipCommand
from envmedic.model.facts import Environment, Facts
from envmedic.model.plan import CONSTRAINTS
from envmedic.planner.guard import command_words, judge
from envmedic.planner.guard.command_options import CannotTell


def guard(settings: Settings, prefix: Path, command: str | Sequence[str]) -> Guard:
    """Return the effect of `command` on the environment at `prefix`, and its harms. Changes nothing.

    A text is split as a shell would split it; words are taken as a shell has split them.

    Raises InputError for an unknown command or one for another environment, NetworkError without a reachable index.
    """
    words = command_words.split(command) if isinstance(command, str) else command
    return judged(settings, observe(settings, prefix), words)


def judged(settings: Settings, facts: Facts, words: Sequence[str]) -> Guard:
    """Return what `guard` does, for an environment that was observed."""
    cannot_tell, read = None, None
    try:
        read = command_words.read_command(words, pip_help)
    except CannotTell as error:
        cannot_tell = error.summary
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    asked = _Asked(settings, facts, environment, words)
    # an unknown option may change everything, so no effect is guessed: the answer is "unanswered"
    if read is None:
        return asked.answer((), unknown=cannot_tell)
    _require_this(read, environment)
    return asked.pip(read, read.command) if isinstance(read.command, PipCommand) else asked.conda(read.command)


def _standing(prefix: Path, environment: Environment) -> judge.Standing:
    # what a user installs or keeps behind envmedic, the user may change: only a repair is undone by it
    records = tuple(item for item in live_records(prefix) if item.plan.purpose == "repair")
    path = prefix / CONSTRAINTS
    pinned = environment.conda.pinned if environment.conda is not None else ()
    return judge.Standing(
        verified=judge.verified(records),
        transaction=records[0].transaction if records else None,
        constraints=tuple(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else (),
        constraints_file=CONSTRAINTS,
        pinned=tuple(judge.pinned_name(text) for text in pinned),
    )


def _require_this(read: command_words.Read, environment: Environment) -> None:
    """Raise InputError if the command names another environment than the one asked about."""
    command = read.command
    by_pip = isinstance(command, PipCommand)
    named = command.python if isinstance(command, PipCommand) else command.prefix
    # /path/to/pip names an environment, /path/to/uv does not: uv takes VIRTUAL_ENV or --python
    program = read.program if by_pip and "/" in read.program and not read.program.endswith("/uv") else None
    for text in filter(None, (named, program)):
        path = xdg.expanded(text)
        prefix = path.parent.parent if path.is_file() else path
        if path.exists() and os.path.realpath(prefix) != environment.real_prefix:
            raise InputError(
                f"The command is for {text}, not for {environment.prefix}",
                hint="Name its environment with -p, or leave the path out of the command",
            )


class _Asked:
    """One question with the facts of the environment."""

    def __init__(self, settings: Settings, facts: Facts, environment: Environment, words: Sequence[str]) -> None:
        self._settings = settings
        self._facts = facts
        self._environment = environment
        self._words = words
        self._standing = _standing(Path(environment.real_prefix), environment)

    def pip(self, read: command_words.Read, command: PipCommand) -> Guard:
        """Return the answer for a command of pip or uv, by uv's dry run."""
        # an uninstall needs no resolution: its effect is the removal of the named distributions
        if command.verb == "uninstall":
            found = dry_run.foresee_removal(command, self._environment)
        else:
            asking = dry_run.DryRunRequest(
                find_uv(),
                command,
                self._environment,
                self._variables(read),
                offline=self._settings.offline,
                timeout_s=self._settings.timeout_s,
            )
            with stage(self._settings.stream, "resolve"):
                found = dry_run.foresee(asking)
        foreseen = tuple(judge.Foreseen(item.name, item.before, item.after) for item in found.changes)
        return self.answer(foreseen, refused=found.refused, unknown=found.unknown)

    def conda(self, command: CondaCommand) -> Guard:
        """Return the answer for a command of conda, mamba or micromamba, by conda's dry run."""
        conda = self._environment.conda
        if conda is None:
            raise InputError(
                f"{self._environment.prefix} is no conda environment",
                cause=f"{command.tool} would not touch it",
                hint="Name the conda environment with -p PREFIX or -n NAME",
            )
        judge.require_installed(command, conda)
        offline, prefix = self._settings.offline or command.offline, Path(self._environment.real_prefix)
        with stage(self._settings.stream, "solve"):
            found = conda_dry_run.foresee(command, conda, prefix, offline=offline, timeout_s=self._settings.timeout_s)
        foreseen = judge.of_change(found.change, conda)
        named = {judge.pinned_name(text) for text in command.specs}
        notes = () if command.tool == "conda" else (f"As conda solves it; {command.tool} may choose other builds",)
        more = judge.unasked(foreseen, named)
        return self.answer(foreseen, refused=found.refused, unknown=found.unknown, notes=notes, more=more)

    def _variables(self, read: command_words.Read) -> dict[str, str]:
        """Return the variables of the activated shell in which the command would run."""
        variables = dict(os.environ)
        for item in self._environment.variables:
            if item.value is None:
                variables.pop(item.name, None)
            else:
                variables[item.name] = item.value
        return {**variables, **read.variables}

    def answer(
        self,
        foreseen: Sequence[judge.Foreseen],
        *,
        refused: str | None = None,
        unknown: str | None = None,
        notes: tuple[str, ...] = (),
        more: tuple[Harm, ...] = (),
    ) -> Guard:
        """Return the document for the `foreseen` changes, or for a refused or unpredictable command."""
        harms = (*judge.harms(self._facts, self._environment, foreseen, self._standing), *more)
        verdict: GuardVerdict = judge.verdict(harms)
        summary = judge.summary(foreseen, harms)
        if refused is not None:
            verdict, summary = "fails", f"it would end in an error and change nothing: {refused}"
        # a harm that is certain counts more than the rest that is unknown
        elif unknown is not None and not harms:
            verdict, summary = "unanswered", unknown
        return Guard(
            prefix=self._environment.prefix,
            command=tuple(map(redacted, self._words)),
            tool=command_words.tool_of(self._words),
            verdict=verdict,
            summary=summary,
            transaction=self._standing.transaction,
            changes=judge.changes(self._environment, foreseen),
            harms=harms,
            notes=(*command_words.notes(self._words), *notes, *((unknown,) if unknown is not None and harms else ())),
        )
