"""Use case ``plan --policy``: a new version of the torch family, without a fault to repair."""

from __future__ import annotations

from pathlib import Path

from envmedic.api.context.observation import observe
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import installer_of
from envmedic.api.knowledge import newer_torch
from envmedic.api.planning.project_edits import with_edit
from envmedic.api.planning.proposals import PlanningCase, plans
from envmedic.errors import InputError
from envmedic.model.plan import Plan
from envmedic.model.playbook import Policy
from envmedic.planner import family_move

_TO_NEWER = frozenset[Policy]({"keep-cuda-variant", "newest"})
"""Policies for which the newest torch is wanted, which may be newer than the tables."""


def move(settings: Settings, prefix: Path, policy: Policy, way: str | None = None) -> Plan:
    """Return the plan that moves the torch family by `policy`, with its dependents.

    Raises NothingToRepair if nothing would change, InputError without torch, NoSolution with every distribution that
    cannot follow, and installer errors.
    """
    facts = observe(settings, prefix)
    environment = facts.environment
    if environment is None or environment.distribution("torch") is None:
        raise InputError(f"There is no torch in {prefix}", hint="Name the environment that holds it: -p PREFIX")
    if policy in _TO_NEWER:
        newer_torch.learn(settings, environment)
    # a move is planned as the repair of a case without a finding, so that it has the same ways, rules and checks
    case = PlanningCase(facts, None, family_move.playbook(policy, environment), way=way)
    return with_edit(settings, environment, next(plans(settings, case, installer_of(settings))))
