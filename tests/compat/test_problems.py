"""What is incoherent in an installed family, and what is not."""

from __future__ import annotations

import pytest

from envmedic.compat.torch_family.family import problems
from envmedic.model.facts import (
    CompanionBuild,
    Distribution,
    Environment,
    Gpu,
    Host,
    Interpreter,
    Origin,
    TorchBuild,
)

ARCHITECTURES = ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")


def distribution(name: str, version: str, *requires: str) -> Distribution:
    return Distribution(
        name=name,
        version=version,
        metadata_path=f"lib/python3.11/site-packages/{name}-{version}.dist-info",
        site="lib/python3.11/site-packages",
        owner="uv",
        origin=Origin(kind="index"),
        requires=requires,
        import_names=(name,),
    )


def environment(
    *distributions: Distribution, cuda: str | None = "12.4", companions: tuple[CompanionBuild, ...] = ()
) -> Environment:
    torch = next((item for item in distributions if item.name == "torch"), None)
    variant = "cu" + cuda.replace(".", "") if cuda else "cpu"
    build = TorchBuild(version=torch.version, cuda=cuda, variant=variant, arch_list=ARCHITECTURES) if torch else None
    return Environment(
        prefix="/e",
        real_prefix="/e",
        kind="venv",
        interpreter=Interpreter(path="/e/bin/python", starts=True, version="3.11.9"),
        distributions=distributions,
        torch=build,
        companions=companions,
    )


def host(driver: str | None = "580.95.05", *capabilities: str | None) -> Host:
    gpus = tuple(Gpu(index=i, name="GPU", compute_capability=item) for i, item in enumerate(capabilities))
    return Host(driver_version=driver, gpus=gpus)


def rules(env: Environment, on: Host) -> list[tuple[str, str]]:
    found = problems(env, on)
    assert all(item.summary and item.source for item in found)
    return [(item.rule, item.member) for item in found]


TORCH = distribution("torch", "2.5.1", 'triton==3.1.0; platform_system == "Linux" and platform_machine == "x86_64"')


def test_a_correct_environment_has_no_problem() -> None:
    env = environment(
        TORCH,
        distribution("torchvision", "0.20.1", "torch==2.5.1", "numpy"),
        distribution("torchaudio", "2.5.1", "torch==2.5.1"),
        distribution("triton", "3.1.0"),
        companions=(
            CompanionBuild(name="torchvision", version="0.20.1", cuda="12.4", variant="cu124", has_gpu_code=True),
        ),
    )
    assert rules(env, host("550.54.14", "8.6", "9.0")) == []
    assert rules(env, host(None)) == []


def test_an_environment_without_the_family_has_no_problem() -> None:
    assert rules(environment(distribution("numpy", "2.2.0")), host()) == []


@pytest.mark.parametrize(
    ("torchvision", "requires"),
    [("0.18.1", "torch==2.3.1"), ("0.20.0", "torch==2.5.0"), ("0.25.0", None), ("0.20.1", "torch==9.9")],
)
def test_a_torchvision_for_another_torch(torchvision: str, requires: str | None) -> None:
    env = environment(TORCH, distribution("torchvision", torchvision, *([requires] if requires else [])))
    assert rules(env, host()) == [("torchvision-pair", "torchvision")]


def test_the_requirement_in_the_metadata_decides_for_a_torch_that_is_not_in_the_data() -> None:
    torch = distribution("torch", "2.16.0")
    assert rules(environment(torch, distribution("torchvision", "0.29.2", "torch>=2.14.0"), cuda="13.2"), host()) == []
    assert rules(environment(torch, distribution("torchvision", "0.29.0", "torch==2.14.0"), cuda="13.2"), host()) == [
        ("torchvision-pair", "torchvision")
    ]


def test_a_torchaudio_that_declares_nothing_is_judged_by_the_data() -> None:
    env = environment(TORCH, distribution("torchaudio", "2.11.0"))
    assert rules(env, host()) == [("torchaudio-pair", "torchaudio")]


@pytest.mark.parametrize(
    ("build", "label"),
    [
        (CompanionBuild(name="torchvision", version="0.20.1", variant="cpu"), ""),
        (CompanionBuild(name="torchvision", version="0.20.1", has_gpu_code=False), ""),
        (CompanionBuild(name="torchvision", version="0.20.1"), "+cpu"),
        (CompanionBuild(name="torchvision", version="0.20.1", cuda="11.8"), ""),
    ],
)
def test_a_companion_of_another_kind_of_build(build: CompanionBuild, label: str) -> None:
    env = environment(TORCH, distribution("torchvision", "0.20.1" + label, "torch==2.5.1"), companions=(build,))
    assert rules(env, host()) == [("companion-variant", "torchvision")]


def test_a_cuda_companion_beside_a_cpu_torch() -> None:
    build = CompanionBuild(name="torchvision", version="0.20.1", cuda="12.4")
    env = environment(
        distribution("torch", "2.5.1+cpu"), distribution("torchvision", "0.20.1"), cuda=None, companions=(build,)
    )
    assert rules(env, host()) == [("companion-variant", "torchvision")]


@pytest.mark.parametrize(
    ("version", "cuda", "wrong"),
    [
        ("2.11.0", "13.0", True),
        ("2.11.0+cu130", "13.0", True),
        ("2.11.0", "13.2", False),
        ("2.11.0", "13", False),
        ("2.11.0", "12.8", True),
        ("2.11.1", "13.0", False),
        ("2.11.1+cu130", "13.0", False),
        ("2.11.1", "12.8", True),
    ],
)
def test_torchaudio_compared_the_minor_version_of_cuda_too(version: str, cuda: str, *, wrong: bool) -> None:
    torch, audio = distribution("torch", "2.15.0"), distribution("torchaudio", version)
    build = CompanionBuild(name="torchaudio", version=version.partition("+")[0], cuda=cuda)
    env = environment(torch, audio, cuda="13.2", companions=(build,))
    assert rules(env, host(None, None)) == ([("companion-variant", "torchaudio")] if wrong else [])


def test_another_minor_version_of_cuda_is_no_problem() -> None:
    build = CompanionBuild(name="torchvision", version="0.20.1", cuda="12.1", variant="cu121")
    env = environment(TORCH, distribution("torchvision", "0.20.1", "torch==2.5.1"), companions=(build,))
    assert rules(env, host()) == []


def test_an_unobserved_build_is_not_held_against_it() -> None:
    build = CompanionBuild(name="torchaudio", version="2.5.1", has_gpu_code=False)
    env = environment(TORCH, distribution("torchaudio", "2.5.1", "torch==2.5.1"), companions=(build,))
    assert rules(env, host(None, None)) == []


def test_a_triton_that_torch_does_not_accept_unless_its_marker_excludes_it() -> None:
    env = environment(TORCH, distribution("triton", "3.2.0"))
    assert rules(env, host()) == [("triton-requirement", "triton")]
    assert rules(env, Host(machine="aarch64")) == []


def test_a_driver_too_old_and_a_gpu_without_code() -> None:
    env = environment(TORCH, distribution("torchvision", "0.20.1", "torch==2.5.1"))
    assert rules(env, host("470.82.01", "8.6")) == [("driver-minimum", "torch")]
    assert rules(env, host("580.95.05", "8.6", "12.0")) == [("gpu-coverage", "torch"), ("nvrtc-coverage", "torch")]


def test_companions_without_torch() -> None:
    assert rules(environment(distribution("torchvision", "0.20.1")), host()) == [("torch-missing", "torchvision")]


@pytest.mark.parametrize("torch", ["2.5.1a0+gitabc", "not-a-version"])
def test_an_unreadable_or_custom_torch_version_is_no_crash(torch: str) -> None:
    env = environment(distribution("torch", torch), distribution("torchvision", "0.20.1"))
    assert rules(env, host("580", "8.6")) == []
