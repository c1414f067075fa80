"""Flat facts on NVIDIA's wheels and on the host's GPUs, derived from made observations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import (
    CudaLibrary,
    Distribution,
    Environment,
    Facts,
    FileConflict,
    Gpu,
    Host,
    Interpreter,
    Library,
    Origin,
    TorchBuild,
    Variable,
)

TORCH = (
    'nvidia-nccl-cu12==2.21.5; platform_system == "Linux" and platform_machine == "x86_64"',
    'nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"',
    'nvidia-cublas-cu12==12.4.5.8; platform_system == "Windows"',
    'triton==3.1.0; platform_system == "Linux" and python_version < "3.13"',
    "typing-extensions>=4.8.0",
    'opt-einsum>=3.3; extra == "opt-einsum"',
)


def distribution(name: str, version: str, *, requires: tuple[str, ...] = ()) -> Distribution:
    return Distribution(
        name=name, version=version, metadata_path=f"{name}.dist-info", site="site", owner="uv",
        origin=Origin(kind="index"), requires=requires,
    )  # fmt: skip


def environment(*installed: Distribution, requires: tuple[str, ...] = TORCH) -> Environment:
    torch = distribution("torch", "2.5.1", requires=requires)
    return Environment(
        prefix="/env", real_prefix="/env", kind="venv",
        interpreter=Interpreter(path="/env/bin/python", starts=True, version="3.11.7"),
        distributions=(torch, *installed), files=(),
        torch=TorchBuild(version="2.5.1", cuda="12.4", variant="cu124"),
        libraries=(Library(path="site/torch/_C.so", distribution="torch"),),
    )  # fmt: skip


RIGHT = (
    distribution("nvidia-nccl-cu12", "2.21.5"), distribution("nvidia-cudnn-cu12", "9.1.0.70"),
    distribution("triton", "3.1.0"),
)  # fmt: skip


def of(found: Environment, host: Host | None = None) -> Derived:
    return derive(Facts(host=host or Host(), environment=found))


def test_what_torch_requires_is_there() -> None:
    derived = of(environment(*RIGHT))
    names = ("torch.unmet", "nvidia.lacking", "nvidia.conflict", "cudnn.conflict")
    assert [derived[name] for name in names] == [()] * len(names)


def test_markers_decide_what_is_required() -> None:
    derived = of(environment(RIGHT[0]))
    assert derived["nvidia.missing"] == ("nvidia-cudnn-cu12==9.1.0.70",)
    assert derived["torch.unmet"] == ("nvidia-cudnn-cu12==9.1.0.70", "triton==3.1.0")
    on_arm = of(environment(RIGHT[1], RIGHT[2]), Host(machine="aarch64"))
    assert on_arm["nvidia.lacking"] == ()


def test_another_version_is_a_conflict() -> None:
    derived = of(environment(distribution("nvidia-nccl-cu12", "2.19.3"), *RIGHT[1:]))
    assert derived["nvidia.conflict"] == ("nvidia-nccl-cu12 2.19.3 (torch requires nvidia-nccl-cu12==2.21.5)",)


def test_a_torch_without_any_wheel_is_served_from_elsewhere_as_long_as_nothing_is_missing() -> None:
    found = environment(RIGHT[2])
    assert of(found)["nvidia.lacking"] == ()
    missing = (CudaLibrary(soname="libnccl.so.2", path=None, needed_by="site/torch/lib/libtorch_cuda.so"),)
    lacking = of(msgspec.structs.replace(found, cuda_libraries=missing))
    assert lacking["torch.missing-libraries"] == ("libnccl.so.2",)


def test_the_extras_of_the_toolkit_are_requirements_of_torch() -> None:
    toolkit = distribution(
        "cuda-toolkit", "13.0.2", requires=('nvidia-cublas==13.1.0.3.*; extra == "cublas"', 'nvidia-npp==13; extra == "npp"')
    )  # fmt: skip
    requires = ('cuda-toolkit[cublas]==13.0.2; platform_system == "Linux"',)
    derived = of(environment(toolkit, distribution("nvidia-cublas", "13.0.0.1"), requires=requires))
    assert derived["nvidia.wrong"] == ("nvidia-cublas 13.0.0.1 (torch requires nvidia-cublas==13.1.0.3.*)",)


@pytest.mark.parametrize(
    ("content_of", "needed", "purged"),
    [
        ((0, 1), (), ("nvidia-nccl-cu12", "nvidia-nccl-cu11")),
        ((0, 1), ("nvidia-nccl-cu11",), ("nvidia-nccl-cu12",)),
        ((1, 0), (), ()),
    ],
)
def test_what_overwrote_a_library_is_told_whoever_needs_it(
    content_of: tuple[int, int], needed: tuple[str, ...], purged: tuple[str, ...]
) -> None:
    other = (distribution("nvidia-nccl-cu11", "2.14.3"), distribution("paddle", "2.6", requires=needed))
    conflict = FileConflict(
        distributions=("nvidia-nccl-cu12", "nvidia-nccl-cu11"), paths=("site/nvidia/nccl/lib/libnccl.so.2",), count=1,
        content_of=content_of,
    )  # fmt: skip
    derived = of(msgspec.structs.replace(environment(*RIGHT, *other), conflicts=(conflict,)))
    assert bool(derived["nvidia.conflict"]) is bool(purged)
    assert derived["nvidia.majors"] == ("nvidia-nccl-cu11 2.14.3",)


def test_parts_of_cudnn_are_told_from_other_hidden_libraries() -> None:
    hidden = CudaLibrary(
        soname="libnvJitLink.so.12", path="/old/lib/libnvJitLink.so.12", instead_of="site/nvidia/nvjitlink/lib/x"
    )
    host = Host(variables=(Variable(name="LD_LIBRARY_PATH", value="/a:/old/lib/:/b"),))
    derived = of(msgspec.structs.replace(environment(*RIGHT), cuda_libraries=(hidden,)), host)
    assert derived["cudnn.shadowed"] == ()


def test_conda_serves_its_own_torch() -> None:
    found = environment()
    owned = msgspec.structs.replace(found.distributions[0], owner="conda")
    derived = of(msgspec.structs.replace(found, distributions=(owned,)))
    assert derived["nvidia.lacking"] == ()
    unseen = CudaLibrary(soname="libcusparse.so.12", path=None, needed_by="libtorch_cuda.so")
    lacking = of(msgspec.structs.replace(found, distributions=(owned,), cuda_libraries=(unseen,)))
    assert lacking["nvidia.lacking"] == ("libcusparse.so.12, which libtorch_cuda.so needs",)


@pytest.mark.parametrize(
    ("driver", "libraries", "sufficient"),
    [("550.54.15", None, True), ("470.82.01", None, False), ("470.82.01", "550.54.15", True), (None, None, None)],
)
def test_the_driver_or_compatibility_libraries_must_be_new_enough(
    driver: str | None,
    libraries: str | None,
    sufficient: bool | None,  # noqa: FBT001  # a parameter
) -> None:
    derived = of(environment(*RIGHT), Host(driver_version=driver, driver_libraries=libraries))
    assert derived.get("driver.sufficient-for-torch") is sufficient
    assert derived["torch.driver-needed"] == "525.60.13"


def host_facts(**more: Any) -> Derived:
    derived = derive(Facts(host=Host(**more)))
    return {name: value for name, value in derived.items() if name.startswith(("host.gpu", "host.container-"))}


def test_a_host_without_gpus_has_none_that_is_out_of_reach() -> None:
    assert host_facts(pci_gpus=0) == {}
    assert host_facts() == {}


def test_gpus_out_of_reach_are_told_from_those_that_a_container_was_not_given() -> None:
    assert host_facts(pci_gpus=1, nvml_error="NVML Shared Library Not Found")["host.gpu-unreachable"] is True
    assert host_facts(pci_gpus=1, container="docker")["host.container-without-gpu"] is True
    hidden = host_facts(gpus=(Gpu(index=0, name="A10", visible=False),), driver_source="nvml")
    assert hidden == {"host.gpus-hidden": True, "host.gpus-lost": ()}
