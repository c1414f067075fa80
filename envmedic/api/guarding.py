"""Would a command of pip, uv or conda undo a repair or break the environment. Nothing is carried out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from envmedic import xdg
from envmedic.api.context.observation import observe, stage
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import conda_of
from envmedic.engine.store.live_records import live_records
from envmedic.errors import InputError, NoSolution, NotAnEnvironment
from envmedic.installers.index.credentials import redacted
from envmedic.installers.resolution import dry_run
from envmedic.installers.uv import find_uv
from envmedic.model.answers.guard import CondaCommand, Guard, GuardVerdict, Harm, PipCommand
from envmedic.model.conda import CondaChange, CondaRequest
from envmedic.model.facts import Environment, Facts
from envmedic.model.plan import CONSTRAINTS
from envmedic.planner.guard import command_words, judge


def guard(settings: Settings, prefix: Path, words: Sequence[str]) -> Guard:
    """What the command in `words` would do to the environment at `prefix`, and whether that harms it.

    Raises InputError for a command that is not understood or is for another environment, NetworkError where no index
    can be asked.
    """
    read = command_words.read(words)
    facts = observe(settings, prefix)
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    _require_this(read, environment)
    standing = _standing(Path(environment.real_prefix), environment)
    asked = _Asked(settings, facts, environment, read, standing)
    return asked.pip(read.command) if isinstance(read.command, PipCommand) else asked.conda(read.command)


def _standing(prefix: Path, environment: Environment) -> judge.Standing:
    records = live_records(prefix)
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
    """Raise InputError where the command names another environment than the one asked about."""
    command = read.command
    by_pip = isinstance(command, PipCommand)
    named = command.python if isinstance(command, PipCommand) else command.prefix
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
    """One question with what is known of the environment."""

    def __init__(
        self,
        settings: Settings,
        facts: Facts,
        environment: Environment,
        read: command_words.Read,
        standing: judge.Standing,
    ) -> None:
        self._settings = settings
        self._facts = facts
        self._environment = environment
        self._read = read
        self._standing = standing

    def pip(self, command: PipCommand) -> Guard:
        """The answer for a command of pip or uv."""
        if command.verb == "uninstall":
            found = dry_run.removed(command, self._environment)
        else:
            asking = dry_run.DryRunRequest(
                find_uv(),
                command,
                self._environment,
                self._variables(),
                offline=self._settings.offline,
                timeout_s=self._settings.timeout_s,
            )
            with stage(self._settings.stream, "resolve"):
                found = dry_run.foresee(asking)
        foreseen = tuple(judge.Foreseen(item.name, item.before, item.after) for item in found.changes)
        return self._answer(foreseen, refused=found.refused, unknown=found.unknown)

    def conda(self, command: CondaCommand) -> Guard:
        """The answer for a command of conda or its like."""
        conda = self._environment.conda
        if conda is None:
            raise InputError(
                f"{self._environment.prefix} is no conda environment",
                cause=f"{command.tool} would not touch it",
                hint="Name the conda environment with -p PREFIX or -n NAME",
            )
        if command.verb == "remove" and command.force:
            names = set(command.specs)
            gone = tuple(judge.of_removed(item) for item in conda.packages if item.name in names)
            return self._answer(tuple(found for items in gone for found in items))
        notes = ("As py-rattler solves it; the solver of another tool may choose other builds",)
        offline = self._settings.offline
        if command.verb == "update":
            if command.everything:
                return self._answer((), unknown="an update of everything may change anything")
            solved = self._first(judge.updates(command, conda, offline=offline))
            change = CondaChange() if isinstance(solved, NoSolution) else solved  # nothing newer: nothing to do
        else:
            requests = judge.conda_requests(command, conda, offline=offline)
            solved = self._first(requests)
            if isinstance(solved, NoSolution) and (freed := judge.without_pins(self._environment, command)) is not None:
                solved = self._first(requests, freed)  # conda overrides a pin on what it is asked for by name
            if isinstance(solved, NoSolution):
                return self._answer((), refused=solved.cause or solved.summary)
            change = solved
        foreseen = judge.of_change(change, conda)
        named = {judge.pinned_name(text) for text in command.specs}
        return self._answer(foreseen, notes=notes, more=judge.unasked(foreseen, named))

    def _first(
        self, requests: Sequence[CondaRequest], environment: Environment | None = None
    ) -> CondaChange | NoSolution:
        """The answer to the first question that has one, else the last refusal."""
        found: CondaChange | NoSolution = NoSolution("Nothing was asked")
        for request in requests:
            found = self._solved(request, environment or self._environment)
            if isinstance(found, CondaChange):
                break
        return found

    def _solved(self, request: CondaRequest, environment: Environment) -> CondaChange | NoSolution:
        side = conda_of(self._settings, Path(self._environment.real_prefix))
        try:
            with stage(self._settings.stream, "solve"):
                return side.resolve(request, environment, self._facts.host, self._settings.stream.emit)
        except NoSolution as error:
            return error

    def _variables(self) -> dict[str, str]:
        """As the activated shell has them that the command would be run in."""
        variables = dict(os.environ)
        for item in self._environment.variables:
            if item.value is None:
                variables.pop(item.name, None)
            else:
                variables[item.name] = item.value
        return {**variables, **self._read.variables}

    def _answer(
        self,
        foreseen: Sequence[judge.Foreseen],
        *,
        refused: str | None = None,
        unknown: str | None = None,
        notes: tuple[str, ...] = (),
        more: tuple[Harm, ...] = (),
    ) -> Guard:
        harms = (*judge.harms(self._facts, self._environment, foreseen, self._standing), *more)
        verdict: GuardVerdict = judge.verdict(harms)
        summary = judge.summary(foreseen, harms)
        if refused is not None:
            verdict, summary = "fails", f"it would end in an error and change nothing: {refused}"
        elif unknown is not None and not harms:
            verdict, summary = "unanswered", unknown
        return Guard(
            prefix=self._environment.prefix,
            command=_shown(self._read.words),
            tool=self._read.command.tool,
            verdict=verdict,
            summary=summary,
            transaction=self._standing.transaction,
            changes=judge.changes(self._environment, foreseen),
            harms=harms,
            notes=(*self._read.notes, *notes, *((unknown,) if unknown is not None and harms else ())),
        )


def _shown(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(redacted, words))
