"""From a finding to a plan. Pure: what has to be resolved or measured is passed in."""

from __future__ import annotations

from envmedic.planner.assemble import PlanInstallers, ResolvedProposal, build
from envmedic.planner.changes.requirement_checks import Unmet, markers, unmet
from envmedic.planner.conda_split.conda_constraints import divided, loosened
from envmedic.planner.identity import named, stale, steps_key, verify_id
from envmedic.planner.proposal import Proposal, Proposals
from envmedic.planner.proposal_case import Options
from envmedic.planner.proposals import proposals
from envmedic.planner.user_pins import binding, blamed, named_in
from envmedic.planner.user_pins import refusal as pins_refusal

__all__ = [
    "Options",
    "PlanInstallers",
    "Proposal",
    "Proposals",
    "ResolvedProposal",
    "Unmet",
    "binding",
    "blamed",
    "build",
    "divided",
    "loosened",
    "markers",
    "named",
    "named_in",
    "pins_refusal",
    "proposals",
    "stale",
    "steps_key",
    "unmet",
    "verify_id",
]
