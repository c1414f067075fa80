"""Which of NVIDIA's wheels go and come, and which search paths are left."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import CudaLibrary, FileConflict, Host, Variable
from tests.diagnosis.test_nvidia import RIGHT, distribution, environment
from tests.diagnosis.test_run_time_compiler import OTHER, OWN
from tests.planner.remedies.helpers import decided


def test_nothing_changes_where_torch_has_what_it_requires() -> None:
    found = decided("nvidia-wheels", environment(*RIGHT))
    assert (found.purge, found.install) == ((), ())


def test_another_version_is_replaced() -> None:
    found = decided("nvidia-wheels", environment(distribution("nvidia-nccl-cu12", "2.19.3"), *RIGHT[1:]))
    assert (found.purge, found.install) == (("nvidia-nccl-cu12",), ("nvidia-nccl-cu12==2.21.5",))
    assert found.leftovers


def test_wheels_come_where_libraries_are_missing_and_no_toolkit_serves_torch() -> None:
    missing = (CudaLibrary(soname="libnccl.so.2", path=None, needed_by="site/torch/lib/libtorch_cuda.so"),)
    assert decided("nvidia-wheels", environment(RIGHT[2])).install == ()
    found = decided("nvidia-wheels", msgspec.structs.replace(environment(RIGHT[2]), cuda_libraries=missing))
    assert len(found.install) == 2


@pytest.mark.parametrize(
    ("content_of", "needed", "purged"),
    [
        ((0, 1), (), ("nvidia-nccl-cu12", "nvidia-nccl-cu11")),
        ((0, 1), ("nvidia-nccl-cu11",), ("nvidia-nccl-cu12",)),
        ((1, 0), (), ()),
    ],
)
def test_what_overwrote_a_library_goes_unless_it_is_needed(
    content_of: tuple[int, int], needed: tuple[str, ...], purged: tuple[str, ...]
) -> None:
    other = (distribution("nvidia-nccl-cu11", "2.14.3"), distribution("paddle", "2.6", requires=needed))
    conflict = FileConflict(
        distributions=("nvidia-nccl-cu12", "nvidia-nccl-cu11"), paths=("site/nvidia/nccl/lib/libnccl.so.2",), count=1,
        content_of=content_of,
    )  # fmt: skip
    observed = msgspec.structs.replace(environment(*RIGHT, *other), conflicts=(conflict,))
    assert decided("nvidia-wheels", observed).purge == purged


def test_conda_serves_its_own_torch() -> None:
    found = environment()
    owned = msgspec.structs.replace(found.distributions[0], owner="conda")
    of_conda = decided("nvidia-wheels", msgspec.structs.replace(found, distributions=(owned,)))
    assert (of_conda.purge, of_conda.install) == ((), ())
    unseen = CudaLibrary(soname="libcusparse.so.12", path=None, needed_by="libtorch_cuda.so")
    lacking = msgspec.structs.replace(found, distributions=(owned,), cuda_libraries=(unseen,))
    assert decided("nvidia-wheels", lacking).install == ()


def test_without_torch_no_release_of_cuda_is_known() -> None:
    alone = msgspec.structs.replace(environment(), distributions=RIGHT, torch=None)
    with pytest.raises(NoSolution, match="No torch is installed here, so there is no CUDA release") as caught:
        decided("nvidia-wheels", alone)
    assert "-p PREFIX" in (caught.value.hint or "")


def test_directories_that_hide_libraries_are_left_out_of_the_variable() -> None:
    hidden = CudaLibrary(
        soname="libnvJitLink.so.12", path="/old/lib/libnvJitLink.so.12", instead_of="site/nvidia/nvjitlink/lib/x"
    )
    host = Host(variables=(Variable(name="LD_LIBRARY_PATH", value="/a:/old/lib/:/b"),))
    found = decided("nvidia-shadowed", msgspec.structs.replace(environment(*RIGHT), cuda_libraries=(hidden,)), host)
    assert found.variables == {"LD_LIBRARY_PATH": "/a:/b"}


def test_directories_of_the_environments_libraries_come_first() -> None:
    installed = (*RIGHT, distribution("nvidia-cublas-cu12", "12.4.5.8"))
    host = Host(variables=(Variable(name="LD_LIBRARY_PATH", value="/a::/b"),))
    found = decided("cuda-library-unseen", environment(*installed), host)
    places = ("/env/site/nvidia/cudnn/lib", "/env/site/nvidia/cublas/lib", "/a", "/b")
    assert found.variables == {"LD_LIBRARY_PATH": ":".join(places)}


@pytest.mark.parametrize(
    ("preload", "left"),
    [
        (OTHER, ""),
        (f"/a/libjemalloc.so.2:{OTHER}", "/a/libjemalloc.so.2"),
        (f"{OTHER} /a/libjemalloc.so.2", "/a/libjemalloc.so.2"),
        ("/opt/cuda-11.8/./lib64//libnvrtc.so.12", ""),
        ("libnvrtc.so.12", ""),
    ],
)
def test_the_library_that_hides_torchs_own_is_taken_out_of_the_variable(preload: str, left: str) -> None:
    hiding = CudaLibrary(soname="libnvrtc.so.12", path=OTHER, instead_of=OWN)
    host = Host(variables=(Variable(name="LD_PRELOAD", value=preload),))
    found = decided("nvrtc-preloaded", msgspec.structs.replace(environment(*RIGHT), cuda_libraries=(hiding,)), host)
    assert found.variables == {"LD_PRELOAD": left}


def test_other_libraries_stay_preloaded() -> None:
    own = CudaLibrary(soname="libnvrtc.so.12", path=OWN)
    observed = msgspec.structs.replace(environment(*RIGHT), cuda_libraries=(own,))
    preload = "/a/libjemalloc.so.2:/a/libcudart.so.12"
    host = Host(variables=(Variable(name="LD_PRELOAD", value=preload),))
    assert decided("nvrtc-preloaded", observed, host).variables == {"LD_PRELOAD": preload}
    assert decided("nvrtc-preloaded", observed).variables == {"LD_PRELOAD": ""}
