"""Laws of proposals, whatever is installed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from envmedic import planner
from envmedic.model.facts import CompanionBuild, Facts, Leftover
from envmedic.planner import Proposals
from tests.planner.support import dist, environment, facts, finding, playbook, usual

TORCH = ("2.5.1", "2.5.1+cu121", "2.4.1", "2.11.0", "2.15.0", "2.16.0", "2.5.1+gitabc", "1.13.1", "nonsense")
VARIANTS = ("cu124", "cu121", "cu117", "cu130", "cu132", "cpu")
LEFTOVERS = (
    Leftover(kind="tilde", path="lib/~orchvision", name="torchvision"),
    Leftover(kind="orphan-package", path="lib/torchaudio", name="torchaudio"),
)


@st.composite
def observed(draw: st.DrawFn) -> Facts:
    installed = usual(draw(st.sampled_from(("0.18.1", "0.20.1", "0.29.2", "0.99"))), torch=draw(st.sampled_from(TORCH)))
    installed = [item for item in installed if draw(st.integers(0, 7)) or item.name == "numpy"]
    if draw(st.booleans()):
        installed.append(dist("torchaudio", draw(st.sampled_from(("2.5.1", "2.11.0")))))
    if draw(st.booleans()):
        installed.append(dist("torchvision", "0.19.1", has_record=draw(st.booleans())))
    if draw(st.booleans()):
        installed.append(dist("xformers", "0.0.28.post3", "torch==2.5.1"))
    build = CompanionBuild(name="torchvision", version="0", variant=draw(st.sampled_from((None, *VARIANTS))))
    env = environment(
        installed,
        variant=draw(st.sampled_from(VARIANTS)),
        leftovers=tuple(item for item in LEFTOVERS if draw(st.booleans())),
        companions=(build,) if draw(st.booleans()) else (),
        python=draw(st.sampled_from(("3.9.2", "3.11.9", "3.13.1"))),
    )
    driver = draw(st.sampled_from((None, "470.82.01", "560.35.05", "580.95.05")))
    return facts(env, driver=driver, gpus=draw(st.sampled_from(((), ("8.6",), ("12.0",), ("6.1", "12.0")))))


def made(given_facts: Facts) -> Proposals:
    return planner.proposals(given_facts, finding(), playbook())


@settings(max_examples=120, deadline=None)
@given(observed())
def test_proposals_change_only_what_they_say(given_facts: Facts) -> None:
    answer = made(given_facts)
    env = given_facts.environment
    assert env is not None
    assert answer.proposals or answer.rejected
    for item in answer.proposals:
        assert item.family is not None
        assert item.request is not None
        torch = env.distribution("torch")
        if item.family.policy == "keep-torch" and "torch" not in env.duplicates:
            assert "torch" not in item.changed
            assert torch is not None
        pinned = {pin.partition("==")[0] for pin in item.request.pins}
        if "torch" in item.changed:
            pinned -= {"xformers"}  # it goes with its torch
        assert pinned <= set(item.changed)
        assert set(item.changed) - pinned <= {"triton"}
        assert {reference.name for reference in item.purge.distributions} <= set(item.changed)
        copies = {found.name for found in env.distributions} & set(item.changed)
        gone = {reference.name for reference in item.purge.distributions}
        assert all(name in gone or any(name in path for path in item.purge.leftovers) for name in copies)


@settings(max_examples=60, deadline=None)
@given(observed())
def test_proposals_are_the_same_each_time(given_facts: Facts) -> None:
    assert made(given_facts) == made(given_facts)
