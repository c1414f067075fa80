"""What conda channels have of the torch family, by the data."""

from __future__ import annotations

import re

import pytest

from envmedic.compat import tables, versions
from envmedic.compat.conda_tables import FlavourName, conda_tables, family_packages
from envmedic.compat.torch_family import conda_families, rules
from envmedic.installers.conda.configuration import spec_matching
from envmedic.model.answers.family import FamilyQuery
from envmedic.model.conda import CondaPackage
from envmedic.model.playbook import Policy

BUILDS: tuple[tuple[str, str, FlavourName, str | None], ...] = (
    ("py3.11_cuda12.1_cudnn8.9.2_0", "pytorch", "pytorch", "cu121"),
    ("py3.8_cuda10.2_cudnn7.6.5_0", "pytorch", "pytorch", "cu102"),
    ("py3.11_cpu_0", "a-mirror", "pytorch", "cpu"),
    ("cuda126_mkl_py311_h0a1b2c3_300", "conda-forge", "conda-forge", "cu126"),
    ("cuda120py311h25b6552_201", "a-mirror", "conda-forge", "cu120"),
    ("cpu_mkl_py311_h4d5e6f7_100", "conda-forge", "conda-forge", "cpu"),
    ("gpu_cuda118py311h0_301", "main", "defaults", "cu118"),
    ("cpu_py311h6d93b4c_0", "main", "defaults", "cpu"),
    ("gpu_mps_py311h0_100", "main", "defaults", None),
)


def torch(build: str, channel: str) -> CondaPackage:
    return CondaPackage(name="pytorch", version="2.3.1", build=build, channel=f"https://conda.example/{channel}")


@pytest.mark.parametrize(("build", "channel", "name", "variant"), BUILDS)
def test_a_build_string_tells_channel_and_cuda(
    build: str, channel: str, name: FlavourName, variant: str | None
) -> None:
    found = torch(build, channel)
    assert conda_families.flavour_of(found).flavour == name
    assert conda_families.variant_of(found) == variant


def query(torch: str, variant: str, policies: tuple[Policy, ...], **more: object) -> FamilyQuery:
    arguments = {"driver": "560.35.05", "capabilities": ("8.6",)} | more
    return FamilyQuery(
        python="3.11.9",
        installed={"torch": torch, "torchvision": "0.1"},
        variant=variant,
        policies=policies,
        **arguments,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("name", ["pytorch", "conda-forge", "defaults"])
@pytest.mark.parametrize("driver", ["450.80.02", "525.60.13", "560.35.05", "580.65.06", None])
@pytest.mark.parametrize("capability", ["7.0", "8.6", "9.0", "12.0"])
def test_every_set_fits_the_driver_and_is_of_companions_made_for_that_torch(
    name: FlavourName, driver: str | None, capability: str
) -> None:
    asked = query(
        "2.3.1", "cu118", ("keep-release", "keep-cuda-variant", "newest"), driver=driver, capabilities=(capability,)
    )
    for found in conda_families.answer(asked, conda_families.flavour(name)).sets:
        release = tables.releases()[found.versions["torch"]]
        assert found.versions["torch"] in tables.companions("torchvision")[found.versions["torchvision"]].torch, release
        cuda = versions.variant_cuda(found.variant)
        assert cuda is not None
        need, _ = rules.minimum_driver(cuda)
        assert need is not None
        assert driver is not None or found.variant == "cu118"
        assert driver is None or versions.dotted(driver) >= versions.dotted(need)


def test_the_old_channel_ends_and_says_where_that_was_announced() -> None:
    answer = conda_families.answer(
        query("2.5.1", "cu124", ("newest",), driver="570.124.06", capabilities=("12.0",)),
        conda_families.flavour("pytorch"),
    )
    assert answer.sets == ()
    assert any("the channel ended with torch 2.5.1" in item.reason for item in answer.rejected)
    assert any("issues/138506" in item.source for item in answer.rejected)


def test_the_same_release_for_cuda_comes_before_newer_ones() -> None:
    answer = conda_families.answer(
        query("2.5.1", "cpu", ("keep-release", "newest")), conda_families.flavour("conda-forge")
    )
    assert (answer.sets[0].versions["torch"], answer.sets[0].variant) == ("2.5.1", "cu126")
    assert versions.parsed(answer.sets[1].versions["torch"]) > versions.parsed("2.13")


def test_a_cuda_build_is_never_given_up_for_one_of_the_cpu() -> None:
    answer = conda_families.answer(
        query("2.5.1", "cu118", ("newest",), driver="300.0"), conda_families.flavour("pytorch")
    )
    assert answer.sets == ()


@pytest.mark.parametrize("row", conda_tables().flavours, ids=lambda row: row.flavour)
def test_what_is_asked_of_a_flavour_is_what_its_builds_are_called(row: object) -> None:
    for build, channel, name, variant in BUILDS:
        if name != row.flavour or variant is None:  # type: ignore[attr-defined]
            continue
        flavour = conda_families.flavour(name)
        pattern = (flavour.cpu_build if variant == "cpu" else flavour.cuda_build).format(
            cuda=versions.variant_cuda(variant), digits=variant[2:]
        )
        assert spec_matching.matches(f"pytorch 2.3.1 {pattern}", torch(build, channel)), (pattern, build)


def test_the_data_hold_together() -> None:
    for row in conda_tables().flavours:
        assert {"pytorch", "torchvision"} <= set(row.packages)
        assert re.compile(row.build).groups <= 1
        assert all(item.first in tables.releases() for item in row.selectors)
    assert {item.torch for item in conda_tables().builds} <= set(tables.releases())
    assert not any(conda_families.is_library(name) for name in family_packages() - {"cuda-version"})
    assert {
        conda_families.is_library(name) for name in ("cuda-cudart", "cudnn", "nccl", "libcublas", "magma-cuda121")
    } == {True}
    assert {conda_families.is_library(name) for name in ("mkl", "numpy", "python", "libstdcxx-ng", "openssl")} == {
        False
    }
    assert (conda_families.package_of("torch"), conda_families.package_of("numpy")) == ("pytorch", "numpy")
    assert (conda_families.distribution_of("pytorch"), conda_families.distribution_of("ruamel.yaml")) == (
        "torch",
        "ruamel-yaml",
    )
