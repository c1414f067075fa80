"""The check `facts` where only some of the facts are known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.planning.facts_check import FactsProof
from envmedic.model.checks import Confirmation
from envmedic.model.events import EventStream
from envmedic.model.facts import Host
from envmedic.model.playbook import Condition, FactValue
from envmedic.playbook.schema.conditions import confirms

CONFLICT = Condition(fact="text.conflicts", operator="exists")
EITHER = Condition(any=(CONFLICT, Condition(fact="text.holds", operator="is", value=True)))
BOTH = Condition(all=EITHER.any)


def settled(when: Condition, *states: Mapping[str, FactValue]) -> list[bool | None]:
    """What the check says of each state in turn."""
    proof = FactsProof(Settings(stream=EventStream([])), Path("/env"), Host)
    asked = Confirmation(playbook="unmet-requirement", when=when)
    return [proof.settled(asked, confirms(asked, state)) for state in states]


def test_what_confirmed_a_fault_and_does_no_more_is_gone_though_other_facts_stay_unknown() -> None:
    conflict, none = {"text.conflicts": ("a requires b",)}, {"text.conflicts": None}
    assert settled(EITHER, conflict, none) == [True, False]
    # without it nothing was shown, and silence is no proof
    assert settled(EITHER, none) == [None]
    # what is unknown now was what confirmed it
    assert settled(EITHER, {**none, "text.holds": True}, none) == [True, None]
    assert settled(EITHER, {**conflict, "text.holds": True}, none) == [True, None]
    assert settled(BOTH, {**conflict, "text.holds": True}, conflict) == [True, None]
