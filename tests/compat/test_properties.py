"""Laws of the compatibility core: whatever the host, no proposed set breaks a rule."""

from __future__ import annotations

import os
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envmedic.compat.torch_family.family import SETS_PER_POLICY, answer
from envmedic.compat.torch_family.ruling import RULES
from envmedic.model.answers.family import FamilyQuery, FamilySet
from envmedic.model.playbook import Policy
from tests.compat import oracle

CAPABILITIES = tuple(row["cc"] for row in oracle.rows("gpu_arch", "capabilities"))
TORCH = tuple(row["version"] for row in oracle.rows("torch_releases", "releases"))
VARIANTS = tuple(sorted({row["variant"] for row in oracle.rows("torch_releases", "variants")}))
BUILDS = {
    torch: tuple(row["variant"] for row in oracle.rows("torch_releases", "variants") if row["torch"] == torch)
    for torch in TORCH
}
DRIVERS = (None, "390.157", "418.39", "440.33", "450.36.06", "450.51.05", "450.80.02", "470.82.01", "510.47.03", "515.43.04",
           "520.61.05", "525.60.12", "525.60.13", "535.54.03", "550.54.14", "560.35.05", "570.124.06", "575.51.03",
           "580", "580.65.06", "590.48.01", "595.71.05", "610.43.02", "615.10")  # fmt: skip
ODD = (
    "2.16.0",
    "2.17.0.dev20270101",
    "2.5.1a0+gitabc",
    "2.5.1+gitabc",
    "1.6.0",
    "not-a-version",
    "2.5.1+rocm6.2",
    "3.0.0",
)
USUAL = ((), ("8.6",), ("8.9",), ("9.0",), ("10.3",), ("12.0",), ("12.1",), ("7.0", "8.0"), ("6.1",))
POLICIES: tuple[Policy, ...] = ("keep-torch", "keep-cuda-variant", "newest")
MEMBERS = ("torchvision", "torchaudio", "triton")


def companion_versions(name: str) -> tuple[str, ...]:
    return tuple(row["version"] for row in oracle.rows("torch_releases", "companions") if row["name"] == name)


@st.composite
def queries(draw: st.DrawFn) -> FamilyQuery:
    installed: dict[str, str] = {}
    variant = draw(st.sampled_from((None, *VARIANTS)))
    if draw(st.integers(0, 9)):
        torch = draw(st.sampled_from(TORCH) if draw(st.integers(0, 4)) else st.sampled_from(ODD))
        if draw(st.booleans()):
            variant = draw(st.sampled_from(BUILDS.get(torch, VARIANTS)))
        label = draw(st.sampled_from(("", f"+{variant}"))) if variant and "+" not in torch else ""
        installed["torch"] = torch + label
    requires: dict[str, str] = {}
    for name in ("torchvision", "torchaudio"):
        if draw(st.booleans()):
            installed[name] = draw(st.sampled_from((*companion_versions(name), "0.99.0")))
            if draw(st.booleans()):
                requires[name] = "torch" + draw(st.sampled_from(("==2.16.0", ">=2.14.0", "==2.5.1")))
    if draw(st.booleans()):
        installed["triton"] = draw(st.sampled_from(("2.0.0", "3.1.0", "3.8.0", "9.9.9")))
    sass = draw(st.sampled_from(((), ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0"), ("9.0a",), ("10.0f", "12.0"))))
    members = tuple(name for name in ("torch", *MEMBERS) if name == "torch" or draw(st.booleans()))
    return FamilyQuery(
        python=draw(st.sampled_from([f"3.{minor}" for minor in range(7, 16)] + ["3.11.7", "3.14.1"])),
        free_threaded=draw(st.integers(0, 9)) == 0,
        system=draw(st.sampled_from(("linux",) * 18 + ("darwin", "win32"))),
        machine=draw(st.sampled_from(("x86_64",) * 4 + ("aarch64",) * 2 + ("ppc64le",))),
        driver=draw(st.sampled_from(DRIVERS)),
        capabilities=tuple(
            draw(st.one_of(st.sampled_from(USUAL), st.lists(st.sampled_from(CAPABILITIES), max_size=3)))
        ),
        unknown_capabilities=draw(st.sampled_from((0,) * 7 + (1,))),
        installed=installed,
        requires_torch=requires,
        variant=variant,
        members=members,  # type: ignore[arg-type]
        policies=tuple(draw(st.lists(st.sampled_from(POLICIES), min_size=1, max_size=4))),
        gpu_required=draw(st.integers(0, 9)) == 0,
        glibc=draw(st.sampled_from((None, "2.17", "2.27", "2.28", "2.39"))),
        sass=sass,
        ptx=draw(st.sampled_from(((), sass[-1:]))),
    )


EXAMPLES = int(os.environ.get("ENVMEDIC_TEST_EXAMPLES", "100"))
laws = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@laws
@given(queries())
def test_no_proposed_set_breaks_a_rule(query: FamilyQuery) -> None:
    for found in answer(query).sets:
        assert oracle.violations(found, query) == [], found


@laws
@given(queries())
def test_an_answer_without_sets_says_why(query: FamilyQuery) -> None:
    given_answer = answer(query)
    assert given_answer.sets or given_answer.rejected
    for item in given_answer.rejected:
        assert item.rule in RULES
        assert item.reason
        assert item.title
    assert len(given_answer.rejected) <= 60


@laws
@given(queries())
def test_keeping_torch_keeps_its_version_and_its_variant(query: FamilyQuery) -> None:
    for found in answer(query).sets:
        if found.policy == "keep-torch":
            assert found.versions["torch"] == query.installed["torch"].partition("+")[0]
            assert query.variant in {None, found.variant}
        if found.policy == "keep-cuda-variant":
            assert query.variant in {None, found.variant}


@laws
@given(queries())
def test_the_ranking_follows_the_policies_and_is_the_same_each_time(query: FamilyQuery) -> None:
    first = answer(query)
    assert answer(query) == first
    order = list(dict.fromkeys(query.policies))
    places = [order.index(found.policy) for found in first.sets]
    assert places == sorted(places)
    assert all(places.count(place) <= SETS_PER_POLICY for place in places)
    assert len({key(found) for found in first.sets}) == len(first.sets)


@laws
@given(queries())
def test_the_newest_sets_come_newest_first_and_a_stronger_host_never_gets_older_ones(query: FamilyQuery) -> None:
    newest = [found for found in answer(query).sets if found.policy == "newest"]
    assert all(TORCH.index(a.versions["torch"]) > TORCH.index(b.versions["torch"]) for a, b in pairwise(newest))


def key(found: FamilySet) -> tuple[str, ...]:
    return (found.variant, *(f"{name}={version}" for name, version in sorted(found.versions.items())))
