"""Moving the torch family of an environment on, though nothing is at fault: ``plan --policy``."""

from __future__ import annotations

from pathlib import Path

from envmedic.api.context.observation import observe
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import installer_of
from envmedic.api.planning.proposals import PlanningCase, plans
from envmedic.errors import InputError
from envmedic.model.plan import Plan
from envmedic.model.playbook import Policy
from envmedic.planner import family_move


def move(settings: Settings, prefix: Path, policy: Policy, way: str | None = None) -> Plan:
    """The plan that moves the torch family by `policy`, with all that must be replaced or built again for it.

    Raises NothingToRepair where everything is there already, InputError without a torch, NoSolution with every
    distribution that cannot follow, and installer errors.
    """
    facts = observe(settings, prefix)
    environment = facts.environment
    if environment is None or environment.distribution("torch") is None:
        raise InputError(f"There is no torch in {prefix}", hint="Name the environment that holds it: -p PREFIX")
    case = PlanningCase(facts, None, family_move.playbook(policy, environment), way=way)
    return next(plans(settings, case, installer_of(settings)))
