"""Plans of conda prefixes: steps in order, one table for both sides, refused when metadata shows incoherence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from envmedic import planner
from envmedic.errors import NoSolution
from envmedic.model.base import from_json, to_json
from envmedic.model.conda import CondaArtifact, CondaChange, CondaReference, CondaRequest
from envmedic.model.events import Emit
from envmedic.model.facts import Environment, Host
from envmedic.model.plan import Artifact, Install, Plan, Purge
from envmedic.model.playbook import InstallStep, LoadedPlaybook, ReinstallStep, TorchFamilyStep
from envmedic.model.ports import Resolution, Runner
from tests.planner.conda_support import artifact, base, covered, forge_family, old_family, package, pip, prefix
from tests.planner.support import NOW, Spelling, dist, facts, finding, playbook, wheel

CUDA = playbook(TorchFamilyStep(policy=("keep-release", "newest")))


class Conda:
    """Conda's side that only spells its command: planning must need nothing else."""

    def resolve(self, request: CondaRequest, environment: Environment, host: Host, emit: Emit) -> CondaChange:
        raise AssertionError(f"planning solves nothing: {request} {environment} {host} {emit}")

    def fetch(self, change: CondaChange, *, offline: bool, emit: Emit) -> None:
        raise AssertionError(f"planning fetches nothing: {change} {offline} {emit}")

    def is_fetched(self, artifact: CondaArtifact) -> bool:
        raise AssertionError(artifact)

    def command(self, change: CondaChange, prefix: str) -> tuple[str, ...]:
        return ("conda", "install", "-p", prefix) if change.executor == "conda" else ()

    def carry_out(self, change: CondaChange, runner: Runner, emit: Emit, *, timeout_s: float | None = None) -> str:
        raise AssertionError(f"planning carries nothing out: {change} {runner} {emit} {timeout_s}")


def gone(env: Environment, *names: str) -> tuple[CondaReference, ...]:
    """Installed packages as a change names them."""
    assert env.conda is not None
    return tuple(
        CondaReference(
            name=it.name, version=it.version, build=it.build, record=it.record, distributions=it.distributions
        )
        for it in env.conda.packages
        if it.name in names
    )


def made(
    env: Environment,
    change: CondaChange | None,
    wheels: Sequence[Artifact] = (),
    loaded: LoadedPlaybook | None = None,
    *,
    by_wheels: bool = False,
    **more: object,
) -> Plan:
    observed = facts(env, **{key: more.pop(key) for key in ("driver", "gpus") if key in more})  # type: ignore[arg-type]
    considered = planner.proposals(observed, finding(), loaded or playbook())
    chosen = next(it for it in considered.proposals if it.title.endswith("as wheels") or not by_wheels)
    resolution = Resolution(artifacts=tuple(wheels), conda=change)
    resolved = planner.ResolvedProposal(chosen, resolution, considered=considered, **more)  # type: ignore[arg-type]
    installers = planner.PlanInstallers(Spelling(), Conda())
    return planner.build(observed, finding(), loaded or playbook(), resolved, installers, now=NOW)


def rows(plan: Plan) -> list[tuple[str, str, str | None, str | None, str]]:
    return [(item.kind, item.name, item.before, item.after, item.by) for item in plan.changes]


def test_a_change_of_conda_packages_is_the_only_step() -> None:
    env = prefix([*base(), *old_family(torchvision="0.19.1")])
    change = CondaChange(
        remove=gone(env, "torchvision"),
        install=(artifact("torchvision", "0.18.1", "py311_cu121", brings=("torchvision",)),),
    )
    plan = made(env, change)
    assert plan.steps == (change,)
    assert plan.commands == ()
    assert rows(plan) == [("change", "torchvision", "0.19.1", "0.18.1", "conda")]
    row = plan.changes[0]
    assert (row.before_build, row.after_build, row.distributions) == ("py311_cu121", "py311_cu121", ("torchvision",))
    assert row.channel.endswith("/pytorch")
    assert plan.stays == ("torch 2.3.1",)
    assert plan.stays_count == 4
    assert (plan.download_bytes, plan.disk_bytes) == (2000, 8000)
    assert from_json(to_json(plan), Plan, source="plan") == plan


def test_what_is_on_this_machine_is_not_downloaded() -> None:
    env = prefix([*base(), *old_family(torchvision="0.19.1")])
    new = artifact("torchvision", "0.18.1", brings=("torchvision",))
    plan = made(env, CondaChange(remove=gone(env, "torchvision"), install=(new,)), fetched={new.url})
    assert plan.download_bytes == 0


def test_the_users_conda_is_told_as_it_runs() -> None:
    env = prefix([*base(), *old_family(torchvision="0.19.1")])
    new = artifact("torchvision", "0.18.1", brings=("torchvision",))
    plan = made(env, CondaChange(remove=gone(env, "torchvision"), install=(new,), executor="conda"))
    assert plan.commands == (("conda", "install", "-p", "/home/me/env"),)


def test_a_family_that_moves_is_one_line_each_and_its_packages_go_between_purge_and_install() -> None:
    env = covered(
        prefix([*base(), *old_family()]), pip("torch", "2.5.1", "sympy"), pip("torchvision", "0.20.1", "torch==2.5.1")
    )
    loaded = playbook(ReinstallStep(packages=("pytorch",)), checks=("facts",))
    names = ("pytorch", "torchvision", "pytorch-cuda", "pytorch-mutex", "cuda-cudart", "libcublas")
    change = CondaChange(remove=gone(env, *names))
    plan = made(
        env,
        change,
        (wheel("torch", "2.5.1", "sympy"), wheel("torchvision", "0.20.1", "torch==2.5.1")),
        loaded,
        by_wheels=True,
    )
    assert [type(step) for step in plan.steps] == [Purge, CondaChange, Install]
    assert rows(plan) == [
        ("remove", "cuda-cudart", "12.1.105", None, "conda"),
        ("remove", "libcublas", "12.1.0.26", None, "conda"),
        ("remove", "pytorch-cuda", "12.1", None, "conda"),
        ("remove", "pytorch-mutex", "1.0", None, "conda"),
        ("change", "torch", "2.5.1", "2.5.1", "wheel"),
        ("change", "torchvision", "0.20.1", "0.20.1", "wheel"),
    ]
    assert [item.owner for item in plan.changes[-2:]] == ["pip", "pip"]
    assert plan.gpu_checks


def test_a_wheel_in_the_place_of_a_conda_package_names_it() -> None:
    env = prefix([*base(), *old_family()])
    names = ("pytorch", "torchvision", "pytorch-cuda", "pytorch-mutex", "cuda-cudart", "libcublas")
    new = (wheel("torch", "2.9.1", "sympy"), wheel("torchvision", "0.24.1", "torch==2.9.1"))
    plan = made(env, CondaChange(remove=gone(env, *names)), new, CUDA, driver="570.124.06", gpus=("12.0",))
    torch = next(item for item in plan.changes if item.name == "torch")
    assert (torch.before, torch.after, torch.package, torch.owner) == ("2.3.1", "2.9.1", "pytorch", "conda")
    assert not any(item.name == "pytorch" for item in plan.changes)


def test_condas_torch_under_a_wheel_is_put_in_place_again_and_the_wheel_goes() -> None:
    env = covered(prefix([*base(), *old_family()]), pip("torch", "2.5.1"), mixed=True)
    loaded = playbook(ReinstallStep(packages=("pytorch",)), checks=("facts",))
    again = artifact("pytorch", "2.3.1", "py3.11_cuda12.1_cudnn8.9.2_0", brings=("torch",))
    plan = made(env, CondaChange(remove=gone(env, "pytorch"), install=(again,)), loaded=loaded)
    assert rows(plan) == [("change", "pytorch", "2.3.1", "2.3.1", "conda"), ("remove", "torch", "2.5.1", None, "wheel")]
    assert plan.steps[1].describe() == "conda packages, by py-rattler: put in place again pytorch 2.3.1"
    assert plan.gpu_checks


def test_packages_that_come_go_and_change_are_told_apart() -> None:
    env = prefix([*base(), *old_family(cuda=None)], variant="cpu")
    change = CondaChange(
        remove=gone(env, "pytorch", "cpuonly"),
        install=(
            artifact("pytorch", "2.3.1", "py3.11_cuda12.1_cudnn8.9.2_0", brings=("torch",)),
            artifact("pytorch-cuda", "12.1", "h7e8668a_5"),
        ),
    )
    plan = made(env, change, loaded=CUDA)
    assert rows(plan) == [
        ("remove", "cpuonly", "2.0", None, "conda"),
        ("change", "pytorch", "2.3.1", "2.3.1", "conda"),
        ("install", "pytorch-cuda", None, "12.1", "conda"),
    ]
    assert plan.steps[0].describe() == (
        "conda packages, by py-rattler: remove cpuonly 2.0; change pytorch 2.3.1 py3.11_cpu_0 -> "
        "2.3.1 py3.11_cuda12.1_cudnn8.9.2_0; install pytorch-cuda 12.1 h7e8668a_5"
    )


def test_a_solution_that_breaks_what_pip_installed_is_refused() -> None:
    packages = base()
    kept = pip("numba", "0.60", "numpy<2.2,>=2")
    env = prefix(packages, [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), kept])
    change = CondaChange(
        remove=gone(env, "numpy"), install=(artifact("numpy", "1.26.4", channel="main", brings=("numpy",)),)
    )
    with pytest.raises(NoSolution, match="would leave requirements unmet") as caught:
        made(env, change, loaded=playbook(InstallStep(requirements=("mkl<2024.1",)), checks=("facts",)))
    assert caught.value.cause == "numba 0.60 requires numpy<2.2,>=2, numpy 1.26.4 is installed"


def test_a_distribution_that_goes_with_its_conda_package_is_missed_by_what_requires_it() -> None:
    packages = base()
    kept = pip("numba", "0.60", "numpy")
    env = prefix(packages, [*(dist(n, p.version, owner="conda") for p in packages for n in p.distributions), kept])
    with pytest.raises(NoSolution, match="would leave requirements unmet"):
        made(
            env,
            CondaChange(remove=gone(env, "numpy")),
            loaded=playbook(InstallStep(requirements=("mkl<2024.1",)), checks=("facts",)),
        )


def test_wheels_may_need_what_conda_brings_in_the_same_plan() -> None:
    env = prefix([*base(), *old_family()])
    change = CondaChange(
        remove=gone(
            env, "pytorch", "torchvision", "pytorch-cuda", "pytorch-mutex", "cuda-cudart", "libcublas", "sympy"
        ),
        install=(artifact("sympy", "1.13.1", channel="main", brings=("sympy",)),),
    )
    new = (wheel("torch", "2.9.1", "sympy==1.13.1"), wheel("torchvision", "0.24.1", "torch==2.9.1"))
    plan = made(env, change, new, CUDA, driver="570.124.06", gpus=("12.0",))
    assert ("change", "sympy", "1.13.3", "1.13.1", "conda") in rows(plan)


def test_damaged_records_are_no_ground_to_plan_on() -> None:
    env = prefix([*base(), *old_family(torchvision="0.19.1")], damaged=("conda-meta/numpy-2.1.3-0.json",))
    with pytest.raises(NoSolution, match="records of this environment are damaged") as caught:
        planner.proposals(facts(env), finding(), playbook())
    assert caught.value.hint


def proposal(env: Environment) -> planner.Proposal:
    known = facts(env, driver="570.124.06", gpus=("12.0",))
    return planner.proposals(known, finding(), CUDA).best()


def test_wheels_take_what_conda_has_where_it_fits() -> None:
    env = prefix([*base(), *old_family()])
    new = (
        wheel("torch", "2.9.1", "sympy>=1.13"),
        wheel("torchvision", "0.24.1"),
        wheel("sympy", "1.14.0", "mpmath"),
        wheel("mpmath", "1.3.0"),
    )
    wheels, request = planner.divided(proposal(env), new, env, {})
    assert [item.name for item in wheels] == ["torch", "torchvision"]
    assert request is not None
    assert request.specs == ()


def test_what_wheels_need_in_another_version_is_asked_of_conda() -> None:
    env = prefix([*base(), *old_family()])
    new = (
        wheel("torch", "2.9.1", "sympy==1.13.1"),
        wheel("torchvision", "0.24.1", "sympy<2"),
        wheel("sympy", "1.13.1"),
    )
    wheels, request = planner.divided(proposal(env), new, env, {})
    assert [item.name for item in wheels] == ["torch", "torchvision"]
    assert request is not None
    assert request.specs == ("sympy ==1.13.1,<2",)
    assert "sympy" in request.replaceable
    assert "pytorch" in request.remove


def test_conda_packages_in_other_versions_are_thought_of_second() -> None:
    env = prefix([*base(), *old_family()])
    found = proposal(env)
    assert found.request is not None
    assert "sympy" not in found.request.replaceable
    loosened = planner.loosened(found, env)
    assert loosened is not None
    assert {"sympy", "numpy", "scipy"} <= set(loosened.replaceable)
    assert "torch" not in loosened.replaceable


def test_metapackages_and_libraries_of_conda_forge_go_with_it() -> None:
    packages = [*base("conda-forge"), *forge_family(), package("cudnn", "9.1", "h0"), package("nccl", "2.2", "h0")]
    env = prefix(packages, variant="cu126")
    found = planner.proposals(facts(env, driver="570.124.06", gpus=("12.0",)), finding(), CUDA)
    wheels = next(item for item in found.proposals if item.title.endswith("as wheels"))
    assert wheels.conda is not None
    assert {"pytorch", "libtorch", "pytorch-gpu", "torchvision", "cudnn", "nccl"} == set(wheels.conda.remove)
