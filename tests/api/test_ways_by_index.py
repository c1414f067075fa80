"""Where PyTorch's own index cannot be reached, a way that needs the default one alone is taken."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.api.context.settings import Settings
from envmedic.api.planning.proposals import PlanningCase, plans
from envmedic.errors import NetworkError
from envmedic.model.events import Emit, EventStream
from envmedic.model.facts import CompanionBuild, Environment
from envmedic.model.ports import Resolution, ResolveRequest
from envmedic.playbook.schema.loader import load_all
from tests.planner.support import Spelling, dist, environment, facts, finding, wheel

AUDIO = CompanionBuild(name="torchaudio", version="2.11.0", cuda="13.0", variant="cu130")
NEWEST = environment(
    [dist("torch", "2.15.0+cu132"), dist("torchaudio", "2.11.0")], variant="cu132", companions=(AUDIO,)
)


class Indexes(Spelling):
    """An installer that has wheels where each index that it needs can be reached."""

    def __init__(self, *, default: bool) -> None:
        self.default = default
        self.asked: list[tuple[str, ...]] = []

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        del environment, emit
        self.asked.append(request.pins)
        if request.needs_variant_index:
            raise NetworkError("PyTorch's index cannot be reached")
        if not self.default:
            raise NetworkError("the default index cannot be reached")
        return Resolution(artifacts=tuple(wheel(*pin.split("==")) for pin in request.pins))


def case() -> PlanningCase:
    loaded = next(item for item in load_all() if item.playbook.id == "torch-companions")
    found = msgspec.structs.replace(finding(), playbook=loaded.playbook.id, fault=loaded.playbook.fault)
    return PlanningCase(facts(NEWEST, driver="590.48.01"), found, loaded)


def test_a_torch_that_the_default_index_has_with_its_companion_is_next() -> None:
    indexes = Indexes(default=True)
    plan = next(plans(Settings(stream=EventStream([])), case(), indexes))
    assert {item.name: item.after for item in plan.changes}["torch"] == "2.14.1"
    assert len(indexes.asked) == 2, "another way by PyTorch's index is not tried once it cannot be reached"
    assert any("cannot be reached" in item.why_not for item in plan.alternatives)


def test_without_any_index_the_best_way_says_why() -> None:
    with pytest.raises(NetworkError, match="PyTorch's index"):
        next(plans(Settings(stream=EventStream([])), case(), Indexes(default=False)))
