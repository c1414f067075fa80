"""Match specs are read as conda reads them."""

from __future__ import annotations

import pytest

from envmedic.conda_meta import specs
from envmedic.installers.conda.configuration import spec_matching
from envmedic.model.conda import CondaPackage
from tests.conda_meta.conftest import Conda

_FORGE = "https://conda.anaconda.org/conda-forge"
_PACKAGE = CondaPackage(
    name="pytorch", version="2.3.1", build="py3.11_cuda12.1_cudnn8.9.2_0", build_number=2, channel=_FORGE,
    subdir="linux-64", filename="pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.conda",
    url=f"{_FORGE}/linux-64/pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.conda", md5="0" * 32,
)  # fmt: skip
_CONDAS = {
    "name": _PACKAGE.name, "version": _PACKAGE.version, "build": _PACKAGE.build, "build_number": 2,
    "channel": f"{_FORGE}/linux-64", "subdir": "linux-64", "fn": _PACKAGE.filename, "url": _PACKAGE.url,
    "md5": _PACKAGE.md5,
}  # fmt: skip
_SPECS = [
    "pytorch", "PyTorch", "numpy", "*", "py*", "pytorch=2.3", "pytorch=2.3.1", "pytorch==2.3", "pytorch==2.3.1",
    "pytorch 2.3", "pytorch 2.3.*", "pytorch 2.3*", "pytorch >=2,<3", "pytorch>=2.4", "pytorch>=2.0,<2.4", "pytorch!=2.3.1",
    "pytorch 2.3.1 py3.11_cuda12.1_cudnn8.9.2_0", "pytorch=2.3.1=py3.11_cuda12.1_cudnn8.9.2_0",
    "pytorch==2.3.1=py3.11_cuda12.1_cudnn8.9.2_0", "pytorch==2.3.1=py3.11_cpu_0", "pytorch=2.3.1=*cuda*",
    "pytorch=2.3.1=*cpu*", "pytorch * *cuda*", "pytorch[version='>=2.3']", "pytorch[version='<2.3']",
    "pytorch=2.3[build=*cuda12*]", "pytorch[build='^py3.*$']", "pytorch[build_number='>=1']", "pytorch[build_number=2]",
    "pytorch[build_number=0]", "conda-forge::pytorch", "conda-forge::pytorch=2.3", "defaults::pytorch",
    "conda-forge/linux-64::pytorch", "conda-forge/osx-64::pytorch", "pytorch[channel=conda-forge]",
    "pytorch[subdir=linux-64]", "pytorch[subdir=osx-64]", f"{_FORGE}::pytorch", "*/linux-64::pytorch",
    f"pytorch[md5={'0' * 32}]", f"pytorch[md5={'1' * 32}]", "pytorch 2.3|2.4", "pytorch ~=2.3.0", "pytorch=2.3,<2.4",
    f"{_FORGE}/linux-64/pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.conda", "pytorch >=2.0 # a comment",
    "file:///opt/channel::pytorch", "pytorch=", "pytorch[version=2.3.1,build=py3.11_cuda12.1_cudnn8.9.2_0]",
]  # fmt: skip


@pytest.mark.parametrize("spec", _SPECS)
def test_matches_are_condas(conda: Conda, spec: str) -> None:
    assert spec_matching.matches(spec, _PACKAGE) == conda.matches(spec, _CONDAS)


@pytest.mark.parametrize("spec", _SPECS)
def test_specs_as_conda_writes_them_mean_the_same(conda: Conda, spec: str) -> None:
    assert spec_matching.matches(conda.text(spec), _PACKAGE) == conda.matches(spec, _CONDAS)


@pytest.mark.parametrize("spec", _SPECS)
def test_names_are_condas(conda: Conda, spec: str) -> None:
    ours = specs.name_of(spec)
    assert ours == conda.name(spec) or ("*" in ours and conda.name(spec) == "*")


@pytest.mark.parametrize("spec", ["", "  ", "=1.2", "pytorch[]", "pytorch[version=]", ">=2"])
def test_what_is_no_spec_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=r"package|bracket|constraint"):
        spec_matching.matches(spec, _PACKAGE)


def test_a_field_that_no_installed_package_tells_is_refused() -> None:
    with pytest.raises(ValueError, match="license"):
        spec_matching.matches("pytorch[license=MIT]", _PACKAGE)


@pytest.mark.parametrize("version", ["1.9", "2.0", "2", "2.0.0", "2.3", "2.3.1", "2.30", "3.0", "3.1", "0.1", "2024"])
@pytest.mark.parametrize(
    "spec",
    [
        "lib", "lib *", "lib * h_0", "lib >=2.0,<3.0a0", "lib >=2.0,<3.0a0 h_0", "lib>=2.3", "lib 2.3.*", "lib =2.3",
        "lib==2.0", "lib 2.0", "lib 2.3.1 h_0", "lib !=2.3.1", "lib <2.3|>=3", "lib 2.3.*|3.0.*", "lib >2,<=3",
        "lib >=2024a0", "channel::lib >=2.3",
    ],
)  # fmt: skip
def test_ranges_of_numbers_admit_what_they_admit_for_conda(conda: Conda, spec: str, version: str) -> None:
    package = {**_CONDAS, "name": "lib", "version": version, "build": "h_0", "fn": f"lib-{version}-h_0.conda"}
    theirs = conda.matches(spec.removeprefix("channel::"), package)
    assert specs.admits(spec, version) is theirs


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("lib >=2", "9e"), ("lib 9e", "9"), ("lib ~=2.3", "2.3"), ("lib 2.3*", "2.30"), ("lib >=2.*", "2.0"),
        ("lib[version='<2']", "3.0"), ("lib >=1.1.1a", "1.1.1"), ("lib >= 2", "1"), ("=2", "1"), ("lib >2.0a0", "2.0"),
    ],
)  # fmt: skip
def test_what_more_than_numbers_decides_is_left_open(spec: str, version: str) -> None:
    assert specs.admits(spec, version) is None
