"""Driver and GPUs from every source, visibility and overrides."""

from __future__ import annotations

import json
from pathlib import Path

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.model.facts import Gpu
from envmedic.probe.elf.loader import Search
from envmedic.probe.machine import driver, gpu, nvml_child, visibility

UUIDS = ("GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333")
GPUS = tuple(Gpu(index=index, name="H200", uuid=uuid) for index, uuid in enumerate(UUIDS))
MIG = {"MIG-0f": 2}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, {0, 1, 2}),
        ("", set()),
        ("-1", set()),
        ("0", {0}),
        (" 2 , 0", {0, 2}),
        ("1,-1,2", {1}),
        ("1,7,2", {1}),
        ("0,x,1", {0}),
        ("1gpu", {1}),
        ("NoDevFiles", set()),
        ("1,1", set()),
        ("GPU-bbbb", {2}),
        ("GPU-aaaa", set()),
        ("GPU-aaaa1111,GPU-bbbb3333", {0, 2}),
        ("GPU-cccc,0", set()),
        ("MIG-0f", {2}),
        ("MIG-GPU-bbbb3333/1/0", {2}),
        ("MIG-ff", set()),
    ],
)
def test_visible_gpus(setting: str | None, expected: set[int]) -> None:
    assert visibility.visible_indices(setting, GPUS, MIG) == expected


@given(st.text(max_size=30))
def test_any_setting_leaves_a_subset_visible(setting: str) -> None:
    assert visibility.visible_indices(setting, GPUS, MIG) <= {0, 1, 2}


def test_nvml_answer_becomes_facts() -> None:
    text = json.dumps({
        "driver": "580.65.06",
        "cuda": 13000,
        "gpus": [
            {"index": 0, "name": "NVIDIA H200", "uuid": "GPU-1", "capability": [9, 0], "memory": 150, "pci": "0:1:0.0",
             "mig": ["MIG-1"]},
            {"index": 1, "name": "", "error": "GPU is lost"},
        ],
    })  # fmt: skip
    answer = driver.parse_nvml(text)
    assert isinstance(answer, dict)
    found = driver.of_nvml(answer)
    assert (found.version, found.cuda, found.source) == ("580.65.06", "13.0", "nvml")
    assert found.nvml_error == "GPU 1: GPU is lost"
    assert found.mig == {"MIG-1": 0}
    (only,) = found.gpus
    assert (only.compute_capability, only.memory_bytes, only.pci_bus_id) == ("9.0", 150, "0:1:0.0")


@pytest.mark.parametrize("text", ["", "Segmentation fault", "{"])
def test_process_of_nvml_that_says_nothing(text: str) -> None:
    assert driver.parse_nvml(text) == "NVML's process gave no answer"


def test_the_child_script_answers_in_json(capfd: pytest.CaptureFixture[str]) -> None:
    found = driver.from_nvml()
    assert found.version is not None or found.nvml_error
    answer = nvml_child.collect()
    assert ("driver" in answer) == (found.version is not None)
    assert capfd.readouterr().out == ""


def test_nvml_is_asked_where_its_library_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = {"libm.so.6": ("/lib/libm.so.6",)}
    monkeypatch.setattr(driver, "from_nvml", lambda: driver.Driver(version="580.65.06"))
    (tmp_path / "libnvidia-ml.so.1").touch()
    for search in (
        Search(cache={**elsewhere, "libnvidia-ml.so.1": ("/usr/lib/libnvidia-ml.so.1",)}, defaults=()),
        Search(cache=elsewhere, defaults=(str(tmp_path),)),
        Search(cache=elsewhere, library_path=(str(tmp_path),), defaults=()),
        Search(cache={}, defaults=()),
    ):
        assert driver._asked(search).version == "580.65.06"


def test_a_host_without_nvml_says_what_nvml_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "from_nvml", lambda: pytest.fail("asked"))
    found = driver._asked(Search(cache={"libm.so.6": ("/lib/libm.so.6",)}, defaults=()))
    assert found.nvml_error is not None
    assert str(pynvml.NVMLError_LibraryNotFound()) == found.nvml_error


def kernel_files(root: Path, *, module: bool) -> None:
    if module:
        (root / "sys/module/nvidia").mkdir(parents=True)
        (root / "sys/module/nvidia/version").write_text("550.54.15\n")
    folder = root / "proc/driver/nvidia"
    (folder / "gpus/0000:01:00.0").mkdir(parents=True)
    (folder / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\nGCC version: gcc 12.3.0\n"
    )
    (folder / "gpus/0000:01:00.0/information").write_text(
        "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 134\nGPU UUID: \t GPU-77\nBus Location: \t 0000:01:00.0\n"
    )


@pytest.mark.parametrize(
    ("module", "version", "source"),
    [
        (True, "550.54.15", "/sys/module/nvidia/version"),
        (False, "550.54.14", "/proc/driver/nvidia/version"),
    ],
)
def test_kernel_files_tell_version_and_gpus(tmp_path: Path, version: str, source: str, *, module: bool) -> None:
    kernel_files(tmp_path, module=module)
    found = driver.from_kernel(tmp_path)
    assert (found.version, found.source) == (version, source)
    expected = Gpu(index=0, name="NVIDIA GeForce RTX 4090", uuid="GPU-77", pci_bus_id="0000:01:00.0")
    assert found.gpus == (expected,)


def test_no_kernel_files_no_driver(tmp_path: Path) -> None:
    assert driver.from_kernel(tmp_path) == driver.Driver()


def test_uuid_that_the_kernel_does_not_know_yet() -> None:
    assert driver.parse_information(0, "GPU UUID: \t GPU-????????-????\n").uuid is None


def test_nvidia_smi_lines() -> None:
    text = "0, NVIDIA H200, GPU-1, 9.0, 143771, 00000000:01:00.0, 580.65.06\n1, T4, GPU-2, [N/A], [N/A], x, 580.65.06\n"
    found = driver.parse_smi(text)
    assert (found.version, found.source) == ("580.65.06", "nvidia-smi")
    assert found.gpus[0].memory_bytes == 143771 * 1024 * 1024
    assert [item.compute_capability for item in found.gpus] == ["9.0", None]
    assert driver.parse_smi("NVIDIA-SMI has failed because it couldn't communicate\n") == driver.Driver()


KNOWN = driver.Driver(version="580.1", cuda="13.0", source="nvml")


@pytest.mark.parametrize(
    ("variables", "version", "cuda", "source"),
    [
        ({}, "580.1", "13.0", "nvml"),
        ({"UV_CUDA_DRIVER_VERSION": "525.60"}, "525.60", None, "UV_CUDA_DRIVER_VERSION"),
        ({"CONDA_OVERRIDE_CUDA": "12.2"}, "580.1", "12.2", "nvml"),
        ({"CONDA_OVERRIDE_CUDA": ""}, None, None, "CONDA_OVERRIDE_CUDA"),
        ({"CONDA_OVERRIDE_CUDA": "12.2", "UV_CUDA_DRIVER_VERSION": "535"}, "535", "12.2", "UV_CUDA_DRIVER_VERSION"),
    ],
)
def test_overrides(variables: dict[str, str], version: str | None, cuda: str | None, source: str) -> None:
    found = driver.overruled(KNOWN, variables)
    assert (found.version, found.cuda, found.source) == (version, cuda, source)


def test_override_on_a_machine_without_driver_says_where_it_came_from() -> None:
    found = driver.overruled(driver.Driver(), {"CONDA_OVERRIDE_CUDA": "12.4"})
    assert (found.version, found.cuda, found.source) == (None, "12.4", "CONDA_OVERRIDE_CUDA")


@pytest.mark.parametrize(
    ("found", "setting", "expected"),
    [
        (driver.Driver(nvml_error="Library Not Found"), None, "no NVIDIA driver (Library Not Found)"),
        (driver.Driver(), None, "no NVIDIA driver"),
        (KNOWN, None, "driver 580.1 reports no GPU"),
        (driver.masked(driver.Driver(gpus=GPUS), {}), "-1", "CUDA_VISIBLE_DEVICES=-1 hides every GPU of this host"),
    ],
)
def test_reason_why_no_gpu_is_visible(found: driver.Driver, setting: str | None, expected: str) -> None:
    assert gpu.reason(found, setting) == expected


def test_visible_says_yes_or_why_not() -> None:
    answer, why = gpu.visible()
    assert answer or why


def full_host(*free: int, processes: list[list[int | None]]) -> driver.Driver:
    """What NVML says of GPUs of 144 GB, each with so many megabytes free, where these processes run on each."""
    listed = [
        {"index": index, "name": "NVIDIA H200", "uuid": f"GPU-{index}", "memory": 144 * 10**9, "free": megabytes * 10**6,
         "processes": processes}
        for index, megabytes in enumerate(free)
    ]  # fmt: skip
    return driver.of_nvml({"driver": "580.65.06", "gpus": listed})


def test_a_gpu_that_another_process_fills_is_named_before_anything_else() -> None:
    usable, why = gpu.usable(full_host(407, processes=[[4711, 143 * 10**9], [12, None]]), None)
    assert (usable, why) == (
        False,
        "GPU 0 is full (pid 4711 with 143.0 GB, pid 12; 407 of 144000 MB are free)",
    )


def test_checks_run_on_the_gpus_that_are_free() -> None:
    found = full_host(407, 140_000, processes=[[4711, 10**9]])
    usable, why = gpu.usable(found, None)
    assert usable
    assert why.endswith(": checks run on 1 of 2 GPUs")
    assert gpu.without_full(found) == "GPU-1"


def test_memory_counts_though_its_processes_cannot_be_seen_as_in_a_container() -> None:
    found = full_host(407, 140_000, processes=[])
    usable, why = gpu.usable(found, None)
    assert usable
    assert why.startswith("GPU 0 is full (by processes that are not visible from here; 407 of 144000 MB are free)")
    assert gpu.without_full(found) == "GPU-1"
