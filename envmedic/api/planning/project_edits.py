"""Manifest and lock of the project in a plan: what they would say to agree with it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec
from packaging.utils import canonicalize_name

from envmedic import planner
from envmedic.api.context.settings import Settings
from envmedic.model.facts import Environment
from envmedic.model.plan import Plan

_COMMAND = 2
"""Words of `NextSync.keeps` before its requirements: ``uv add``."""


def with_edit(settings: Settings, environment: Environment | None, plan: Plan, earlier: Sequence[Plan] = ()) -> Plan:
    """Return `plan` with the edit after which the project agrees with it and with the `earlier` plans in the clone.

    Where none can be made, `NextSync.unedited` says why. Raises RepairPackageMissing without uv.
    """
    plans = (*earlier, plan)
    asked = [text for item in plans if item.next_sync is not None for text in item.next_sync.keeps[_COMMAND:]]
    if environment is None or not asked:
        return plan
    after: dict[str, str | None] = {}
    for change in (change for item in plans for change in item.changes if change.by == "wheel"):
        after[canonicalize_name(change.name)] = change.after
    if settings.unnamed:
        return _unedited(plan, f"uv would start its Python; name it with -p {shlex.quote(environment.prefix)}")
    from envmedic.installers.resolution import project_edit

    try:
        edit = project_edit.make(environment, asked, after, offline=settings.offline)
    except project_edit.NoEditError as error:
        return _unedited(plan, str(error))
    return planner.named(msgspec.structs.replace(plan, project_edit=edit))


def _unedited(plan: Plan, why: str) -> Plan:
    if plan.next_sync is None:
        return plan
    return planner.named(msgspec.structs.replace(plan, next_sync=msgspec.structs.replace(plan.next_sync, unedited=why)))
