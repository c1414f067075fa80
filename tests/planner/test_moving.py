"""Moving the torch family on: what comes along, what is built again, and what keeps it from moving."""

from __future__ import annotations

import msgspec
import pytest
from packaging.version import Version

from envmedic import planner
from envmedic.model.facts import Distribution, Environment, Origin
from envmedic.model.playbook import Policy
from envmedic.model.ports import Resolution
from envmedic.planner import Proposals, family_move
from envmedic.planner.proposal import IN_THE_WAY
from tests.planner import conda_support
from tests.planner.support import NOW, Spelling, dist, environment, facts, usual, wheel

HEALTHY = usual(torchvision="0.20.1", requires="torch==2.5.1")


def moved(env: Environment, policy: Policy = "newest", *, driver: str | None = "580.95.05") -> Proposals:
    return planner.proposals(facts(env, driver=driver), None, family_move.playbook(policy, env))


def healthy(*more: Distribution) -> Environment:
    return environment([*HEALTHY, *more])


def trainer(requires: str, *, kind: str = "index") -> Distribution:
    made = dist("trainer", "1.0", requires)
    return msgspec.structs.replace(made, origin=Origin(kind=kind, url="file:///src/trainer"))  # type: ignore[arg-type]


def why(found: Proposals) -> str:
    return "\n".join(item.why_not for item in found.rejected)


def test_the_newest_torch_comes_with_its_companions() -> None:
    best = moved(healthy()).best()
    assert best.family is not None
    assert Version(best.family.versions["torch"]) > Version("2.9")
    assert {"torch", "torchvision"} <= set(best.changed)
    assert best.request is not None
    assert {pin.partition("==")[0] for pin in best.request.pins} == {"torch", "torchvision"}


@pytest.mark.parametrize("policy", ["newest", "keep-cuda-variant", "keep-release", "keep-torch"])
def test_nothing_goes_back(policy: Policy) -> None:
    for found in moved(healthy(), policy).proposals:
        assert found.family is not None
        assert Version(found.family.versions["torch"]) >= Version("2.5.1")


def test_the_newest_for_the_same_cuda_is_taken_not_the_nearest() -> None:
    found = moved(environment(usual("0.16.1", "torch==2.1.1", "2.1.1+cu118"), variant="cu118"), "keep-cuda-variant")
    best = found.best().family
    assert best is not None
    assert (best.variant, best.versions["torch"]) == ("cu118", "2.7.1")


def test_the_same_release_moves_to_a_newer_cuda_only() -> None:
    env = environment(usual("0.20.1", "torch==2.5.1", "2.5.1+cu121"), variant="cu121")
    variants = [item.family.variant for item in moved(env, "keep-release").proposals if item.family is not None]
    assert variants == ["cu124"]
    assert moved(healthy(), "keep-release").proposals == ()


def test_what_requires_the_old_torch_comes_in_another_release() -> None:
    best, wide, *_ = moved(healthy(trainer("torch<2.6"))).proposals
    assert best.request is not None
    assert "trainer" in best.request.pins
    assert any(note.startswith("trainer 1.0 requires torch<2.6") for note in best.notes)
    assert "*" not in best.request.replaceable
    assert wide.request is not None
    assert (wide.title, wide.request.replaceable) == (best.title + IN_THE_WAY, ("*",))


def test_what_accepts_the_new_torch_stays() -> None:
    best = moved(healthy(trainer("torch>=2"))).best()
    assert best.request is not None
    assert "trainer" not in best.request.pins


@pytest.mark.parametrize("kind", ["directory", "editable", "vcs", "archive"])
def test_what_no_index_gave_is_not_looked_for_on_one(kind: str) -> None:
    found = moved(healthy(trainer("torch<2.6", kind=kind)))
    assert found.proposals == ()
    assert "trainer 1.0 requires torch<2.6" in why(found)
    assert "it was not installed from an index" in why(found)


def test_an_extension_that_cannot_be_built_again_keeps_torch_from_moving() -> None:
    extension = msgspec.structs.replace(dist("flash-attn", "2.7.4", "torch"), origin=Origin(kind="index"))
    found = moved(healthy(extension))
    assert found.proposals == ()
    assert "flash-attn 2.7.4 is bound to the installed torch" in why(found)


def test_one_that_names_its_torch_is_replaced() -> None:
    best = moved(healthy(dist("xformers", "0.0.28.post3", "torch==2.5.1"))).best()
    assert best.request is not None
    assert "xformers" in best.request.pins


def test_where_it_leads_to_what_is_there_nothing_changes() -> None:
    found = moved(healthy(), "keep-torch")
    assert found.proposals == ()
    assert [item.why_not for item in found.rejected] == ["it changes nothing"]


def test_a_driver_that_was_not_seen_is_told() -> None:
    assert not any("no NVIDIA driver" in note for note in moved(healthy()).best().notes)
    unseen = planner.proposals(
        facts(healthy(), driver=None, gpus=()), None, family_move.playbook("newest", healthy())
    ).best()
    assert any("no NVIDIA driver was found here" in note for note in unseen.notes)


def test_an_old_driver_bounds_what_is_newest() -> None:
    old = [item.family for item in moved(healthy(), driver="535.54.03").proposals if item.family is not None]
    new = moved(healthy()).best().family
    assert new is not None
    assert not new.unverified
    assert {item.variant for item in old} <= {"cu126", "cu129"}
    known = [item for item in old if not item.unverified]
    assert Version(known[0].versions["torch"]) < Version(new.versions["torch"])
    # whether the newest is there for the driver's CUDA, the index is asked first
    assert old[0].unverified
    assert old[0].versions["torch"] == new.versions["torch"]


def test_the_plan_is_about_no_fault_and_its_checks_must_pass() -> None:
    env = healthy()
    loaded = family_move.playbook("newest", env)
    best = moved(env).best()
    assert best.family is not None
    wheels = tuple(wheel(name, version) for name, version in best.family.versions.items())
    resolved = planner.ResolvedProposal(best, Resolution(artifacts=wheels))
    plan = planner.build(facts(env), None, loaded, resolved, planner.PlanInstallers(Spelling()), now=NOW)
    assert (plan.finding, plan.fault, plan.playbook, plan.playbook_sha256) == (None, None, None, None)
    assert {check.name for check in plan.checks if check.role == "playbook"} == set(loaded.playbook.checks)


def test_a_torch_of_conda_that_stays_is_not_moved_to_wheels() -> None:
    env = conda_support.prefix([*conda_support.base(), *conda_support.old_family()])
    found = moved(env, "keep-torch")
    assert found.proposals == ()
    assert {item.why_not for item in found.rejected} == {"it changes nothing"}


def test_what_conda_owns_stays_its_own_as_long_as_it_has_something_newer() -> None:
    env = conda_support.prefix([*conda_support.base(), *conda_support.old_family()])
    first, *others = moved(env).proposals
    assert first.title == "torch 2.5.1, torchvision 0.20.1 (cu121), by conda (pytorch)"
    assert any(item.title.endswith("as wheels") for item in others)
    last = moved(conda_support.prefix([*conda_support.base(), *conda_support.old_family("2.5.1", "0.20.1")]))
    assert last.best().title.endswith("as wheels")
