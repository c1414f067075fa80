"""The shipped playbooks as the planner understands them."""

from __future__ import annotations

from envmedic import planner
from envmedic.model.ports import Resolution
from envmedic.playbook.schema.loader import load_all
from tests.planner.support import NOW, Spelling, facts, finding, torchvision


def test_the_nms_playbook_changes_torchvision_alone() -> None:
    loaded = next(item for item in load_all() if item.playbook.id == "nms-cuda")
    observed = facts()
    considered = planner.proposals(observed, finding(), loaded)
    wheels = Resolution(artifacts=(torchvision(),))
    resolved = planner.ResolvedProposal(considered.best(), wheels, considered=considered)
    plan = planner.build(observed, finding(), loaded, resolved, planner.PlanInstallers(Spelling()), now=NOW)
    assert [item.name for item in plan.changes] == ["torchvision"]
    assert [item.name for item in plan.checks if item.role == "playbook"] == list(loaded.playbook.checks)
    assert all(item.why_not for item in plan.alternatives)
