"""What is proposed on conda prefixes: one owner of every distribution, conda's way first."""

from __future__ import annotations

import msgspec
import pytest

from envmedic import planner
from envmedic.diagnosis.findings import diagnose
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.conda import CondaPackage
from envmedic.model.facts import Environment, Facts, Library, UnresolvedSymbol
from envmedic.model.plan import Pin
from envmedic.model.playbook import (
    InstallStep,
    LoadedPlaybook,
    PinStep,
    PurgeStep,
    ReinstallStep,
    ReplaceStep,
    TorchFamilyStep,
)
from envmedic.planner import Proposal
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from tests.planner.conda_support import ROOT, base, covered, forge_family, old_family, package, pip, prefix
from tests.planner.support import dist, facts, finding, playbook

NEW_GPU = {"driver": "570.124.06", "gpus": ("12.0",)}


def ways(env: Environment, loaded: LoadedPlaybook | None = None, **host: object) -> tuple[Proposal, ...]:
    return answer(facts(env, **host), loaded).proposals  # type: ignore[arg-type]


def answer(known: Facts, loaded: LoadedPlaybook | None = None) -> planner.Proposals:
    return planner.proposals(known, finding(), loaded or playbook())


def best(env: Environment, loaded: LoadedPlaybook | None = None, **host: object) -> Proposal:
    return ways(env, loaded, **host)[0]


def by_wheels(found: tuple[Proposal, ...]) -> Proposal:
    return next(item for item in found if item.title.endswith("as wheels"))


def test_a_torchvision_of_another_torch_is_exchanged_by_conda_alone() -> None:
    found = best(prefix([*base(), *old_family(torchvision="0.19.1")]))
    assert found.request is None
    assert found.purge.names == ()
    assert found.conda is not None
    assert found.conda.specs == ("torchvision=0.18.1",)
    assert found.conda.remove == ()
    assert "numpy" not in found.conda.replaceable
    assert found.title.endswith("by conda (pytorch)")


def test_what_is_in_the_way_may_change_second_and_python_never() -> None:
    first, second = ways(prefix([*base(), *old_family(torchvision="0.19.1")]))[:2]
    assert first.conda is not None
    assert second.conda is not None
    assert second.conda.specs == first.conda.specs
    assert set(first.conda.replaceable) < set(second.conda.replaceable)
    assert "numpy" in second.conda.replaceable
    assert "python" not in second.conda.replaceable


CUDA = playbook(TorchFamilyStep(policy=("keep-release", "newest")))


def test_a_cpu_build_of_the_old_channel_becomes_the_cuda_build_of_the_same_release() -> None:
    found = best(prefix([*base(), *old_family(cuda=None)], variant="cpu"), CUDA)
    assert found.conda is not None
    assert found.conda.specs == ("pytorch 2.3.1 *cuda12.1*", "torchvision=0.18.1", "pytorch-cuda=12.1")
    assert found.conda.remove == ("cpuonly",)
    assert {"pytorch-mutex", "torchvision"} <= set(found.conda.replaceable)
    assert found.conda.channels == (f"{ROOT}/pytorch", f"{ROOT}/nvidia")


def test_a_driver_that_is_too_old_gets_the_older_cuda_of_the_same_release() -> None:
    found = best(prefix([*base(), *old_family()]), CUDA, driver="470.161.03")
    assert found.conda is not None
    assert found.conda.specs == ("pytorch 2.3.1 *cuda11.8*", "torchvision=0.18.1", "pytorch-cuda=11.8")
    assert found.conda.remove == ()


def test_conda_forge_chooses_cuda_by_build_and_cuda_version_and_its_metapackage_follows() -> None:
    family = forge_family("2.5.1", "0.20.1", "cpu_mkl_py311_h0_100")
    found = best(prefix([*base("conda-forge"), *family], variant="cpu"), CUDA)
    assert found.conda is not None
    assert found.conda.specs == (
        "pytorch 2.5.1 cuda126*",
        "torchvision=0.20.1",
        "cuda-version=12.6",
        "pytorch-gpu=2.5.1",
    )
    assert found.conda.remove == ("pytorch-cpu",)
    assert "libtorch" in found.conda.replaceable


def test_builds_of_the_default_channel_are_named_by_its_own_pattern() -> None:
    family = [package("pytorch", "2.8.0", "cpu_mkl_py311h0_100", brings=("torch",))]
    found = best(prefix([*base(), *family], variant="cpu"), CUDA, driver="580.65.06", gpus=("9.0",))
    assert found.conda is not None
    assert found.conda.specs[0] == "pytorch 2.8.0 gpu_cuda128*"


def test_where_the_channel_has_ended_the_family_moves_to_wheels_and_conda_lets_go_of_all_of_it() -> None:
    packages = [
        *base(),
        *old_family(),
        package("torchaudio", "2.3.1", "py311_cu121", "pytorch 2.3.1", brings=("torchaudio",)),
    ]
    known = facts(prefix(packages), driver="570.124.06", gpus=("12.0",))
    found = answer(known, CUDA)
    first = found.proposals[0]
    assert first.conda is not None
    assert first.request is not None
    assert set(first.conda.remove) == {
        "pytorch", "torchvision", "torchaudio", "pytorch-cuda", "pytorch-mutex", "cuda-cudart", "libcublas",
    }  # fmt: skip
    assert first.conda.specs == ()
    assert {pin.partition("==")[0] for pin in first.request.pins} == {"torch", "torchvision", "torchaudio"}
    assert any("wheels from here on" in note for note in first.notes)
    assert any("the channel ended with torch 2.5.1" in item.why_not for item in found.rejected)


def test_a_release_that_only_wheels_have_comes_after_every_way_of_conda() -> None:
    found = ways(prefix([*base(), *old_family(torchvision="0.19.1")]))
    kinds = [item.title.endswith("as wheels") for item in found]
    assert kinds == sorted(kinds)
    assert any(kinds)


def test_what_conda_was_asked_for_and_others_need_stays_where_torch_leaves() -> None:
    packages = [*base(), *old_family()]
    packages.append(package("cupy", "13.0", "0", "libcublas", brings=("cupy",), requested=True))
    found = by_wheels(ways(prefix(packages), CUDA, **NEW_GPU))
    assert found.conda is not None
    assert "libcublas" not in found.conda.remove
    assert "mkl" not in found.conda.remove
    assert "cuda-cudart" in found.conda.remove


def test_what_depends_on_condas_torch_moves_along_as_wheels() -> None:
    lightning = package("pytorch-lightning", "2.4.0", "pyhd8ed1ab_0", "pytorch >=2.1", brings=("pytorch-lightning",))
    found = by_wheels(ways(prefix([*base(), *old_family(), lightning]), CUDA, **NEW_GPU))
    assert found.conda is not None
    assert found.request is not None
    assert "pytorch-lightning" in found.conda.remove
    assert "pytorch-lightning==2.4.0" in found.request.pins


def test_wheels_are_refused_where_something_without_a_wheel_needs_condas_torch() -> None:
    bound = package("libsolver", "1.0", "h0_0", "pytorch 2.3.1")
    found = answer(facts(prefix([*base(), *old_family(), bound]), driver="570.124.06", gpus=("12.0",)), CUDA)
    assert found.proposals == ()
    assert any("libsolver 1.0 depends on pytorch" in item.why_not for item in found.rejected)


CLOBBERED = playbook(ReinstallStep(packages=("pytorch",)), checks=("facts",))
TORCH = pip("torch", "2.5.1", "nvidia-cublas-cu12==12.4.5.8", "sympy")
CUBLAS = pip("nvidia-cublas-cu12", "12.4.5.8")


def test_condas_torch_under_a_wheel_is_put_in_place_again_where_the_rest_of_the_family_is_condas() -> None:
    env = covered(prefix([*base(), *old_family()]), TORCH, CUBLAS, mixed=True)
    found = best(env, CLOBBERED)
    assert found.conda is not None
    assert found.conda.reinstall == ("pytorch",)
    assert found.conda.remove == ()
    assert found.purge.names == ("torch", "nvidia-cublas-cu12")
    assert found.request is None
    assert found.cuda_build is True


def test_the_wheels_stay_where_they_replaced_the_family_and_condas_packages_go() -> None:
    wheels = (TORCH, CUBLAS, pip("torchvision", "0.20.1", "torch==2.5.1"), pip("accelerate", "1.0", "torch"))
    found = best(covered(prefix([*base(), *old_family()]), *wheels), CLOBBERED)
    assert found.conda is not None
    assert found.request is not None
    assert {"pytorch", "torchvision", "pytorch-cuda", "pytorch-mutex"} <= set(found.conda.remove)
    assert found.conda.reinstall == ()
    assert found.request.pins == ("torch==2.5.1", "torchvision==0.20.1")
    assert set(found.purge.names) >= {"torch", "torchvision"}


def test_each_way_over_a_clobbered_torch_is_there_and_leaves_one_owner() -> None:
    found = ways(covered(prefix([*base(), *old_family()]), TORCH, mixed=True), CLOBBERED)
    assert {item.title.endswith("as wheels") for item in found} == {True, False}
    for item in found:
        assert item.conda is not None
        removed = "pytorch" in item.conda.remove
        pinned = item.request is not None and any(pin.startswith("torch==") for pin in item.request.pins)
        assert removed == pinned
        assert "torch" in item.purge.names


def test_a_wheel_of_another_name_over_a_conda_package_goes_and_condas_files_come_back() -> None:
    from tests.planner.conda_support import over

    opencv = package("py-opencv", "4.10.0", "py311_0", "numpy", brings=("opencv-python",))
    headless = pip("opencv-python-headless", "4.9.0.80")
    packages = [*base(), opencv]
    distributions = [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), headless]
    env = prefix(packages, distributions, overlaid=(over("py-opencv", headless, same=False, left=3),))
    found = best(env, playbook(ReinstallStep(packages=("py-opencv",)), checks=("facts",)))
    assert found.conda is not None
    assert found.conda.reinstall == ("py-opencv",)
    assert found.purge.names == ("opencv-python-headless",)


def test_a_damaged_package_is_put_in_place_again_and_nothing_else_changes() -> None:
    found = best(prefix([*base(), *old_family()]), playbook(ReinstallStep(packages=("mkl",)), checks=("facts",)))
    assert found.conda is not None
    assert (found.conda.reinstall, found.conda.specs, found.conda.remove) == (("mkl",), (), ())


def test_what_is_missing_comes_and_what_is_damaged_is_put_in_place_again() -> None:
    packages = [item for item in [*base(), *old_family()] if item.name != "cuda-cudart"]
    env = prefix(packages)
    lacking = derive(facts(env))["conda.lacking"]
    assert lacking == ("cuda-cudart >=12.1",)
    loaded = playbook(ReinstallStep(packages=("mkl", "{conda.lacking}")), checks=("facts",))
    found = planner.proposals(facts(env), finding(), loaded, values=derive(facts(env))).best()
    assert found.conda is not None
    assert (found.conda.reinstall, found.conda.specs) == (("mkl",), ("cuda-cudart >=12.1",))


@pytest.mark.parametrize(
    ("requirement", "specs", "reinstall"),
    [
        ("numpy<2", ("numpy <2",), ()),
        ("numpy==2.1.3", (), ("numpy",)),
        ("numpy!=2.0.0,<3,>=1.22", ("numpy !=2.0.0,>=1.22,<3",), ()),
        ("mkl<2024.1", ("mkl <2024.1",), ()),
        ("numpy==1.26.*", ("numpy 1.26.*",), ()),
    ],
)
def test_a_requirement_on_what_conda_owns_becomes_a_match_spec(
    requirement: str, specs: tuple[str, ...], reinstall: tuple[str, ...]
) -> None:
    found = best(prefix([*base()]), playbook(InstallStep(requirements=(requirement,)), checks=("facts",)))
    assert found.conda is not None
    assert (found.conda.specs, found.conda.reinstall) == (specs, reinstall)
    assert found.request is None


def test_what_pip_owns_stays_a_wheel_and_both_sorts_may_be_in_one_plan() -> None:
    packages = base()
    env = prefix(
        packages,
        [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), pip("protobuf", "3.20.0")],
    )
    loaded = playbook(InstallStep(requirements=("protobuf>=4", "numpy<2")), checks=("facts",))
    found = best(env, loaded)
    assert found.request is not None
    assert found.conda is not None
    assert found.request.pins == ("protobuf>=4",)
    assert found.conda.specs == ("numpy <2",)


def test_a_new_distribution_that_condas_packages_alone_ask_for_is_condas() -> None:
    packages = [item for item in base() if item.name != "sympy"]
    torch = dist("torch", "2.3.1", "sympy", owner="conda")
    env = prefix([*packages, *old_family()], [torch])
    found = best(env, playbook(InstallStep(requirements=("sympy==1.13.1",)), checks=("facts",)))
    assert found.conda is not None
    assert found.conda.specs == ("sympy ==1.13.1",)
    other = best(env, playbook(InstallStep(requirements=("ninja",)), checks=("facts",)))
    assert other.conda is None
    assert other.request is not None
    assert other.request.pins == ("ninja",)


def test_condas_package_makes_way_for_a_wheel_only_where_nothing_of_condas_needs_it() -> None:
    held = answer(facts(prefix(base())), playbook(InstallStep(requirements=("numpy<2",)), checks=("facts",)))
    assert not any(item.request for item in held.proposals)
    assert any("conda's scipy 1.14.0 depends on numpy" in item.why_not for item in held.rejected)
    alone = [item for item in base() if item.name != "scipy"]
    found = ways(prefix(alone), playbook(InstallStep(requirements=("numpy<2",)), checks=("facts",)))
    assert found[-1].conda is not None
    assert found[-1].request is not None
    assert (found[-1].conda.remove, found[-1].request.pins) == (("numpy",), ("numpy<2",))


def test_one_that_goes_for_good_goes_by_its_owner() -> None:
    decord = package("decord", "0.6.0", "py311_0", brings=("decord",))
    loaded = playbook(ReplaceStep(distribution="decord", by="av"), checks=("facts",))
    found = best(prefix([*base(), decord]), loaded)
    assert found.conda is not None
    assert found.request is not None
    assert (found.conda.remove, found.request.pins, found.purge.names) == (("decord",), ("av",), ())
    env = prefix(
        base(), [*(dist(n, p.version, owner="conda") for p in base() for n in p.distributions), pip("decord", "0.6.0")]
    )
    wheel = best(env, loaded)
    assert wheel.conda is None
    assert wheel.purge.names == ("decord",)


def test_a_pin_is_kept_where_its_owner_looks() -> None:
    loaded = playbook(
        InstallStep(requirements=("mkl<2024.1",)), PinStep(constraints=("mkl<2024.1", "pandas<3")), checks=("facts",)
    )
    found = best(prefix(base()), loaded)
    assert found.after == (Pin(constraints=("pandas<3",), conda=("mkl <2024.1",)),)
    assert found.after[0].describe() == "pin pandas<3, mkl <2024.1 (conda)"


def test_what_pip_compiled_against_condas_torch_holds_the_family_unless_it_is_built_again() -> None:
    packages = [*base(), *old_family()]
    extension = pip("flash-attn", "2.6.3", "torch")
    env = prefix(packages, [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), extension])
    found = answer(facts(env, driver="570.124.06", gpus=("12.0",)), CUDA)
    assert found.proposals == ()
    assert any("flash-attn 2.6.3 is bound to the installed torch" in item.why_not for item in found.rejected)


def test_a_torch_of_pip_in_a_conda_prefix_is_repaired_as_in_any_other() -> None:
    env = prefix(base(), [pip("torch", "2.5.1"), pip("torchvision", "0.18.1", "torch==2.3.1")], variant="cu124")
    found = best(env)
    assert found.conda is None
    assert found.request is not None
    assert found.request.pins == ("torchvision==0.20.1",)


def test_a_wheel_of_a_companion_beside_condas_torch_becomes_condas() -> None:
    family = [item for item in old_family() if item.name != "torchvision"]
    packages = [*base(), *family]
    wheel = pip("torchvision", "0.20.1", "torch==2.5.1")
    env = prefix(packages, [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), wheel])
    found = best(env)
    assert found.conda is not None
    assert found.conda.specs == ("torchvision=0.18.1",)
    assert found.purge.names == ("torchvision",)
    assert found.request is None


def test_the_users_offline_is_condas_too() -> None:
    env = prefix([*base(), *old_family(torchvision="0.19.1")])
    found = planner.proposals(facts(env), finding(), playbook(), options=planner.Options(offline=True)).best()
    assert found.conda is not None
    assert found.conda.offline


@pytest.mark.parametrize("owner", ["other", "conda"])
def test_two_metadata_of_condas_own_package_end_as_one(owner: str) -> None:
    packages: list[CondaPackage] = [*base(), *old_family()]
    ghost = dist("numpy", "1.26.4", owner=owner, has_record=False)
    env = prefix(packages, [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), ghost])
    found = best(
        env, playbook(PurgeStep(distributions=("numpy",)), ReinstallStep(packages=("numpy",)), checks=("facts",))
    )
    assert found.conda is not None
    assert found.conda.reinstall == ("numpy",)
    assert [item.version for item in found.purge.by_path] == ["1.26.4"]


@pytest.mark.parametrize(
    ("needs", "installed", "asked"),
    [
        ("libsolve >=2.0,<3.0a0", "1.4", ("libsolve >=2.0,<3.0a0",)),
        ("libsolve >=2.0,<3.0a0", "2.1", ()),
        ("libsolve", "1.4", ()),
        ("libsolve >=2.0", "2.0b", ()),
    ],
)
def test_conda_brings_the_library_that_the_record_of_a_broken_module_asks_for(
    needs: str, installed: str, asked: tuple[str, ...]
) -> None:
    grid = msgspec.structs.replace(package("grid", "1.0"), depends=(needs,))
    idle = msgspec.structs.replace(package("idle", "1.0"), depends=("libsolve >=9",))
    env = prefix([*base(), grid, idle, package("libsolve", installed)])
    lacks = Library(path="grid.so", distribution=None, unresolved=(UnresolvedSymbol(symbol="solve_threads"),))
    assert derive(facts(msgspec.structs.replace(env, extensions=(lacks,))))["conda.unmet"] == ()
    env = msgspec.structs.replace(env, extensions=(msgspec.structs.replace(lacks, package="grid"),))
    values = derive(facts(env))
    assert values["conda.unmet"] == asked
    if asked:
        playbooks = load_all()
        read = read_text(b"ImportError: /env/grid.so: undefined symbol: solve_threads".splitlines(), playbooks)
        best_of = diagnose(read, facts(env), playbooks, prefix=str(ROOT), log="log", here=True).findings[0]
        assert (best_of.playbook, best_of.confirmed) == ("conda-unmet", True)
        loaded = next(item for item in playbooks if item.playbook.id == "conda-unmet")
        found = planner.proposals(facts(env), best_of, loaded, values=values).best()
        assert found.conda is not None
        assert (found.conda.reinstall, found.conda.specs, found.conda.remove) == ((), asked, ())
