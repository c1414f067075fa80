"""The condition of GPUs: through the real binding from an NVML of our own, from the kernel's log, and judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envmedic.diagnosis.gpu_warnings import judged
from envmedic.model.answers.gpu_health import GpuHealth, GpuProcess, HostGpus, Xid
from envmedic.probe.machine import driver, gpu_health, nvml_child

SOURCE = Path(__file__).parents[1] / "support" / "nvml.c"
LOG = """\
6,1,1,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.65.06
4,2,2,-;NVRM: Xid (PCI:0000:19:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
4,3,3,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, Ch 00000008
4,4,4,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=4712, name=python, Ch 00000008
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The child's answer with that library in the place of NVML."""
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", SOURCE], check=True)
    argv = [sys.executable, "-I", "-B", nvml_child.__file__, "--health"]
    variables = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, check=True)
    found = driver.parse_nvml(done.stdout)
    assert isinstance(found, dict)
    return found


def test_what_nvml_says_of_each_gpu(answer: dict[str, Any]) -> None:
    found = gpu_health.parse(answer, LOG)
    sick, sound = found.gpus
    assert (sick.ecc, sick.errors_corrected, sick.errors_uncorrected, sick.errors_uncorrected_ever) == (False, 5, 3, 9)
    assert (sick.remapped_rows, sick.remapped_after_uncorrected, sick.remap_pending, sick.remap_failed) == (
        2,
        2,
        True,
        False,
    )
    assert (sick.throttled, sound.throttled) == (("hardware thermal slowdown",), ("power cap",))
    assert (sick.temperature_c, sick.slowdown_c, sick.power_w, sick.power_limit_w) == (88, 90, 70.5, 700.0)
    assert (sound.sm_mhz, sound.sm_most_mhz, sound.memory_mhz, sound.memory_most_mhz) == (345, 1980, 2619, 2619)
    assert sound.memory_gb_s == pytest.approx(3352, rel=1e-3)
    assert (sick.pcie_generation, sick.pcie_generation_most, sick.pcie_lanes, sick.pcie_lanes_most) == (1, 5, 8, 16)
    assert (sick.nvlinks, sick.nvlinks_active, sick.nvlink_errors, sound.nvlinks) == (4, 3, 7, 0)
    assert (sick.compute_mode, sick.mig, sound.compute_mode, sound.mig) == ("exclusive-process", True, "default", False)
    assert found.xids == (Xid(number=31, pci="0000:3b:00", count=2), Xid(number=79, pci="0000:19:00"))


def test_the_driver_is_read_as_ever_from_the_same_answer(answer: dict[str, Any]) -> None:
    found = driver.of_nvml(answer)
    assert (found.version, [gpu.uuid for gpu in found.gpus]) == ("580.65.06", ["GPU-0", "GPU-1"])


def test_a_sick_gpu_is_told_in_sentences_and_a_sound_one_is_not(answer: dict[str, Any]) -> None:
    told = judged(gpu_health.parse(answer, LOG)).warnings
    assert not [text for text in told if text.startswith("GPU 1")]
    for part in (
        "ECC is off", "3 memory errors that could not be corrected", "waits to be replaced", "because of heat",
        "88 °C, and slows down at 90 °C", "8 of 16 lanes of PCIe", "3 of 4 NVLinks are up",
        "one process at a time", "MIG is on and it has no instance", "Xid 79 of the GPU at 0000:19:00",
    ):  # fmt: skip
        assert [text for text in told if part in text], part
    assert not [text for text in told if "Xid 31" in text], "an error of a program"


SOUND = GpuHealth(
    index=0, name="H100", memory_most_mhz=2619, memory_bus_bits=5120, pcie_generation_most=5, pcie_lanes_most=16
)


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        ({"memory_gb_s": 2900.0, "to_gpu_gb_s": 52.0, "from_gpu_gb_s": 51.0}, ""),
        (
            {"memory_gb_s": 1500.0, "to_gpu_gb_s": 52.0, "from_gpu_gb_s": 51.0},
            "its memory moves 1500 GB/s of 3352 GB/s",
        ),
        ({"memory_gb_s": 2900.0, "to_gpu_gb_s": 12.0, "from_gpu_gb_s": 51.0}, "copies to the GPU run at 12.0 GB/s"),
        ({"memory_gb_s": 2900.0, "to_gpu_gb_s": 52.0, "from_gpu_gb_s": 9.5}, "copies from the GPU run at 9.5 GB/s"),
    ],
)
def test_what_was_measured_is_compared_with_what_the_gpu_can(measured: dict[str, float], told: str) -> None:
    found = judged(HostGpus(gpus=(SOUND,)), [("H100", measured)]).warnings
    assert (told in found[0] and len(found) == 1) if told else not found


def test_programs_that_use_a_gpu_are_named() -> None:
    busy = GpuHealth(index=0, processes=(GpuProcess(pid=4711, bytes=10**9), GpuProcess(pid=4712)))
    assert judged(HostGpus(gpus=(busy,))).warnings == ("GPU 0: other programs use it: pid 4711 with 1.0 GB, pid 4712",)


def test_without_nvml_or_the_log_it_is_said(tmp_path: Path) -> None:
    found = gpu_health.parse("NVML Shared Library Not Found", None)
    assert (found.error, found.xids, found.gpus) == ("NVML Shared Library Not Found", None, ())
    assert gpu_health.read_log(tmp_path / "absent") is None
    lost = gpu_health.parse(json.loads('{"gpus": [{"index": 0, "error": "GPU is lost"}]}'), "")
    assert judged(lost).warnings == ("GPU 0: it cannot be asked: GPU is lost",)
