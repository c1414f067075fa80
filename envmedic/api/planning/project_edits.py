"""Manifest and lock of the project in a plan: what they would say to agree with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import msgspec
from packaging.utils import canonicalize_name

from envmedic import planner
from envmedic.api.context.settings import Settings
from envmedic.model.facts import Environment
from envmedic.model.pins import NextSync
from envmedic.model.plan import Plan


def with_edit(settings: Settings, environment: Environment | None, plan: Plan, earlier: Sequence[Plan] = ()) -> Plan:
    """Return `plan` with the edit after which the project agrees with it and with the `earlier` plans in the clone.

    Where none can be made, `NextSync.unedited` says why. Raises RepairPackageMissing without uv.
    """
    plans = (*earlier, plan)
    asked = [text for item in plans if item.next_sync is not None for text in _requirements(item.next_sync)]
    if environment is None or not asked:
        return plan
    after: dict[str, str | None] = {}
    for change in (change for item in plans for change in item.changes if change.by == "wheel"):
        after[canonicalize_name(change.name)] = change.after
    if settings.unnamed:
        return _unedited(plan, f"its Python would be started; name it with -p {shlex.quote(environment.prefix)}")
    from envmedic.installers.projects import project_copy, project_edit

    try:
        edit = project_edit.make(environment, asked, after, offline=settings.offline)
    except project_copy.NoEditError as error:
        return _unedited(plan, str(error))
    if plan.next_sync is not None and edit.command[1] == "add":  # with group and member
        keeping = msgspec.structs.replace(plan.next_sync, keeps=edit.command, more=edit.more)
        plan = msgspec.structs.replace(plan, next_sync=keeping)
    return planner.named(msgspec.structs.replace(plan, project_edit=edit))


def _requirements(found: NextSync) -> Iterator[str]:
    """What ``uv add [--group NAME] …`` asks for."""
    for command in (found.keeps, *found.more):
        rest = list(command[2:])
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                yield word
            elif word not in {"--dev", "--frozen"}:
                del rest[:1]


def _unedited(plan: Plan, why: str) -> Plan:
    if plan.next_sync is None:
        return plan
    return planner.named(msgspec.structs.replace(plan, next_sync=msgspec.structs.replace(plan.next_sync, unedited=why)))
