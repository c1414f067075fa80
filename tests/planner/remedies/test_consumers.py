"""What comes and goes for JAX, CuPy, onnxruntime and others: one set of libraries that serves all."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import Distribution, Environment, TorchBuild
from tests.diagnosis.consumer_cases import consumer, environment, host, jax, opened, plugin
from tests.diagnosis.helpers import distribution
from tests.planner.remedies.helpers import decided

PLUGIN = "jax-cuda12-plugin 0.6.2"
LACKS_CUDNN = consumer("jax", "0.6.2", PLUGIN, opened("libcudnn.so.9"))
HAS_CUDNN = consumer("jax", "0.6.2", PLUGIN, opened("libcudnn.so.9", "site/nvidia/cudnn/lib/libcudnn.so.9"))
ALL_OF_JAX = ("jax[cuda12]", "jaxlib", "jax-cuda12-plugin[with-cuda]", "jax-cuda12-pjrt")


def with_torch(pinned: str, found: Environment) -> Environment:
    """The same environment with a torch that pins cuDNN."""
    torch = distribution("torch", "2.5.1", f"nvidia-cudnn-cu12=={pinned}")
    return msgspec.structs.replace(
        found,
        distributions=(torch, *found.distributions),
        torch=TorchBuild(version="2.5.1", cuda="12.4", variant="cu124"),
    )


def test_a_library_comes_in_the_releases_that_the_extra_accepts() -> None:
    found = decided("consumer-libraries", environment(jax(), LACKS_CUDNN))
    assert (found.purge, found.install) == ((), ("nvidia-cudnn-cu12<10.0,>=9.8",))


def test_without_an_extra_the_wheel_of_that_cuda_release_comes() -> None:
    made = consumer("ctranslate2", "4.8.5", "ctranslate2 4.8.5", opened("libcublas.so.12"))
    found = decided("consumer-libraries", environment((distribution("ctranslate2", "4.8.5"),), made))
    assert found.install == ("nvidia-cublas-cu12",)


def test_one_release_serves_torch_and_jax_where_both_accept_it() -> None:
    found = decided("consumer-libraries", with_torch("9.8.0.87", environment(jax(), LACKS_CUDNN)))
    assert found.install == ("nvidia-cudnn-cu12<10.0,==9.8.0.87,>=9.8",)


def test_jax_moves_where_torch_pins_a_release_that_it_refuses() -> None:
    found = decided("consumer-libraries", with_torch("9.1.0.70", environment(jax(), LACKS_CUDNN)))
    assert found.install == ("nvidia-cudnn-cu12==9.1.0.70", *ALL_OF_JAX), "torch and all that is built for it stay"


def test_a_release_that_is_refused_is_replaced() -> None:
    old = distribution("nvidia-cudnn-cu12", "9.1.0.70")
    found = decided("consumer-versions", environment(jax(old), HAS_CUDNN))
    assert (found.purge, found.install) == (("nvidia-cudnn-cu12",), ("nvidia-cudnn-cu12<10.0,>=9.8",))


def test_the_wheels_of_torch_take_jax_along() -> None:
    new = distribution("nvidia-cudnn-cu12", "9.8.0.87")
    found = decided("nvidia-wheels", with_torch("9.1.0.70", environment(jax(new), HAS_CUDNN)))
    assert found.install == ("nvidia-cudnn-cu12==9.1.0.70", *ALL_OF_JAX)


def test_without_torch_its_wheels_are_nobodys_concern() -> None:
    assert decided("nvidia-wheels", environment(jax(), HAS_CUDNN)).empty


@pytest.mark.parametrize(
    ("core", "own", "moved"), [("0.6.2", "0.6.0", "jax-cuda12-plugin"), ("0.6.1", "0.6.2", "jaxlib")]
)
def test_the_part_that_is_alone_moves(core: str, own: str, moved: str) -> None:
    found = decided("consumer-parts", environment(jax(core=core, own=own), HAS_CUDNN))
    assert [text.partition("<")[0].partition("=")[0] for text in found.install] == [moved]


@pytest.mark.parametrize(("driver", "kept"), [(None, "12"), ("570.86.10", "12")])
def test_one_of_two_plugins_goes_with_its_parts(driver: str | None, kept: str) -> None:
    both = jax(plugin("0.7.1", "13"), distribution("jax-cuda13-pjrt", "0.7.1"))
    found = decided("consumer-twice", environment(both, HAS_CUDNN), host(driver))
    assert set(found.purge) == {"jax-cuda13-plugin", "jax-cuda13-pjrt", f"jax-cuda{kept}-plugin"}
    assert found.install == ("jax-cuda12-plugin==0.6.2",)


@pytest.mark.parametrize(
    ("name", "installed", "purged", "install"),
    [
        ("onnxruntime", "1.22.0", ("onnxruntime",), "onnxruntime-gpu==1.22.0"),
        ("jax", "0.6.2", (), "jax[cuda12]==0.6.2"),
        ("tensorflow", "2.20.0", (), "tensorflow[and-cuda]==2.20.0"),
    ],
)
def test_a_build_for_the_gpu_takes_the_place_of_one_for_the_cpu(
    name: str, installed: str, purged: tuple[str, ...], install: str
) -> None:
    found = decided(
        "consumer-gpu-build", environment((distribution(name, installed),), consumer(name, installed, None))
    )
    assert (found.purge, found.install) == (purged, (install,))


def test_where_nothing_is_a_build_for_the_cpu_a_refusal_says_so() -> None:
    with pytest.raises(NoSolution, match="No library here is a build for the CPU"):
        decided("consumer-gpu-build", environment(jax(), HAS_CUDNN))


def test_a_build_for_an_older_cuda_release_comes_where_the_driver_serves_it() -> None:
    made = consumer("cupy", "14.2.0", "cupy-cuda13x 14.2.0", cuda="13")
    found = decided(
        "consumer-older-cuda", environment((distribution("cupy-cuda13x", "14.2.0"),), made), host("570.86.10")
    )
    assert (found.purge, found.install) == (("cupy-cuda13x",), ("cupy-cuda12x==14.2.0",))


def test_what_has_no_other_build_needs_a_newer_driver() -> None:
    made = consumer("onnxruntime", "1.31.1", "onnxruntime-gpu 1.31.1", cuda="13")
    with pytest.raises(NoSolution, match="No build for an older CUDA release"):
        decided(
            "consumer-older-cuda", environment((distribution("onnxruntime-gpu", "1.31.1"),), made), host("570.86.10")
        )


def test_a_newer_release_comes_for_a_gpu_without_code() -> None:
    made = msgspec.structs.replace(consumer("onnxruntime", "1.22.0", "onnxruntime-gpu 1.22.0"), sass=("8.0",))
    found = decided(
        "consumer-newer-release",
        environment((distribution("onnxruntime-gpu", "1.22.0"),), made),
        host("580.95.05", "12.0"),
    )
    assert found.install == ("onnxruntime-gpu>1.22.0",)


def _conflict(first: Distribution, second: Distribution) -> Environment:
    from envmedic.model.facts import FileConflict

    conflict = FileConflict(
        distributions=(first.name, second.name), paths=("site/onnxruntime/a.so",), count=1, content_of=(1, 0)
    )
    return msgspec.structs.replace(environment((first, second)), conflicts=(conflict,))


def test_the_build_for_the_gpu_stays_where_two_wrote_over_each_other() -> None:
    cpu, own = distribution("onnxruntime", "1.23.0"), distribution("onnxruntime-gpu", "1.22.0")
    found = decided("clobbered", _conflict(cpu, own))
    assert (set(found.purge), found.install) == ({"onnxruntime", "onnxruntime-gpu"}, ("onnxruntime-gpu==1.22.0",))


def test_what_others_require_by_name_keeps_its_metadata_below_the_build_for_the_gpu() -> None:
    cpu, own = distribution("onnxruntime", "1.22.0"), distribution("onnxruntime-gpu", "1.22.0")
    found = _conflict(cpu, own)
    asking = distribution("rembg", "2.0", "onnxruntime")
    found = msgspec.structs.replace(found, distributions=(*found.distributions, asking))
    assert decided("clobbered", found).purge == ("onnxruntime-gpu",)
