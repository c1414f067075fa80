"""What is proposed for broken environments: what is wrong changes, and only that."""

from __future__ import annotations

import msgspec
import pytest

from envmedic import planner
from envmedic.analysis.build_tools import toolchain
from envmedic.errors import NoSolution, NotAnEnvironment
from envmedic.model.answers.family import Member
from envmedic.model.facts import (
    Building,
    CompanionBuild,
    Compiler,
    Environment,
    Facts,
    Host,
    Leftover,
    Library,
    Origin,
    Toolkit,
)
from envmedic.model.plan import Advise, Pin, Rebuild, SetEnv, UnsetEnv
from envmedic.model.playbook import (
    AdviseStep,
    CommandStep,
    FactValue,
    InstallStep,
    PinStep,
    PlaybookStep,
    PurgeStep,
    RebuildStep,
    ReplaceStep,
    SetEnvStep,
    TorchFamilyStep,
    UnsetEnvStep,
)
from envmedic.planner import Proposal
from tests.planner.support import SITE, dist, environment, facts, finding, playbook, usual


def best(*args: object, **kwargs: object) -> Proposal:
    return planner.proposals(*args, **kwargs).best()  # type: ignore[arg-type]


def test_a_torchvision_for_another_torch_is_the_only_change() -> None:
    found = best(facts(), finding(), playbook())
    assert found.changed == ("torchvision",)
    assert [f"{item.name} {item.version}" for item in found.purge.distributions] == ["torchvision 0.18.1"]
    assert found.purge.leftovers == ()
    assert found.request is not None
    assert found.request.pins == ("torchvision==0.20.1",)
    assert found.request.variant == "cu124"
    assert not found.request.needs_variant_index
    assert found.request.replaceable == ()
    assert found.title == "torchvision 0.20.1 beside the installed torch 2.5.1"


def test_another_variant_needs_its_own_index() -> None:
    env = environment(usual(torch="2.5.1+cu121"), variant="cu121")
    request = best(facts(env), finding(), playbook()).request
    assert request is not None
    assert (request.variant, request.needs_variant_index) == ("cu121", True)


def test_a_label_for_the_default_variant_needs_no_other_index() -> None:
    request = best(facts(environment(usual(torch="2.5.1+cu124"))), finding(), playbook()).request
    assert request is not None
    assert not request.needs_variant_index


def test_the_users_sources_of_wheels_are_passed_on() -> None:
    options = planner.Options(find_links=("/wheels",), offline=True, torch_index="https://mirror.example/{variant}")
    request = best(facts(), finding(), playbook(), options=options).request
    assert request is not None
    assert (request.find_links, request.offline) == (("/wheels",), True)
    assert request.torch_index == "https://mirror.example/{variant}"


def test_a_coherent_torchaudio_stays_and_an_incoherent_one_changes() -> None:
    sound = environment([*usual(), dist("torchaudio", "2.5.1", "torch==2.5.1")])
    assert best(facts(sound), finding(), playbook()).changed == ("torchvision",)
    wrong = environment([*usual(), dist("torchaudio", "2.11.0")])
    found = best(facts(wrong), finding(), playbook())
    assert found.changed == ("torchvision", "torchaudio")
    assert found.request is not None
    assert found.request.pins == ("torchvision==0.20.1", "torchaudio==2.5.1")


def test_an_incoherent_triton_changes_and_a_missing_one_is_not_added() -> None:
    others = [item for item in usual() if item.name != "triton"]
    found = best(facts(environment([*others, dist("triton", "3.2.0")])), finding(), playbook())
    assert found.changed == ("torchvision", "triton")
    assert best(facts(environment(others)), finding(), playbook()).changed == ("torchvision",)


@pytest.mark.parametrize(
    "build",
    [
        CompanionBuild(name="torchvision", version="0.20.1+cpu", variant="cpu"),
        CompanionBuild(name="torchvision", version="0.20.1", has_gpu_code=False),
        CompanionBuild(name="torchvision", version="0.20.1", cuda="11.8"),
    ],
)
def test_the_right_version_of_another_build_is_replaced(build: CompanionBuild) -> None:
    env = environment(usual("0.20.1", "torch==2.5.1"), companions=(build,))
    found = best(facts(env), finding(), playbook())
    assert found.request is not None
    assert found.request.pins == ("torchvision==0.20.1",)


def test_a_torchvision_in_order_by_every_sign_is_installed_again_where_the_playbook_purges_it() -> None:
    sound = CompanionBuild(name="torchvision", version="0.20.1", cuda="12.4", variant="cu124", has_gpu_code=True)
    env = environment(usual("0.20.1", "torch==2.5.1"), companions=(sound,))
    assert best(facts(env), finding(), playbook()).changed == ("torchvision",)


def test_only_the_damaged_companion_of_two_is_installed_again() -> None:
    library = Library(path="lib/x/_C.so", distribution="torchaudio", missing=("libsox.so",))
    env = environment(
        [*usual("0.20.1", "torch==2.5.1"), dist("torchaudio", "2.5.1", "torch==2.5.1")], libraries=(library,)
    )
    assert best(facts(env), finding(), playbook()).changed == ("torchaudio",)


def test_two_copies_go_by_path_since_they_list_each_others_files() -> None:
    env = environment([*usual("0.20.1", "torch==2.5.1"), dist("torchvision", "0.18.1", "torch==2.3.1")])
    purge = best(facts(env), finding(), playbook()).purge
    assert purge.distributions == ()
    assert [item.version for item in purge.by_path] == ["0.20.1", "0.18.1"]
    assert purge.names == ("torchvision",)
    assert "lib/python3.11/site-packages/torchvision" in purge.leftovers
    assert "lib/python3.11/site-packages/torchvision.libs" in purge.leftovers


def test_copies_go_by_path_where_one_of_them_does_not_list_its_files() -> None:
    env = environment([*usual("0.20.1", "torch==2.5.1"), dist("torchvision", "0.18.1", has_record=False)])
    purge = best(facts(env), finding(), playbook()).purge
    assert purge.distributions == ()
    assert {path for path in purge.leftovers if path.endswith(".dist-info")} == {
        "lib/python3.11/site-packages/torchvision-0.20.1.dist-info",
        "lib/python3.11/site-packages/torchvision-0.18.1.dist-info",
    }


def test_a_namespace_that_others_share_is_never_deleted_by_path() -> None:
    shared = [
        dist("torchvision", "0.18.1", imports=("torchvision", "google")),
        dist("protobuf", "5.0", imports=("google",)),
    ]
    others = [item for item in usual() if item.name != "torchvision"]
    twice = dist("torchvision", "0.19.1", imports=("torchvision", "google"))
    purge = best(facts(environment([*others, *shared, twice])), finding(), playbook()).purge
    assert not any(path.endswith(("/google", "/google.py")) for path in purge.leftovers)


def test_leftovers_are_deleted_by_path_and_those_of_others_are_left_alone() -> None:
    leftovers = (
        Leftover(kind="tilde", path="lib/python3.11/site-packages/~orchvision"),
        Leftover(kind="tilde", path="lib/python3.11/site-packages/~umpy-2.1.0.dist-info"),
        Leftover(
            kind="empty-dist-info", path="lib/python3.11/site-packages/torchvision-0.17.0.dist-info", name="torchvision"
        ),
    )
    purge = best(facts(environment(leftovers=leftovers)), finding(), playbook()).purge
    assert purge.leftovers == (leftovers[0].path, leftovers[2].path)


def test_leftovers_alone_bring_torchvision_back() -> None:
    others = [item for item in usual() if item.name != "torchvision"]
    leftover = Leftover(kind="tilde", path="lib/python3.11/site-packages/~orchvision", name="torchvision")
    found = best(facts(environment(others, leftovers=(leftover,))), finding(), playbook())
    assert found.changed == ("torchvision",)
    assert found.purge.leftovers == (leftover.path,)


def test_a_copy_outside_the_prefix_is_told_and_left_alone() -> None:
    outside = dist("torchvision", "0.19.1", site="/home/me/.local/lib", outside=True)
    found = best(facts(environment([*usual(), outside])), finding(), playbook())
    assert [item.version for item in found.purge.distributions] == ["0.18.1"]
    assert any("outside the environment" in note for note in found.notes)


def test_a_gpu_that_torch_does_not_serve_changes_torch_with_what_torch_pins() -> None:
    found = best(facts(driver="570.124.06", gpus=("12.0",)), finding(), playbook())
    assert found.family is not None
    assert found.family.policy == "newest"
    assert found.changed[:2] == ("torch", "torchvision")
    assert found.request is not None
    assert not any(pin.startswith("triton") for pin in found.request.pins)
    assert {"nvidia-*", "triton", "sympy"} <= set(found.request.replaceable)
    assert found.cost.startswith("it replaces torch 2.5.1 too")


@pytest.mark.parametrize(
    "tied",
    [
        dist("flash-attn", "2.7.4", "torch"),
        dist("my-project", "1.0", "torch==2.5.1"),
    ],
)
def test_a_change_of_torch_is_refused_with_what_is_bound_to_it(tied: object) -> None:
    env = environment([*usual(), tied])  # type: ignore[list-item]
    answer = planner.proposals(facts(env, driver="570.124.06", gpus=("12.0",)), finding(), playbook())
    assert answer.proposals == ()
    refused = [item for item in answer.rejected if "it would break what stays" in item.why_not]
    assert refused
    assert all(tied.name in item.why_not and not item.feasible for item in refused)  # type: ignore[attr-defined]
    with pytest.raises(NoSolution) as caught:
        answer.best()
    assert any(tied.name in line for line in caught.value.details)  # type: ignore[attr-defined]


def test_what_is_bound_to_torch_does_not_hinder_a_change_of_torchvision() -> None:
    env = environment([*usual(), dist("xformers", "0.0.28.post3", "torch==2.5.1")])
    assert best(facts(env), finding(), playbook()).changed == ("torchvision",)


def test_what_names_its_torch_is_resolved_along_with_another_one() -> None:
    env = environment([*usual(), dist("xformers", "0.0.28.post3", "torch==2.5.1")])
    found = best(facts(env, driver="570.124.06", gpus=("12.0",)), finding(), playbook())
    assert found.request is not None
    assert {"torch==", "xformers"} <= {pin[:7] if pin.startswith("torch==") else pin for pin in found.request.pins}
    asked = planner.proposals(facts(env), finding(), playbook(InstallStep(requirements=("torch==2.4.1",)))).best()
    assert asked.request is not None
    assert asked.request.pins == ("torch==2.4.1", "xformers")


def linked(*, uses_cuda: bool = False) -> Environment:
    library = Library(
        path="lib/x/ops.so", distribution="my-ops", needed=("libc10.so", "libtorch.so"), uses_cuda=uses_cuda
    )
    return environment([*usual(), dist("my-ops", "1.0")], libraries=(library,))


def test_a_library_that_links_torch_is_built_again_for_another_one() -> None:
    found = best(facts(linked(), driver="570.124.06", gpus=("12.0",)), finding(), playbook())
    assert [step.distribution.name for step in found.after if isinstance(step, Rebuild)] == ["my-ops"]
    assert found.notes == ("my-ops is built again for the torch that comes",)
    assert found.request is not None
    assert {"setuptools", "wheel"} <= set(found.request.pins)


def built_without_gpu_code(name: str, *toolkits: Toolkit) -> Facts:
    """An extension whose installed copy has no GPU code, beside a CUDA build of torch."""
    library = Library(path="lib/x/_ext.so", distribution=name, needed=("libc10.so", "libtorch.so"))
    item = msgspec.structs.replace(dist(name, "2.2.0"), origin=Origin(kind="index"))
    compiler = Compiler(path="/usr/bin/g++", name="g++", version="12.2", found_by="PATH")
    building = Building(toolkits=toolkits, compilers=(compiler,), architectures=("8.0", "8.6"))
    env = environment([*usual(), item], libraries=(library,))
    return facts(msgspec.structs.replace(env, building=building))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mmcv", {"MMCV_WITH_OPS": "1"}),
        ("flash-attn", {"FLASH_ATTENTION_FORCE_BUILD": "TRUE"}),
        ("torch-scatter", {}),
    ],
)
def test_what_lost_its_gpu_code_is_built_with_it(name: str, told: dict[str, str]) -> None:
    home = "/usr/local/cuda-12.4"
    toolkit = Toolkit(path=home, version="12.4", nvcc=f"{home}/bin/nvcc", found_by="PATH")
    found = best(built_without_gpu_code(name, toolkit), finding(), playbook(RebuildStep(distribution=name)))
    (step,) = (item for item in found.after if isinstance(item, Rebuild))
    assert {"FORCE_CUDA": "1", "CUDA_HOME": home, **told}.items() <= step.variables.items()


@pytest.mark.parametrize("version", [None, "11.8"])
def test_a_build_without_a_fitting_toolkit_is_refused_before_it_begins(version: str | None) -> None:
    home = f"/usr/local/cuda-{version}"
    toolkits = (Toolkit(path=home, version=version, nvcc=f"{home}/bin/nvcc", found_by="PATH"),) if version else ()
    observed = built_without_gpu_code("mmcv", *toolkits)
    with pytest.raises(NoSolution) as refused:
        planner.proposals(observed, finding(), playbook(RebuildStep(distribution="mmcv")))
    assert "no CUDA toolkit of torch's version 12.4" in (refused.value.cause or "")
    assert (version or "no nvcc") in (refused.value.cause or "")


def test_gpu_code_is_not_built_for_another_cuda() -> None:
    home = "/usr/local/cuda-12.4"
    toolkit = Toolkit(path=home, version="12.4", nvcc=f"{home}/bin/nvcc", found_by="PATH")
    compiler = Compiler(path="/usr/bin/g++", name="g++", version="12.2", found_by="PATH")
    building = Building(toolkits=(toolkit,), compilers=(compiler,))
    env = msgspec.structs.replace(linked(uses_cuda=True), building=building)
    observed = facts(env, driver="570.124.06", gpus=("12.0",))
    tools = toolchain(observed)
    assert tools is not None
    assert tools.matching_home == home
    answer = planner.proposals(observed, finding(), playbook())
    assert answer.proposals == ()
    assert any("my-ops 1.0 is bound to the installed torch" in item.why_not for item in answer.rejected)


def test_a_requirement_that_is_already_broken_is_no_obstacle() -> None:
    env = environment([*usual(), dist("old-tool", "1.0", "torchvision==0.17.0")])
    assert best(facts(env), finding(), playbook()).changed == ("torchvision",)


def test_what_needs_the_torchvision_that_goes_is_an_obstacle() -> None:
    env = environment([*usual(), dist("strict-tool", "1.0", "torchvision==0.18.1")])
    answer = planner.proposals(facts(env), finding(), playbook())
    assert all("strict-tool 1.0 requires torchvision==0.18.1" in item.why_not for item in answer.rejected[:1])


def test_other_distributions_may_be_condas() -> None:
    owned = [dist(item.name, item.version, owner="conda") if item.name == "numpy" else item for item in usual()]
    assert best(facts(environment(owned)), finding(), playbook()).changed == ("torchvision",)


def test_steps_that_are_not_supported_are_all_named() -> None:
    steps = (CommandStep(argv=("make", "it")), AdviseStep(text="x"))
    with pytest.raises(NoSolution, match="not supported yet") as caught:
        planner.proposals(facts(), finding(), playbook(*steps))
    assert caught.value.details == ("command make it",)


def test_the_other_kinds_of_step_are_filled_and_kept_in_order() -> None:
    steps = (
        SetEnvStep(variables={"TORCH_CUDA_ARCH_LIST": "{gpu.capabilities}"}),
        UnsetEnvStep(names=("{name}",)),
        PinStep(constraints=("torchvision=={wanted}",)),
        AdviseStep(text="{{literal}} {name}"),
    )
    book = playbook(*steps, vars={"wanted": "0.20.{patch}"})
    values = {"gpu.capabilities": ("8.6",), "patch": "1"}
    found = best(facts(), finding(name="LD_PRELOAD"), book, values=values)
    assert found.request is None
    assert found.after == (
        SetEnv(variables={"TORCH_CUDA_ARCH_LIST": "8.6"}),
        UnsetEnv(names=("LD_PRELOAD",)),
        Pin(constraints=("torchvision==0.20.1",)),
        Advise(text="{literal} LD_PRELOAD"),
    )


def test_a_placeholder_that_was_not_observed_is_an_error_that_names_it() -> None:
    with pytest.raises(NoSolution, match="depends on what could not be observed here: version of the NVIDIA driver"):
        planner.proposals(facts(), finding(), playbook(PinStep(constraints=("driver<{driver.version}",))))


def test_advice_is_given_whatever_was_not_observed() -> None:
    found = best(facts(), finding(), playbook(AdviseStep(text="driver {driver.version}")))
    assert found.after == (Advise(text="driver unknown"),)


def test_install_and_replace_steps_become_pins() -> None:
    env = environment([*usual(), dist("decord", "0.6.0")])
    book = playbook(ReplaceStep(distribution="decord", by="av"), InstallStep(requirements=("numpy<2",)))
    found = best(facts(env), finding(), book)
    assert found.request is not None
    assert found.request.pins == ("av", "numpy<2")
    assert [item.name for item in found.purge.distributions] == ["decord"]


def listing(*names: str) -> dict[str, FactValue]:
    return {"env.duplicates": names}


@pytest.mark.parametrize(
    "step",
    [
        PurgeStep(distributions=("{env.duplicates}",)),
        InstallStep(requirements=("{env.duplicates}",)),
        PinStep(constraints=("{env.duplicates}",)),
        UnsetEnvStep(names=("{env.duplicates}",)),
    ],
)
def test_a_list_fills_a_list_and_an_empty_one_does_nothing(step: PlaybookStep) -> None:
    env = facts(environment([*usual(), dist("six", "1.0"), dist("attrs", "2.0")]))
    for values in (listing(), {"env.duplicates": None}):
        assert planner.proposals(env, finding(), playbook(step), values=values).proposals == ()
    found = best(env, finding(), playbook(step, AdviseStep(text="-")), values=listing("six", "attrs", "six"))
    named = [item.name for item in found.purge.distributions] or list(found.request.pins if found.request else ())
    named += [name for item in found.after for name in getattr(item, "names", getattr(item, "constraints", ()))]
    assert named == ["six", "attrs"]
    with pytest.raises(NoSolution, match="distributions that more than one metadata directory claims"):
        planner.proposals(env, finding(), playbook(step))


def test_steps_of_one_kind_are_gathered_in_order() -> None:
    steps = (
        InstallStep(requirements=("numpy<2",), index="https://one.example/simple"),
        PurgeStep(distributions=("six",)),
        InstallStep(requirements=("attrs", "numpy<2"), index="https://two.example/simple"),
        PurgeStep(distributions=("attrs",)),
    )
    env = environment([*usual(), dist("six", "1.0"), dist("attrs", "2.0")])
    found = best(facts(env), finding(), playbook(*steps))
    assert found.request is not None
    assert found.request.pins == ("numpy<2", "attrs")
    assert found.request.indexes == ("https://one.example/simple", "https://two.example/simple")
    assert [item.name for item in found.purge.distributions] == ["six", "attrs"]


@pytest.mark.parametrize(
    ("pin", "asked", "variant", "index"),
    [
        ("torch==2.5.1+cu124", "torch==2.5.1", "cu124", False),
        (
            "torchvision==0.20.1+cu124 ; python_version < '4'",
            "torchvision==0.20.1 ; python_version < '4'",
            "cu124",
            False,
        ),
        ("torch==2.5.1+cu118", "torch==2.5.1+cu118", "cu118", True),
        ("torchvision==0.20.1+cpu", "torchvision==0.20.1+cpu", "cpu", True),
        ("flash-attn==2.7.4+cu12torch2.5", "flash-attn==2.7.4+cu12torch2.5", None, False),
    ],
)
def test_a_label_is_asked_for_where_its_build_is(pin: str, asked: str, variant: str | None, index: bool) -> None:  # noqa: FBT001
    found = best(facts(), finding(), playbook(InstallStep(requirements=(pin,))))
    assert found.request is not None
    assert found.request.pins[0].replace('"', "'") == asked
    assert (found.request.variant, found.request.needs_variant_index) == (variant, index)


def test_two_variants_in_one_environment_are_refused() -> None:
    pins = ("torch==2.5.1+cu118", "torchvision==0.20.1+cu124")
    with pytest.raises(NoSolution, match="several CUDA variants"):
        planner.proposals(facts(), finding(), playbook(InstallStep(requirements=pins)))
    steps = (InstallStep(requirements=("a",), variant="cu118"), InstallStep(requirements=("b",), variant="cu124"))
    with pytest.raises(NoSolution, match="two CUDA variants"):
        planner.proposals(facts(), finding(), playbook(*steps))


def test_what_others_require_is_not_replaced() -> None:
    env = environment([*usual(), dist("decord", "0.6.0"), dist("video-tool", "1.0", "decord>=0.5")])
    answer = planner.proposals(facts(env), finding(), playbook(ReplaceStep(distribution="decord", by="av")))
    assert answer.proposals == ()
    assert "video-tool 1.0 requires decord>=0.5" in answer.rejected[0].why_not


def test_a_requirement_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(NoSolution, match="no requirement"):
        planner.proposals(facts(), finding(), playbook(InstallStep(requirements=("not a requirement",))))


def test_a_purge_alone_needs_no_resolution() -> None:
    found = best(facts(), finding(), playbook(PurgeStep(distributions=("torchvision",))))
    assert found.request is None
    assert [item.name for item in found.purge.distributions] == ["torchvision"]


def test_a_damaged_list_of_files_is_not_left_to_an_installer() -> None:
    damaged = msgspec.structs.replace(dist("six", "1.0"), record_error="2 lines are not 'path,hash,size'")
    other = dist("six-extras", "1.0", imports=("six.more",))
    book = playbook(PurgeStep(distributions=("six",)), InstallStep(requirements=("six==1.0",)))
    purge = best(facts(environment([*usual(), damaged])), finding(), book).purge
    assert [item.name for item in purge.by_path] == ["six"]
    assert f"{SITE}/six.py" in purge.leftovers
    shared = best(facts(environment([*usual(), damaged, other])), finding(), book).purge
    assert shared.leftovers == (damaged.metadata_path, f"{SITE}/six.libs")


def test_an_environment_without_the_family_gets_no_torch() -> None:
    with pytest.raises(NoSolution) as caught:
        best(facts(environment([dist("numpy", "2.2.0")])), finding(), playbook())
    assert caught.value.details == ("the torch family: none of it is installed here",)


def test_host_facts_alone_are_not_enough() -> None:
    with pytest.raises(NotAnEnvironment):
        planner.proposals(Facts(host=Host()), finding(), playbook())


def test_the_policies_of_the_step_are_followed() -> None:
    members: tuple[Member, ...] = ("torch", "torchvision")
    step = TorchFamilyStep(policy=("newest",), members=members)
    found = best(facts(), finding(), playbook(step))
    assert found.family is not None
    assert found.family.policy == "newest"
    assert "torch" in found.changed


def test_rejected_sets_come_with_rule_and_source() -> None:
    answer = planner.proposals(facts(driver="470.82.01"), finding(), playbook())
    assert any("driver-minimum" in item.why_not and "docs.nvidia.com" in item.why_not for item in answer.rejected)
    assert all(not item.feasible for item in answer.rejected)
