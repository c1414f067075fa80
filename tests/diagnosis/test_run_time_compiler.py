"""Another NVRTC that LD_PRELOAD names before torch's own."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.diagnosis.areas.nvidia import derive
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import CudaLibrary, Facts, Host, Variable
from tests.diagnosis.test_nvidia import RIGHT, environment

OWN = "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
OTHER = "/opt/cuda-11.8/lib64/libnvrtc.so.12"


def of(preload: str, *libraries: CudaLibrary) -> Derived:
    """The facts where LD_PRELOAD has this value."""
    host = Host(variables=(Variable(name="LD_PRELOAD", value=preload),) if preload else ())
    found = msgspec.structs.replace(environment(*RIGHT), cuda_libraries=libraries)
    return derive(Facts(host=host, environment=found))


@pytest.mark.parametrize(
    ("preload", "hiding"),
    [
        (OTHER, OTHER),
        (f"/a/libjemalloc.so.2:{OTHER}", OTHER),
        (f"{OTHER} /a/libjemalloc.so.2", OTHER),
        ("/opt/cuda-11.8/./lib64//libnvrtc.so.12", "/opt/cuda-11.8/./lib64//libnvrtc.so.12"),
        ("libnvrtc.so.12", "libnvrtc.so.12"),
    ],
)
def test_the_library_that_hides_torchs_own_is_told(preload: str, hiding: str) -> None:
    found = of(preload, CudaLibrary(soname="libnvrtc.so.12", path=OTHER, instead_of=OWN))
    assert found["nvidia.nvrtc-preloaded"] == (f"{hiding} comes before {OWN}",)


def test_other_libraries_may_be_preloaded() -> None:
    own = CudaLibrary(soname="libnvrtc.so.12", path=OWN)
    found = of("/a/libjemalloc.so.2:/a/libcudart.so.12", own)
    assert found["nvidia.nvrtc-preloaded"] == ()
    assert of("", own)["nvidia.nvrtc-preloaded"] == ()
