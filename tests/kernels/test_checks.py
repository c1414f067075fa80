"""Each check passes on a sound stand-in and fails on a broken one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.kernels.driving import KERNELS, STAND_IN, drive, outcomes, statuses

CHOSEN = ("--devices", "cpu", "--checks", "matmul,conv,torchvision-nms,torchvision-roi-align,torchvision-dispatch")
CPU_CHECKS = {
    ("matmul-fp32", "cpu"), ("matmul-bf16", "cpu"), ("conv-fp32", "cpu"), ("conv-bf16", "cpu"),
    ("torchvision-nms", "cpu"), ("torchvision-roi-align", "cpu"), ("torchvision-dispatch", None),
}  # fmt: skip


def test_every_check_passes_on_a_sound_torch_and_says_how_near_it_came() -> None:
    found = drive(*CHOSEN)
    assert statuses(found) == dict.fromkeys(CPU_CHECKS, "pass")
    for check in ("matmul-fp32", "matmul-bf16", "conv-fp32", "conv-bf16", "torchvision-roi-align"):
        outcome = found[check, "cpu"]
        assert 0 < outcome["max_relative_error"] < outcome["tolerance"] < 0.02
        assert outcome["seconds"] > 0
        assert "seed" in outcome["reason"]


def test_more_rounds_use_other_inputs() -> None:
    one = drive("--devices", "cpu", "--checks", "matmul")["matmul-fp32", "cpu"]
    again = drive("--devices", "cpu", "--checks", "matmul")["matmul-fp32", "cpu"]
    other = drive("--devices", "cpu", "--checks", "matmul", "--seed", "7")["matmul-fp32", "cpu"]
    assert one["max_relative_error"] == again["max_relative_error"] != other["max_relative_error"]


WRONG = [
    ("element at float32 matmul", "matmul-fp32", "largest relative error"),
    ("zeros at float32 matmul", "matmul-fp32", "largest relative error"),
    ("nan at float32 matmul", "matmul-fp32", "largest relative error inf"),
    ("zeros at bfloat16 matmul", "matmul-bf16", "largest relative error"),
    ("last at bfloat16 matmul", "matmul-bf16", "largest relative error"),
    ("element at matmul", "matmul-fp32", "the fp64 reference itself|largest relative error"),
    ("element at float32 conv2d", "conv-fp32", "conv fp32 forward"),
    ("last at bfloat16 conv2d", "conv-bf16", "conv bf16 forward"),
    ("element at conv2d input gradient", "conv-fp32", "conv fp32 input"),
    ("last at conv2d weight gradient", "conv-fp32", "conv fp32 weight"),
    ("element at conv2d", "conv-fp32", "the fp64 reference itself|largest relative error"),
    ("keeps all at nms", "torchvision-nms", "nms of .* boxes"),
    ("order at nms", "torchvision-nms", "nms of .* boxes"),
    ("empty at nms on cpu", "torchvision-nms", "nms of 1 boxes"),
    ("element at roi_align", "torchvision-roi-align", "roi_align result"),
    ("element at roi_align gradient", "torchvision-roi-align", "roi_align gradient"),
    ("no offset at roi_align", "torchvision-roi-align", "roi_align result"),
    ("no CPU kernel", "torchvision-dispatch", "torchvision::nms has no kernel for CPU"),
    ("no ops", "torchvision-dispatch", "could not load its compiled operators"),
    ("shifted keys", "torchvision-dispatch", "ops/cuda/nms_kernel.cpp.*compiled for another torch"),
    ("error at nms", "torchvision-nms", "RuntimeError: nms is broken$"),
    ("error at matmul", "matmul-fp32", "RuntimeError: matmul is broken$"),
]


@pytest.mark.parametrize(("fault", "check", "reason"), WRONG, ids=lambda text: text)
def test_a_wrong_result_fails_its_check(fault: str, check: str, reason: str) -> None:
    import re

    name = {"matmul-fp32": "matmul", "matmul-bf16": "matmul", "conv-fp32": "conv", "conv-bf16": "conv"}
    found = drive("--devices", "cpu", "--checks", name.get(check, check), FAULT=fault)
    outcome = found[check, None if check == "torchvision-dispatch" else "cpu"]
    assert outcome["status"] == "fail"
    assert re.search(reason, outcome["reason"]), outcome["reason"]


def test_one_broken_check_leaves_the_others_alone() -> None:
    found = statuses(drive(*CHOSEN, FAULT="zeros at bfloat16 matmul"))
    assert found.pop(("matmul-bf16", "cpu")) == "fail"
    assert set(found.values()) == {"pass"}


def test_cuda_kernels_are_asked_for_when_torch_is_a_cuda_build_even_without_a_gpu() -> None:
    check = ("--checks", "torchvision-dispatch")
    assert statuses(drive(*check, FAULT="no CUDA kernel")) == {("torchvision-dispatch", None): "pass"}
    outcome = drive(*check, FAULT="no CUDA kernel", CUDA_BUILD="12.4")["torchvision-dispatch", None]
    assert outcome["status"] == "fail"
    assert outcome["reason"] == "torchvision::nms has no kernel for CUDA"


def test_a_torch_that_cannot_list_kernels_says_what_was_not_checked() -> None:
    outcome = drive("--checks", "torchvision-dispatch", FAULT="old torch")["torchvision-dispatch", None]
    assert outcome["status"] == "pass"
    assert "cannot list kernels" in outcome["reason"]


def test_without_a_gpu_its_checks_are_skipped_with_the_reason() -> None:
    found = drive("--checks", "torchvision-nms", CUDA_BUILD="12.4")
    assert statuses(found) == {("torchvision-nms", "cpu"): "pass", ("torchvision-nms", "cuda"): "skip"}
    assert found["torchvision-nms", "cuda"]["reason"] == (
        "no GPU is visible: RuntimeError: Found no NVIDIA driver on your system."
    )
    assert "not a CUDA build" in drive("--checks", "torchvision-nms")["torchvision-nms", "cuda"]["reason"]


def test_every_visible_gpu_has_an_outcome_and_a_broken_one_shows() -> None:
    settings = {"GPUS": "2", "CUDA_BUILD": "12.4", "FAULT": "empty at nms on cuda:1"}
    found = drive("--checks", "torchvision-nms", variables=settings)
    assert statuses(found) == {
        ("torchvision-nms", "cpu"): "pass",
        ("torchvision-nms", "cuda:0 Stand-in GPU"): "pass",
        ("torchvision-nms", "cuda:1 Stand-in GPU"): "fail",
    }


def test_a_result_on_another_device_fails() -> None:
    settings = {"GPUS": "1", "CUDA_BUILD": "12.4", "FAULT": "wrong device at nms"}
    outcome = drive("--checks", "torchvision-nms", variables=settings)["torchvision-nms", "cuda:0 Stand-in GPU"]
    assert outcome["status"] == "fail"
    assert "device of the kept indices" in outcome["reason"]


SMALL = """
import sys
sys.path.insert(0, {kernels!r})
import driver
driver.__file__ = {kernels!r} + "/driver.py"
driver.package()
from envmedic_kernels import session
from envmedic_kernels.checks import dense
dense.MATMUL_SHAPES = dict(dense.MATMUL_SHAPES, gpu=((20, 30, 10),))
dense.CONV_SHAPES = dict(dense.CONV_SHAPES, gpu=((1, 2, 3, 9, 2),))
dense.FP8_SHAPE = (16, 32, 16)
sys.exit(session.main(["--checks", "matmul,conv"]))
"""


@pytest.mark.parametrize("fault", ["", "zeros at bfloat16 matmul on cuda:0", "zeros at float32 conv2d on cuda:0"])
def test_dense_checks_use_the_gpu(fault: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(STAND_IN), "GPUS": "1", "CUDA_BUILD": "12.4", "FAULT": fault}
    script = SMALL.format(kernels=str(KERNELS))
    argv = [sys.executable, "-B", "-c", script]
    found = outcomes(subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout)
    failed = {key for key, status in statuses(found).items() if status != "pass"}
    assert len(found) == 12
    expected = {
        "": set[object](),
        "z": {(("matmul-bf16" if "matmul" in fault else "conv-fp32"), "cuda:0 Stand-in GPU")},
    }
    assert failed == expected[fault[:1]]


def test_a_cpu_torch_from_before_bf16_is_not_held_against_it_and_a_newer_one_is() -> None:
    outcome = drive("--devices", "cpu", "--checks", "matmul", FAULT="no bf16")["matmul-bf16", "cpu"]
    assert outcome["status"] == "fail"
    outcome = drive("--devices", "cpu", "--checks", "matmul", FAULT="no bf16", TORCH="1.10.2")["matmul-bf16", "cpu"]
    assert (outcome["status"], outcome["applicable"]) == ("skip", False)
