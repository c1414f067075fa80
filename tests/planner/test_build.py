"""Plans made from proposals and wheels: complete, identified, refused when metadata shows incoherence."""

from __future__ import annotations

import msgspec
import pytest

from envmedic import planner
from envmedic.diagnosis.findings import alternatives
from envmedic.errors import NoSolution
from envmedic.model.base import from_json, to_json
from envmedic.model.facts import CompanionBuild, Facts, Leftover
from envmedic.model.plan import Artifact, Install, Plan, Purge
from envmedic.model.playbook import AdviseStep, LoadedPlaybook, PurgeStep, RemedyStep, ReplaceStep, TorchFamilyStep
from envmedic.model.ports import Resolution
from envmedic.model.registries.check_kinds import CONSUMER_CHECKS, GPU_CHECKS, PROFILES
from envmedic.planner import checks
from tests.diagnosis import consumer_cases
from tests.planner.support import (
    NOW,
    Spelling,
    dist,
    environment,
    facts,
    finding,
    playbook,
    torchvision,
    usual,
    wheel,
)


def made(
    observed: Facts | None = None,
    wheels: tuple[Artifact, ...] | None = None,
    loaded: LoadedPlaybook | None = None,
    now: str = NOW,
    **more: object,
) -> Plan:
    observed, loaded = observed or facts(), loaded or playbook()
    considered = planner.proposals(observed, finding(), loaded)
    resolution = Resolution(artifacts=(torchvision(),) if wheels is None else wheels, notes=("from the cache",))
    resolved = planner.ResolvedProposal(considered.best(), resolution, considered=considered, **more)  # type: ignore[arg-type]
    known = msgspec.structs.replace(finding(), alternatives=alternatives(loaded.playbook, {}))
    return planner.build(observed, known, loaded, resolved, planner.PlanInstallers(Spelling()), now=now)


def test_the_plan_of_a_wrong_torchvision() -> None:
    plan = made()
    assert [type(step) for step in plan.steps] == [Purge, Install]
    assert plan.commands == (
        ("/home/me/env/bin/python", "uninstall", "torchvision"),
        ("/home/me/env/bin/python", "install", "torchvision-0.20.1-py3-none-any.whl"),
    )
    assert [(item.kind, item.name, item.before, item.after, item.owner) for item in plan.changes] == [
        ("change", "torchvision", "0.18.1", "0.20.1", "uv")
    ]
    assert plan.stays == ("torch 2.5.1", "triton 3.1.0")
    assert plan.stays_count == 7
    assert (plan.playbook, plan.playbook_sha256, plan.fault) == ("nms-cuda", "5" * 64, "torchvision-ops")
    assert (plan.prefix, plan.real_prefix, plan.environment_digest) == ("/home/me/env", "/data/env", "digest-1")
    assert plan.created == NOW
    assert plan.envmedic
    assert "from the cache" in plan.notes


def test_sizes_of_download_and_disk() -> None:
    plan = made()
    assert plan.download_bytes == 5000
    assert plan.disk_bytes >= plan.download_bytes
    assert made(fetched={torchvision().local_path}).download_bytes == 0


def test_an_unknown_size_is_estimated_and_told() -> None:
    unknown = msgspec.structs.replace(torchvision(), size_bytes=None)
    plan = made(wheels=(unknown,))
    assert plan.download_bytes == 0
    assert plan.disk_bytes >= 9000
    assert any("no size for torchvision" in note for note in plan.notes)


ABSENT = {"torchaudio-lfilter", "extension-smoke", "torch-compile", *CONSUMER_CHECKS}
"""Checks of what the environment does not have, or the plan does not touch."""


def test_the_checks_of_a_cuda_build() -> None:
    plan = made()
    rows = [(item.name, item.role, item.gpu) for item in plan.checks]
    informative = [name for name in PROFILES["standard"] if name in GPU_CHECKS - {"torchvision-nms", *ABSENT}]
    assert {"torchvision-roi-align", "matmul", "conv", "linalg", "all-reduce"} < set(informative)
    assert rows == [
        ("torchvision-dispatch", "playbook", False),
        ("torchvision-nms", "playbook", True),
        ("import", "regression", False),
        ("import", "regression", False),
        ("pip-check", "regression", False),
        ("facts", "regression", False),
        *((name, "informative", True) for name in informative),
    ]
    assert plan.gpu_checks
    assert [(item.arguments, item.in_place) for item in plan.checks if item.name == "import"] == [
        (("functorch", "torch", "torchgen", "torchvision"), True),
        (("triton", "PIL", "filelock", "numpy", "nvidia.cublas", "sympy"), False),
    ]


@pytest.mark.parametrize(
    ("installed", "removed", "compiles"),
    [
        ({"torchvision": "0.20.1"}, (), False),
        ({"torch": "2.5.1"}, (), True),
        ({"triton": "3.1.0"}, (), True),
        ({"nvidia-cuda-nvrtc-cu12": "12.4.127"}, (), True),
        ({"gxx_linux-64": "13.3.0"}, (), True),
        ({}, ("setuptools",), True),
        ({"gcsfs": "2025.1"}, ("ldap3",), False),
    ],
)
def test_torch_compile_is_checked_where_what_it_compiles_with_changes(
    installed: dict[str, str], removed: tuple[str, ...], *, compiles: bool
) -> None:
    considered = planner.proposals(facts(), finding(), playbook()).best()
    state = checks.expected_environment(facts(), considered, removed=removed, installed=installed)
    assert ("torch-compile" in {item.name for item in checks.checks(playbook(), None, state)}) is compiles


@pytest.mark.parametrize(
    ("build", "installed", "role"),
    [
        ("jax-cuda12-plugin 0.6.2", "nvidia-cudnn-cu12", "playbook"),
        ("jax-cuda12-plugin 0.6.2", "jax-cuda12-plugin", "playbook"),
        (None, "jax-cuda12-plugin", "playbook"),
        (None, "jaxlib", "playbook"),
        ("jax-cuda12-plugin 0.6.2", "nvidia-cusparselt-cu12", "informative"),
    ],
)
def test_a_consumer_must_compute_where_the_plan_brings_what_it_opens(
    build: str | None, installed: str, role: str
) -> None:
    made = consumer_cases.consumer("jax", "0.6.2", build, consumer_cases.opened("libcudnn.so.9"))
    around = Facts(host=consumer_cases.host(), environment=consumer_cases.environment(consumer_cases.jax(), made))
    considered = planner.proposals(facts(), finding(), playbook()).best()
    state = checks.expected_environment(around, considered, removed=(), installed={installed: "1.0"})
    libraries = playbook(RemedyStep(name="consumer-libraries"))
    assert [item.role for item in checks.checks(libraries, None, state) if item.name == "jax"] == [role]


def test_extension_packages_that_stay_are_called() -> None:
    plan = made(facts(environment([*usual(), dist("flash-attn", "2.6.3")])))
    assert [item.arguments for item in plan.checks if item.name == "extension-smoke"] == [("flash-attn",)]


def test_the_checks_of_a_cpu_build_need_no_gpu() -> None:
    broken = environment(usual(torch="2.5.1+cpu"), variant="cpu")
    plan = made(facts(broken, driver=None, gpus=()))
    assert not plan.gpu_checks
    assert not any(item.gpu for item in plan.checks)


def test_the_playbooks_import_check_is_about_the_family() -> None:
    plan = made(loaded=playbook(checks=("import",)))
    assert plan.checks[0].arguments == ("torch", "torchvision")
    assert plan.checks[0].role == "playbook"


def test_what_goes_for_good_is_not_imported_afterwards() -> None:
    env = environment([*usual(), dist("decord", "0.6.0")])
    book = playbook(ReplaceStep(distribution="decord", by="av"))
    plan = made(facts(env), wheels=(wheel("av", "17.0.0"),), loaded=book)
    names = [name for item in plan.checks if item.name == "import" for name in item.arguments]
    assert "torch" in names
    assert "decord" not in names
    assert [(item.kind, item.name) for item in plan.changes] == [("remove", "decord"), ("install", "av")]


def test_a_leftover_is_in_the_plan() -> None:
    leftover = Leftover(kind="tilde", path="lib/python3.11/site-packages/~orchvision")
    plan = made(facts(environment(leftovers=(leftover,))))
    assert isinstance(plan.steps[0], Purge)
    assert plan.steps[0].leftovers == (leftover.path,)


def test_two_copies_are_one_change() -> None:
    env = environment([*usual("0.20.1", "torch==2.5.1"), dist("torchvision", "0.18.1", "torch==2.3.1")])
    plan = made(facts(env))
    assert [(item.before, item.after) for item in plan.changes] == [("0.20.1, 0.18.1", "0.20.1")]


def test_a_dependency_that_changes_is_removed_first() -> None:
    plan = made(wheels=(torchvision(), wheel("pillow", "12.0.0"), wheel("extra-new", "1.0")))
    purge = plan.steps[0]
    assert isinstance(purge, Purge)
    assert [item.name for item in purge.distributions] == ["torchvision", "pillow"]
    assert [(item.kind, item.name) for item in plan.changes] == [
        ("change", "pillow"),
        ("change", "torchvision"),
        ("install", "extra-new"),
    ]


def test_a_change_of_torch_takes_the_cuda_libraries_of_the_old_one_along() -> None:
    observed = facts(driver="580.95.05", gpus=("12.0",))
    new = (
        wheel("torch", "2.15.0", "filelock", "nvidia-cudnn-cu13==9.26.0.51"),
        wheel("torchvision", "0.29.2", "torch>=2.14.0", "numpy"),
        wheel("nvidia-cudnn-cu13", "9.26.0.51"),
    )
    plan = made(observed, wheels=new)
    removed = {item.name for item in plan.changes if item.kind == "remove"}
    assert removed == {"nvidia-cublas-cu12", "triton"}
    assert [item.name for item in plan.changes if item.kind == "install"] == ["nvidia-cudnn-cu13"]


def test_a_cuda_library_that_another_distribution_needs_stays() -> None:
    env = environment([*usual(), dist("cupy-cuda12x", "13.0", "nvidia-cublas-cu12")])
    new = (wheel("torch", "2.15.0"), wheel("torchvision", "0.29.2", "torch>=2.14.0"))
    plan = made(facts(env, driver="580.95.05", gpus=("12.0",)), wheels=new)
    assert {item.name for item in plan.changes if item.kind == "remove"} == {"triton"}


def test_a_wheel_whose_requirements_are_not_met_is_refused_before_the_clone() -> None:
    with pytest.raises(NoSolution, match="unmet") as caught:
        made(wheels=(torchvision("0.20.1", "torch==2.5.0"),))
    assert caught.value.details == ("torchvision 0.20.1 requires torch==2.5.0, torch 2.5.1 is installed",)


def test_a_wheel_that_breaks_what_stays_is_refused() -> None:
    env = environment([*usual(), dist("old-tool", "1.0", "numpy>=2")])
    with pytest.raises(NoSolution) as caught:
        made(facts(env), wheels=(torchvision(), wheel("numpy", "1.26.4")))
    assert caught.value.details == ("old-tool 1.0 requires numpy>=2, numpy 1.26.4 is installed",)


def test_alternatives_say_why_they_were_not_chosen() -> None:
    book = playbook(
        PurgeStep(distributions=("torchvision",)), TorchFamilyStep(), alternatives=("Build it. That takes long.",)
    )
    observed = facts()
    considered = planner.proposals(observed, finding(), book)
    failed = {considered.proposals[1].title: "the index is not reachable"}
    plan = made(observed, loaded=book, failed=failed)
    by_title = {item.title: item for item in plan.alternatives}
    assert considered.best().title not in by_title
    assert by_title[considered.proposals[1].title].why_not == "the index is not reachable"
    assert not by_title[considered.proposals[1].title].feasible
    assert "replaces torch 2.5.1" in by_title[considered.proposals[2].title].why_not
    assert by_title["Build it"].why_not == "That takes long."
    assert any("driver-minimum" in item.why_not for item in plan.alternatives)


def test_a_plan_without_wheels() -> None:
    book = playbook(AdviseStep(text="read this"), checks=())
    observed = facts()
    resolved = planner.ResolvedProposal(planner.proposals(observed, finding(), book).best())
    plan = planner.build(observed, finding(), book, resolved, planner.PlanInstallers(Spelling()), now=NOW)
    assert [step.describe() for step in plan.steps] == ["read this"]
    assert (plan.commands, plan.changes, plan.download_bytes) == ((), (), 0)


def test_the_id_covers_everything_else() -> None:
    plan = made()
    assert planner.verify_id(plan)
    assert made().id == plan.id
    assert made(now="2027-01-01T00:00:00Z").id != plan.id
    assert not planner.verify_id(msgspec.structs.replace(plan, commands=(("rm",),)))


def test_the_id_survives_writing_and_reading() -> None:
    plan = made()
    again = from_json(to_json(plan), Plan, source="plan.json")
    assert again == plan
    assert planner.verify_id(again)


def test_a_plan_is_stale_when_files_or_the_prefix_changed() -> None:
    plan, env = made(), environment()
    assert planner.stale(plan, env) is None
    assert "changed after" in (planner.stale(plan, msgspec.structs.replace(env, digest="digest-2")) or "")
    assert "changed after" in (planner.stale(plan, msgspec.structs.replace(env, digest="")) or "")
    assert "made for /data/env" in (planner.stale(plan, msgspec.structs.replace(env, real_prefix="/other")) or "")


def test_unmet_requirements_follow_markers_of_the_environment() -> None:
    env = environment()
    values = planner.markers(env, facts().host)
    new = (
        wheel("a", "1.0", "tomli; python_version < '3.11'", "numpy>=3", "missing-one", "extra; extra == 'test'"),
        wheel("b", "1.0", "a>=2", "not a requirement ;;"),
    )
    found = planner.unmet(env, ("pillow",), (*new, wheel("c", "1.0", "pillow")), values=values)
    assert [item.sentence() for item in found] == [
        "a 1.0 requires numpy>=3, numpy 2.2.0 is installed",
        "a 1.0 requires missing-one, it is missing",
        "b 1.0 requires a>=2, a 1.0 is installed",
        "c 1.0 requires pillow, it is missing",
    ]


def test_torch_without_its_label_satisfies_an_exact_pin() -> None:
    env = environment(usual(torch="2.5.1+cu124"))
    assert planner.unmet(env, ("torchvision",), (torchvision(),), values=planner.markers(env, facts().host)) == ()


def test_a_companion_of_the_wrong_build_gives_a_change_of_the_same_version() -> None:
    build = CompanionBuild(name="torchvision", version="0.20.1", variant="cpu")
    env = environment(usual("0.20.1", "torch==2.5.1"), companions=(build,))
    assert [(item.kind, item.before, item.after) for item in made(facts(env)).changes] == [
        ("change", "0.20.1", "0.20.1")
    ]


def test_what_a_plan_installs_is_imported_again_in_place() -> None:
    env = environment([*usual(), dist("scikit-learn", "1.5.0", imports=("sklearn",))])
    plan = made(facts(env), wheels=(wheel("torchvision", "0.20.1"), wheel("scikit-learn", "1.6.0")))
    again, others = (item.arguments for item in plan.checks if item.name == "import")
    assert "sklearn" in again
    assert "PIL" in others
