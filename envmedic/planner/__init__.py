"""From a finding to a plan. Pure: what has to be resolved or measured is passed in."""

from __future__ import annotations

from envmedic.planner.asking import divided, loosened
from envmedic.planner.assemble import build
from envmedic.planner.case import Options
from envmedic.planner.identity import named, stale, verify_id
from envmedic.planner.proposal import Proposal, Proposals
from envmedic.planner.propose import proposals
from envmedic.planner.requirements import Unmet, markers, unmet

__all__ = [
    "Options",
    "Proposal",
    "Proposals",
    "Unmet",
    "build",
    "divided",
    "loosened",
    "markers",
    "named",
    "proposals",
    "stale",
    "unmet",
    "verify_id",
]
