"""Every remedy has a function, is used by a playbook, and every computed fact of 0.1 names one."""

from __future__ import annotations

import pytest

from envmedic.errors import InvalidPlaybook
from envmedic.model.playbook import RemedyStep
from envmedic.model.registries.remedies import FORMER_FACTS, REMEDIES
from envmedic.model.vocabulary.names import FACTS
from envmedic.planner.remedies import DECISIONS
from envmedic.playbook.schema.loader import load_all, parse

BOOK = """\
id: mine
fault: numpy-abi
title: A fault
explain: Something is wrong.
fix_kind: other
when: {{fact: {condition}, operator: exists}}
steps:
  - step: remedy
    name: {remedy}
  - step: install
    requirements: ["{{{requirement}}}"]
"""


def book(condition: str = "numpy.unmet", remedy: str = "numpy-abi", requirement: str = "env.packages") -> bytes:
    return BOOK.format(condition=condition, remedy=remedy, requirement=requirement).encode()


def mistakes(content: bytes) -> tuple[str, ...]:
    with pytest.raises(InvalidPlaybook) as caught:
        parse(content, "mine.yaml")
    return caught.value.details


def test_each_name_has_a_function_and_a_playbook_that_uses_it() -> None:
    used = {step.name for item in load_all() for step in item.playbook.steps if isinstance(step, RemedyStep)}
    assert DECISIONS.keys() == REMEDIES.keys() == used


def test_computed_facts_are_gone_and_lead_to_a_remedy_and_to_an_observation() -> None:
    assert not FORMER_FACTS.keys() & FACTS.keys()
    for former in FORMER_FACTS.values():
        assert former.remedy in REMEDIES
        assert former.observed in FACTS


def test_a_playbook_names_a_remedy() -> None:
    assert parse(book(), "mine.yaml").steps[0] == RemedyStep(name="numpy-abi")


def test_an_unknown_remedy_is_a_mistake_with_its_place_and_the_next_name() -> None:
    (mistake,) = mistakes(book(remedy="numpy-abl"))
    assert mistake.startswith("mine.yaml:9:11: steps[0].name: 'numpy-abl' is not one of the values known here")
    assert "did you mean numpy-abi" in mistake


@pytest.mark.parametrize("name", sorted(FORMER_FACTS))
def test_a_playbook_of_version_0_1_is_told_what_to_write(name: str) -> None:
    former = FORMER_FACTS[name]
    (in_step,) = mistakes(book(requirement=name))
    assert in_step.startswith("mine.yaml:11:20: steps[1].requirements[0]: " + name)
    assert f"write `step: remedy, name: {former.remedy}`" in in_step
    (in_condition,) = mistakes(book(condition=name))
    assert in_condition.startswith("mine.yaml:6:14: when.fact: " + name)
    assert f"a condition can ask for {former.observed}" in in_condition
