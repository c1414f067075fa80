"""What versions do not say: drivers, GPUs, and libraries that are compiled for one torch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from envmedic.model.facts import Environment, Facts, Gpu, Host, Interpreter, TorchBuild
from envmedic.model.ports import ResolveRequest
from envmedic.planner.asked import binaries, together, whatif


def facts(**host: Any) -> tuple[Facts, Environment]:
    environment = Environment(
        prefix="/e",
        real_prefix="/e",
        kind="venv",
        interpreter=Interpreter(path="/e/bin/python", version="3.12.1", starts=True),
    )
    return Facts(host=Host(**host), environment=environment), environment


GH200 = {"machine": "aarch64", "gpus": (Gpu(index=0, name="NVIDIA GH200 480GB", compute_capability="9.0"),)}
GB10 = {"machine": "aarch64", "gpus": (Gpu(index=0, name="NVIDIA GB10", compute_capability="12.1"),)}


@pytest.mark.parametrize(
    ("host", "driver", "torch", "told"),
    [
        (GH200, "570.86.15", "2.14.0", "CUDA 13.0 needs driver 580"),
        (GH200, "580.95.05", "2.14.0", ""),
        (GB10, "580.95.05", "2.14.0", ""),
        (GB10, "580.95.05", "2.7.0+cu118", "are not known"),
        (GH200, "570.86.15", "2.99.0", ""),
        ({}, "450.80.02", "2.7.0", "needs driver"),
    ],
)
def test_the_torch_that_a_resolver_brings_is_held_against_driver_and_gpus(
    host: dict[str, Any], driver: str, torch: str, told: str
) -> None:
    found = binaries.refusals(*facts(driver_version=driver, **host), {"torch": torch})
    assert bool(found) == bool(told), found
    assert told in " ".join(item.text for item in found)


def test_without_driver_and_gpu_nothing_is_judged() -> None:
    assert binaries.refusals(*facts(), {"torch": "2.14.0"}) == ()


def test_libraries_for_another_torch_or_another_cuda_are_told() -> None:
    (other,) = binaries.doubts(*facts(), {"torch": "2.11.0", "sgl-kernel": "0.3.21"})[:1]
    assert "sgl-kernel 0.3.21 are compiled for one torch, 2.9.0, 2.9.1" in other.text
    texts = [item.text for item in binaries.doubts(*facts(), {"torch": "2.14.0+cu132", "xformers": "0.0.35"})]
    assert len(texts) == 1
    assert "load the runtime of CUDA 12, and torch 2.14.0 is built for CUDA 13.2" in texts[0].replace(
        "2.14.0+cu132", "2.14.0"
    )
    assert binaries.doubts(*facts(), {"torch": "2.10.0+cu128", "xformers": "0.0.35"}) == ()


def test_a_build_for_the_cpu_on_a_machine_with_gpus_is_told() -> None:
    (found,) = binaries.doubts(*facts(**GB10), {"torch": "2.7.0"})
    assert "torch 2.7.0 on the default index is a build for the CPU on aarch64" in found.text
    assert binaries.doubts(*facts(machine="aarch64"), {"torch": "2.7.0"}) == ()


def test_a_plan_that_finds_no_wheels_tells_which_pins_have_none_together() -> None:
    pins = ("vllm==0.33.0", "flash-attn==2.8.3")
    texts = together.reasons(*facts(), ResolveRequest(pins=pins))
    assert "vllm==0.33.0 and flash-attn==2.8.3 have no wheels for one torch" in texts[0]
    assert texts[-1].startswith("the nearest set that has wheels: torch==")
    assert together.reasons(*facts(), ResolveRequest(pins=("vllm==0.33.0", "torch==2.14.0"))) == ()


def test_the_release_for_the_installed_torch_is_named() -> None:
    known, environment = facts()
    torch = TorchBuild(version="2.5.1+cu124", variant="cu124", cuda="12.4")
    there = msgspec.structs.replace(environment, torch=torch)
    found = [item.text for item in together.made_for(known, there, ("xformers", "flash-attn", "decord"))]
    assert found == ["xformers 0.0.29.post1 has wheels for torch 2.5.1"]


def test_a_new_torch_may_change_what_it_requires_where_nothing_smaller_works() -> None:
    """An old setuptools beside it, say: its own requirement is known from the index alone."""
    state = whatif.parse_requests(facts(driver_version="580.95.05", **GB10)[0], ["torch"])
    ways, _ = whatif.ways(state)
    half = len(ways) // 2
    assert [way.pins for way in ways[:half]] == [way.pins for way in ways[half:]]
    assert [way.replaceable == ("*",) for way in ways] == [False] * half + [True] * half
    assert half
