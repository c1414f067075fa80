"""Which distributions have wheels for one torch, by the tables of real releases."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from envmedic.compat import tables
from envmedic.compat.table_rows import Coupling
from envmedic.compat.torch_family import common_set
from envmedic.compat.torch_family.common_set import SetAnswer, SetPlace

X86, ARM = SetPlace(platform="linux_x86_64", python="3.12"), SetPlace(platform="linux_aarch64", python="3.12")


def asked(*requirements: str, place: SetPlace = X86) -> SetAnswer:
    return common_set.answer([Requirement(item) for item in requirements], place)


def row(name: str, version: str) -> Coupling:
    found = tables.coupling(name, version)
    assert found is not None
    return found


def test_vllm_and_flash_attn_have_no_wheels_together_and_the_nearest_pair_is_named() -> None:
    found = asked("vllm>=0.17,<=0.33", "flash-attn<=2.8.3.post1")
    assert found.found is None
    (lacking,) = found.lacking
    assert lacking.names == ("vllm", "flash-attn")
    assert "vllm 0.17.0 to 0.33.0 are for torch 2.10.0 to 2.14.0" in lacking.reason
    assert "for torch 1.7.0 to 2.8.0, on github.com" in lacking.reason
    assert lacking.source
    assert found.nearest is not None
    assert found.nearest.pins() == ("torch==2.8.0", "vllm==0.11.0", "flash-attn==2.8.3.post1")
    assert found.beside is not None
    assert (found.to_build, found.beside.pins()) == ("flash-attn", ("torch==2.14.0", "vllm==0.33.0"))


def test_members_that_need_each_other_are_taken_in_those_versions() -> None:
    found = asked("sglang<=0.5.23", "sglang-kernel", "flashinfer-python").found
    assert found is not None
    assert found.pins() == (
        "torch==2.14.1", "sglang==0.5.23", "sglang-kernel==0.4.10", "flashinfer-python==0.7.2",
    )  # fmt: skip
    assert row("sglang", "0.5.23").requires["sglang-kernel"] == "==0.4.10"


def test_a_torch_that_is_asked_for_binds_the_others() -> None:
    lacking = asked("vllm>=0.17", "torch<2.9")
    assert lacking.lacking[0].names == ("vllm", "torch")
    found = asked("xformers", "torch==2.5.1").found
    assert found is not None
    assert found.pins() == ("torch==2.5.1", "xformers==0.0.29.post1")


def test_what_has_no_wheel_on_a_machine_is_told_and_the_others_have_a_set() -> None:
    found = asked("bitsandbytes<=0.50.2", "torchao<=0.18.0", "xformers", place=ARM)
    assert found.without_wheel == ("xformers",)
    assert "no release of xformers is known to have a wheel for Python 3.12 on linux aarch64" in found.lacking[0].reason
    assert found.nearest is not None
    assert [item.name for item in found.nearest.members] == ["bitsandbytes", "torchao"]
    assert asked("vllm", "torchcodec", place=ARM).found is not None
    assert asked("flash-attn", place=ARM).without_wheel == ("flash-attn",)


def test_a_companion_counts_with_the_torch_that_it_is_for() -> None:
    found = asked("torchvision==0.25.0", "vllm").found
    assert found is not None
    assert found.torch == "2.10.0"


def test_of_what_the_tables_do_not_know_nothing_is_said() -> None:
    assert asked("decord", "requests") == SetAnswer()


@pytest.mark.parametrize(
    ("name", "version", "torch"),
    [
        ("xformers", "0.0.30", {"2.7.0"}),  # its metadata
        ("torchcodec", "0.9.1", {"2.9.0", "2.9.1"}),  # its README
        ("torchcodec", "0.12.0", {"2.11.0", "2.12.0", "2.15.0"}),  # README: the stable interface
        ("sgl-kernel", "0.3.21", {"2.9.0", "2.9.1"}),  # the torch of its day
    ],
)
def test_the_torch_of_a_release(name: str, version: str, torch: set[str]) -> None:
    found = common_set.torch_of(row(name, version))
    assert torch <= found
    if name != "torchcodec" or version != "0.12.0":
        assert found == torch


def test_libraries_of_real_wheels_were_read() -> None:
    assert (row("torchcodec", "0.11.0").interface, row("torchcodec", "0.12.0").interface) == ("torch", "stable")
    assert (row("xformers", "0.0.35").interface, row("xformers", "0.0.35").cuda) == ("stable", ("12",))
    assert row("bitsandbytes", "0.49.0").cuda[-1] == "13.0"
    assert row("sglang-kernel", "0.4.1").cuda == ("12",)
    assert row("sglang-kernel", "0.4.2").cuda == ("13",)
    assert row("flash-attn", "2.8.3").python == {}
