"""What tests of fleets share."""

from __future__ import annotations

import pytest

from envmedic.model.answers.content import EnvironmentClass
from envmedic.model.facts import Host
from envmedic.model.plan import Change, Plan
from envmedic.planner.identity import named


@pytest.fixture(scope="session")
def class_plan() -> Plan:
    """A plan for a class, for what reads plans and carries none out."""
    return made_class_plan()


def made_class_plan() -> Plan:
    """The same, for what is no test."""
    plan = Plan(
        envmedic="1",
        created="",
        prefix="/opt/env",
        real_prefix="/opt/env",
        environment_digest="",
        playbook="nms-cuda",
        fault=None,
        host=Host(),
        steps=(),
        changes=(Change(kind="change", name="torchvision", before="0.18.1", after="0.20.1"),),
        for_class=EnvironmentClass(content="1" * 64, machine="x86_64", python="cpython 3.11"),
    )
    return named(plan)
