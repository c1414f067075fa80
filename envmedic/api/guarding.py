"""Use case ``guard``: whether a command of an installer or of a project would undo a repair or break the environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from envmedic import xdg
from envmedic.api.context.observation import observe, stage
from envmedic.api.context.settings import Settings
from envmedic.engine.store.live_records import live_records
from envmedic.errors import InputError, NotAnEnvironment
from envmedic.installers.conda.solve import conda_dry_run, spec_files
from envmedic.installers.index.credentials import redacted
from envmedic.installers.projects import project_foresight
from envmedic.installers.resolution import dry_run
from envmedic.installers.uv import find_uv, uv_help
from envmedic.linked_prefix import real_prefix
from envmedic.model.answers.guard import (
    CondaCommand,
    Guard,
    GuardVerdict,
    Harm,
    OtherPlaceCommand,
    PipCommand,
    ProjectCommand,
)
from envmedic.model.facts import Environment, Facts
from envmedic.model.plan import CONSTRAINTS
from envmedic.planner.guard import command_words, conda_commands, judge
from envmedic.planner.guard.command_options import CannotTell


def guard(settings: Settings, prefix: Path, command: str | Sequence[str]) -> Guard:
    """Return the effect of `command` on the environment at `prefix`, and its harms. Changes nothing.

    A text is split as a shell would split it; words are taken as a shell has split them.

    Raises InputError for an unknown command or one for another environment, NetworkError without a reachable index.
    """
    if not isinstance(command, str):
        return judged(settings, observe(settings, prefix), command)
    notes = command_words.notes(command)
    return judged(settings, observe(settings, prefix), command_words.split(command), notes)


def judged(settings: Settings, facts: Facts, words: Sequence[str], notes: Sequence[str] = ()) -> Guard:
    """Return what `guard` does, for an environment that was observed; with `notes` on how the line was typed."""
    cannot_tell, read = None, None
    try:
        read = command_words.read_command(words, uv_help)
    except CannotTell as error:
        cannot_tell = error.summary
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    asked = _Asked(settings, facts, environment, words, (*notes, *(read.notes if read is not None else ())))
    # an unknown option may change everything, so no effect is guessed: the answer is "unanswered"
    if read is None:
        return asked.answer((), unknown=cannot_tell)
    _require_this(read, environment)
    return asked.about(read)


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
    named = command.python if isinstance(command, PipCommand) else None
    named = command.prefix if isinstance(command, CondaCommand) else named
    # /path/to/pip names an environment, /path/to/uv does not: uv takes VIRTUAL_ENV or --python
    by_path = isinstance(command, PipCommand) and "/" in read.program and not read.program.endswith("/uv")
    for text in filter(None, (named, read.program if by_path else None)):
        if _elsewhere(text, environment):
            raise InputError(
                f"The command is for {text}, not for {environment.prefix}",
                hint="Name its environment with -p, or leave the path out of the command",
            )


def _elsewhere(text: str, environment: Environment) -> bool:
    """Whether an existing environment, or a program in one, is another one than that asked about."""
    path = xdg.expanded(text)
    prefix = path.parent.parent if path.is_file() else path
    return path.exists() and str(real_prefix(prefix)) != environment.real_prefix


class _Asked:
    """One question with the facts of the environment."""

    def __init__(
        self,
        settings: Settings,
        facts: Facts,
        environment: Environment,
        words: Sequence[str],
        notes: tuple[str, ...] = (),
    ) -> None:
        self._notes = notes
        self._settings = settings
        self._facts = facts
        self._environment = environment
        self._words = words
        self._standing = _standing(Path(environment.real_prefix), environment)

    def about(self, read: command_words.Read) -> Guard:
        """Return the answer for a command, by the dry run of its tool or of one like it."""
        command = read.command
        if isinstance(command, PipCommand):
            return self._pip(read, command)
        if isinstance(command, ProjectCommand):
            return self._project(read, command)
        if isinstance(command, CondaCommand):
            return self._conda(read, command)
        return self._other(command)

    def _other(self, command: OtherPlaceCommand) -> Guard:
        """Return the answer for a command about another place, unless it makes or removes this environment."""
        environment = self._environment
        own = Path(environment.real_prefix).name if environment.conda is not None else None
        place = command.prefix is not None and str(real_prefix(command.prefix)) == environment.real_prefix
        if place or (command.name is not None and command.name == own):
            text = f"{environment.prefix} itself would be removed, with all that is installed there"
            harm = Harm(kind="environment", name=own or environment.prefix, text=text, source="the command")
            return self.answer((), more=(harm,))
        return self.answer((), elsewhere=command.why)

    def _project(self, read: command_words.Read, command: ProjectCommand) -> Guard:
        with stage(self._settings.stream, "resolve"):
            found = project_foresight.foresee(
                command,
                self._environment,
                self._variables(read),
                offline=self._settings.offline,
                timeout_s=self._settings.timeout_s,
            )
        foreseen = tuple(judge.Foreseen(item.name, item.before, item.after) for item in found.changes)
        if not command.files_alone or found.refused is not None or found.unknown is not None:
            notes = ("What the command behind `uv run` does is not foreseen",) if command.verb == "run" else ()
            return self.answer(foreseen, refused=found.refused, unknown=found.unknown, notes=notes, own=found.own)
        # manifest or lock alone are written: what follows is foreseen of the next sync
        later = self.answer(foreseen, own=found.own)
        what = "the lock" if command.verb == "lock" else "manifest and lock"
        why = f"it writes {what} alone; the next sync: {later.summary}"
        told = (*(item.text for item in later.harms), *judge.notes(self._facts, self._environment, foreseen))
        return self.answer((), elsewhere=why, notes=tuple(f"The next sync: {text}" for text in told))

    def _pip(self, read: command_words.Read, command: PipCommand) -> Guard:
        if command.user and not self._environment.include_system_site and self._environment.conda is None:
            return self.answer(
                (), refused="pip refuses --user in a virtual environment, where its place is not visible"
            )
        if command.user:
            return self.answer((), unknown="--user installs into your home directory, beside this environment")
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

    def _conda(self, read: command_words.Read, command: CondaCommand) -> Guard:
        conda = self._environment.conda
        if conda is None:
            raise InputError(
                f"{self._environment.prefix} is no conda environment",
                cause=f"{command.tool} would not touch it",
                hint="Name the conda environment with -p PREFIX or -n NAME",
            )
        try:
            command, wheels = _with_files(command)
        except CannotTell as error:
            return self.answer((), unknown=error.summary)
        judge.require_installed(command, conda)
        offline, prefix = self._settings.offline or command.offline, Path(self._environment.real_prefix)
        with stage(self._settings.stream, "solve"):
            found = conda_dry_run.foresee(command, conda, prefix, offline=offline, timeout_s=self._settings.timeout_s)
        foreseen = judge.of_change(found.change, conda)
        named = {judge.pinned_name(text) for text in command.specs}
        notes = () if command.tool == "conda" else (f"As conda solves it; {command.tool} may choose other builds",)
        more = judge.unasked(foreseen, named)
        unknown = found.unknown
        if command.prune:
            unknown = unknown or "with --prune, packages go that nobody asked for, which only a real run tells"
        if wheels and found.refused is None:
            later = self._pip(read, PipCommand(tool="pip", verb="install", requirements=wheels, upgrade="named"))
            added = {item.name for item in foreseen}
            foreseen += tuple(
                judge.Foreseen(item.name, item.before, item.after) for item in later.changes if item.name not in added
            )
            if later.verdict in {"fails", "unanswered"}:
                unknown = unknown or f"of its requirements for pip: {later.summary}"
        return self.answer(foreseen, refused=found.refused, unknown=unknown, notes=notes, more=more)

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
        elsewhere: str | None = None,
        notes: tuple[str, ...] = (),
        more: tuple[Harm, ...] = (),
        own: frozenset[str] = frozenset(),
    ) -> Guard:
        """Return the document for the `foreseen` changes, or for a refused or unpredictable command, or one elsewhere."""
        found = judge.harms(self._facts, self._environment, foreseen, self._standing)
        harms = (*(item for item in found if item.kind != "requirement" or item.name not in own), *more)
        verdict: GuardVerdict = judge.verdict(harms)
        summary = elsewhere or judge.summary(foreseen, harms)
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
            notes=(
                *self._notes,
                *notes,
                *judge.notes(self._facts, self._environment, foreseen),
                *((unknown,) if unknown is not None and harms else ()),
            ),
        )


def _with_files(command: CondaCommand) -> tuple[CondaCommand, tuple[str, ...]]:
    """The command with the specs of its files in place of these, and the requirements for pip. Raises InputError."""
    if command.environment_file is not None:
        file = spec_files.environment(command.environment_file)
        specs, channels, wheels = file.specs, file.channels, file.wheels
        alone = "nodefaults" in channels
        channels = tuple(item for item in channels if item != "nodefaults")
        command = dataclasses.replace(command, specs=specs, channels=channels, override_channels=alone)
    else:
        wheels = ()
        listed = tuple(item for file in command.files for item in spec_files.specs(file))
        command = dataclasses.replace(command, specs=(*command.specs, *listed))
    for spec in command.specs:
        conda_commands.require_solvable(spec, command.tool)
    return command, wheels
