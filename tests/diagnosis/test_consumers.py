"""Facts on what computes on GPUs without torch, from made observations."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.compat import consumer_kinds as registry
from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.findings import diagnose
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Environment, Facts, Host
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader
from tests.diagnosis.consumer_cases import consumer, environment, host, jax, opened, plugin
from tests.diagnosis.helpers import distribution

PLUGIN = "jax-cuda12-plugin 0.6.2"
WHEEL = "site/nvidia/cudnn/lib/libcudnn.so.9"
SOUND = consumer("jax", "0.6.2", PLUGIN, opened("libcudnn.so.9", WHEEL))
FAULTS = ("lacking", "lacking-for-gpu", "wrong", "parts", "twice", "cpu-builds", "shadowed")


def facts(found: Environment, on: Host | None = None) -> Derived:
    derived = derive(Facts(host=on or Host(), environment=found))
    return {name.removeprefix("consumers."): value for name, value in derived.items() if name.startswith("consumers.")}


def test_a_sound_one_has_no_fault() -> None:
    found = facts(environment(jax(distribution("nvidia-cudnn-cu12", "9.8.0.87")), SOUND))
    assert found["names"] == ("jax",)
    assert {name: found[name] for name in FAULTS} == dict.fromkeys(FAULTS, ())


@pytest.mark.parametrize(("core", "own"), [("0.6.2", "0.6.0"), ("0.6.1", "0.6.2")])
def test_parts_of_two_releases_are_told_with_who_asks(core: str, own: str) -> None:
    parts = facts(environment(jax(core=core, own=own), SOUND))["parts"]
    assert isinstance(parts, tuple)
    assert parts
    assert all("requires" in text and "is installed" in text for text in parts)


def test_a_plugin_that_is_gone_while_its_runtime_is_there_is_a_missing_part() -> None:
    left = tuple(item for item in jax() if item.name != "jax-cuda12-plugin")
    found = facts(environment(left, consumer("jax", "0.6.2", None)))
    assert found["parts"] == ("jax 0.6.2 requires jax-cuda12-plugin<=0.6.2,>=0.6.2, it is missing",)
    assert found["cpu-builds"] == (), "it was one for the GPU"


def test_a_library_that_is_nowhere_is_lacking_with_who_opens_it() -> None:
    gone = consumer("jax", "0.6.2", PLUGIN, opened("libcudnn.so.9"), opened("libnvrtc.so.12", how="opened later"))
    found = facts(environment(jax(), gone))
    assert found["lacking"] == ("libcudnn.so.9, which jax 0.6.2 opens",)
    assert found["lacking-for-gpu"] == ("libnvrtc.so.12, which jax 0.6.2 opens when a function needs it",)


def test_what_is_nowhere_is_no_library_that_a_program_does_not_see() -> None:
    parts = (distribution("ctranslate2", "4.8.5"), distribution("nvidia-cudnn-cu12", "9.8.0.87"))
    playbooks = (loader.load_file(loader.shipped_directory() / "cuda-library-unseen.yaml", "shipped"),)
    text = b"RuntimeError: Library libcublas.so.12 is not found or cannot be loaded"
    for path, confirmed in ((None, False), ("site/nvidia/cublas/lib/libcublas.so.12", True)):
        program = consumer("ctranslate2", "4.8.5", "ctranslate2 4.8.5", opened("libcublas.so.12", path))
        seen = Facts(host=Host(), environment=environment(parts, program))
        found = diagnose(read_text([text], playbooks), seen, playbooks, prefix=None, log="log")
        assert [item.confirmed for item in found.findings if item.playbook] == [confirmed]


def test_another_major_release_of_a_library_is_named() -> None:
    older = consumer("cupy", "14.2.0", "cupy-cuda13x 14.2.0", opened("libnvrtc.so.13"), cuda="13")
    newer = consumer("jax", "0.6.2", PLUGIN, opened("libnvrtc.so.12", "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))
    found = facts(environment(jax(), newer, older))
    assert found["lacking"] == ("libnvrtc.so.13, which cupy 14.2.0 opens, only libnvrtc.so.12 is there",)


@pytest.mark.parametrize("own", [None, "site/nvidia/cublas/lib/libcublas.so.12"])
def test_a_wheel_for_cpu_and_gpu_lacks_libraries_only_where_some_are_there(own: str | None) -> None:
    found = facts(
        environment(
            (distribution("tensorflow", "2.20.0"),),
            consumer(
                "tensorflow", "2.20.0", "tensorflow 2.20.0", opened("libcublas.so.12", own), opened("libcudnn.so.9")
            ),
        )
    )
    assert bool(found["lacking"]) == (own is not None), "somebody wanted the GPU"
    assert found["lacking-for-gpu"], "a text may miss them"


def test_a_release_that_an_extra_does_not_accept_is_wrong() -> None:
    found = facts(environment(jax(distribution("nvidia-cudnn-cu12", "9.1.0.70")), SOUND))
    assert found["wrong"] == (
        "jax-cuda12-plugin 0.6.2 requires nvidia-cudnn-cu12<10.0,>=9.8, nvidia-cudnn-cu12 9.1.0.70 is installed",
    )


def test_plugins_for_two_releases_of_cuda_exclude_each_other() -> None:
    found = facts(environment(jax(plugin("0.7.1", "13")), SOUND))
    assert found["twice"] == ("jax-cuda12-plugin and jax-cuda13-plugin",) or found["twice"] == (
        "jax-cuda13-plugin and jax-cuda12-plugin",
    )


def test_a_build_for_the_cpu_is_named() -> None:
    found = facts(environment((distribution("onnxruntime", "1.22.0"),), consumer("onnxruntime", "1.22.0", None)))
    assert found["cpu-builds"] == ("onnxruntime",)


@pytest.mark.parametrize(("driver", "old"), [("580.95.05", False), ("570.86.10", True)])
def test_a_driver_older_than_the_cuda_of_a_build_is_told(driver: str, *, old: bool) -> None:
    made = consumer("cupy", "14.2.0", "cupy-cuda13x 14.2.0", cuda="13")
    told = facts(environment((distribution("cupy-cuda13x", "14.2.0"),), made), host(driver))["driver-too-old"]
    assert bool(told) is old


@pytest.mark.parametrize(("capability", "missing"), [("9.0", False), ("7.0", True)])
def test_gpus_that_a_build_has_no_code_for_are_told(capability: str, *, missing: bool) -> None:
    made = msgspec.structs.replace(
        consumer("onnxruntime", "1.22.0", "onnxruntime-gpu 1.22.0"), sass=("8.0", "9.0"), ptx=()
    )
    found = facts(environment((distribution("onnxruntime-gpu", "1.22.0"),), made), host("580.95.05", capability))
    assert bool(found["without-gpu-code"]) is missing


def test_libraries_that_a_variable_puts_before_the_own_ones_are_told() -> None:
    made = consumer("tensorflow", "2.20.0", "tensorflow 2.20.0", opened("libcudnn.so.9", "/opt/old/libcudnn.so.9"))
    own = consumer("jax", "0.6.2", PLUGIN, opened("libcudnn.so.9", WHEEL))
    found = facts(environment(jax(distribution("tensorflow", "2.20.0")), own, made))
    assert found["shadowed"] == (f"libcudnn.so.9 from /opt/old/libcudnn.so.9, before {WHEEL}, for tensorflow",)


def test_the_registry_names_libraries_checks_and_sources_that_exist() -> None:
    from envmedic.model.registries.check_kinds import CHECKS

    parts = registry.libraries()
    for kind in registry.consumers():
        assert not kind.check or kind.check in CHECKS, kind.name
        assert kind.source, kind.name
        for build in kind.builds:
            assert {*build.opens, *build.also} <= parts.keys(), kind.name
            assert build.cuda in {"", "{cuda}", "rocm", "11", "12", "13"} or build.cuda.startswith("@"), kind.name
    for item in parts.values():
        assert item.soname.keys() == item.requirement.keys(), item.part
