"""Use case ``pip``, ``uv`` and ``conda`` behind envmedic: an installer's own command, foreseen, run in a clone and checked."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from envmedic import __version__, planner, redact
from envmedic.api import guarding
from envmedic.api.context.observation import observe
from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.context.wiring import check_runner, engine_ports, require_repair_packages
from envmedic.api.installs.user_commands import user_command
from envmedic.engine.store import journal as journals
from envmedic.engine.store.protection import refuse_in_use, refuse_protected
from envmedic.engine.transaction import transaction
from envmedic.errors import InputError, InstallerError, NotAnEnvironment, RepairDeclined
from envmedic.installers.index.credentials import redacted
from envmedic.model.answers.guard import Guard
from envmedic.model.checks import Check
from envmedic.model.facts import Environment, Facts
from envmedic.model.pins import NextSync
from envmedic.model.plan import Change, Plan, RunInstaller
from envmedic.model.ports import ApplyOptions, ProcessUser
from envmedic.model.record import Record
from envmedic.planner import import_targets, project_sync
from envmedic.planner.guard.installer_commands import InstallerCommand
from envmedic.probe.prefix import processes

Harmful = Callable[[Guard], bool]
"""Asks whether a command is carried out although it would undo a repair or break something."""
InUse = Callable[[tuple[ProcessUser, ...]], bool]
"""Asks whether the environment is changed although these run from it."""

_HARMS = frozenset({"undoes-repair", "breaks"})
_LISTED = 5


def install(
    settings: Settings,
    prefix: Path,
    command: InstallerCommand,
    options: ApplyOptions,
    *,
    harmful: Harmful,
    in_use: InUse,
) -> Record:
    """Run `command` in a clone of the environment at `prefix`, check it, and let it take the environment's place.

    The environment is unchanged where the command fails, or where something that worked before would not work any more,
    unless the options accept that. `harmful` is asked about what is foreseen, `in_use` about programs that run from it.

    Raises RepairDeclined, with what speaks against it in `details`, EnvironmentBusy, PreflightError, InputError, and
    what `guard` raises; later errors are in the record.
    """
    require_repair_packages()
    target = EnvironmentTarget.of(prefix)
    refuse_protected(target.real, options.allow)
    users, options = _asked_in_use(target, options, in_use)
    facts = observe(settings, target.prefix)
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    user, replaces = user_command(command, target, environment)
    found = _foreseen(settings, facts, command)
    if found is not None and found.verdict in _HARMS and not options.accept_worse:
        if not harmful(found):
            raise RepairDeclined(
                f"{shlex.join(found.command)}: {found.summary}",
                cause=found.harms[0].text if found.harms else None,
                hint=f"Install what fits the rest, or do it all the same: envmedic {command.tool} --force {command.verb} …",
                details=tuple(f"{item.text} ({item.source})" if item.source else item.text for item in found.harms),
            )
        options = msgspec.structs.replace(options, accept_worse=True)
    record = transaction.apply(
        _plan(facts, environment, command, found),
        options=msgspec.structs.replace(options, share_links=options.share_links and replaces),
        ports=engine_ports(settings, target, confirm=lambda _plan: True, command=user),
        checks=check_runner(settings, target, host=lambda: facts.host, no_gpu=True),
        stream=settings.stream,
    )
    if record.failure is None and users and record.environment == "installed":
        listed = ", ".join(f"{item.pid} {item.command}" for item in users[:_LISTED])
        record = msgspec.structs.replace(
            record, notes=(*record.notes, f"Restart what runs with the old files: {listed}")
        )
    return record


def _asked_in_use(
    target: EnvironmentTarget, options: ApplyOptions, in_use: InUse
) -> tuple[tuple[ProcessUser, ...], ApplyOptions]:
    users = processes.users(target.real)
    if users and "in-use" not in options.allow and in_use(users):
        options = msgspec.structs.replace(options, allow=(*options.allow, "in-use"))
    refuse_in_use(target.real, users, options.allow)
    return users, options


def _foreseen(settings: Settings, facts: Facts, command: InstallerCommand) -> Guard | None:
    """Return the guard's answer; None for what it does not understand or cannot ask, which the checks then decide."""
    try:
        return guarding.judged(settings, facts, command.line)
    except InputError:
        if command.of_project:
            return None
        raise
    except InstallerError:
        return None


def _plan(facts: Facts, environment: Environment, command: InstallerCommand, found: Guard | None) -> Plan:
    changes = found.changes if found is not None else ()
    changed = {name for item in changes for name in (item.name, *item.distributions)}
    removed = {item.name for item in changes if item.kind == "remove"}
    words = tuple(map(redacted, command.line))
    stays = [item for item in environment.distributions if item.name not in removed]
    touched = import_targets.every(item for item in stays if item.name in changed)
    others = tuple(name for name in import_targets.every(stays) if name not in touched)
    imports = (
        Check(name="import", role="regression", arguments=touched, in_place=True),
        Check(name="import", role="regression", arguments=others),
    )
    return planner.named(
        Plan(
            envmedic=__version__,
            created=journals.now(),
            prefix=environment.prefix,
            real_prefix=environment.real_prefix,
            environment_digest=environment.digest,
            purpose="install",
            text=redact.redact_text(shlex.join(words)),
            playbook=None,
            fault=None,
            host=facts.host,
            steps=(RunInstaller(words=words, directory=os.getcwd()),),  # noqa: PTH109  # text
            commands=(words,),
            checks=(
                *(item for item in imports if item.arguments),
                Check(name="pip-check", role="regression"),
                Check(name="facts", role="regression"),
            ),
            changes=changes,
            notes=found.notes if found is not None else (),
            # the project's own sync is the command itself
            next_sync=None if command.of_project else _next_sync(facts, environment, changes),
        )
    )


def _next_sync(facts: Facts, environment: Environment, changes: Sequence[Change]) -> NextSync | None:
    after = {name: item.after for item in changes for name in item.distributions or (item.name,)}
    return project_sync.next_sync(environment, planner.markers(environment, facts.host), after)
