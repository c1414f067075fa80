"""Checks of GPU libraries pass on a sound stand-in, and each fails on wrong results, a missing kernel, a crash, a hang."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.kernels.driving import KERNELS, STAND_IN, Key, drive, outcomes, spec, statuses

ON_CPU = {
    "device-memory": ("copy", ["last at copy within cpu", "shift at copy within cpu"]),
    "fft": ("fft", ["element at fft", "zeros at rfft", "last at irfft", "nan at fft"]),
    "complex-kernels": ("complex exp", ["element at complex abs", "zeros at complex tan", "element at complex prod",
                                        "last at complex log", "element at complex sqrt", "zeros at complex prod"]),
    "linalg": ("cholesky", ["element at cholesky", "zeros at q of qr", "shift at r of qr", "last at eigenvalues",
                            "element at eigenvectors", "zeros at solve"]),
    "sparse": ("sparse product", ["element at sparse product", "zeros at sparse product", "nan at sparse product"]),
    "attention": ("default attention", ["element at default attention", "zeros at default attention",
                                        "last at default attention query gradient",
                                        "zeros at default attention key gradient",
                                        "shift at default attention value gradient"]),
    "autograd": ("softmax", ["element at tanh gradient", "zeros at matmul gradient", "shift at tanh gradient"]),
    "torch-compile": ("compiled", ["element at compiled", "zeros at compiled", "last at compiled"]),
    "all-reduce": ("gloo of rank 1", ["element at all-reduce of rank 1", "zeros at all-reduce of rank 0"]),
    "torchaudio-lfilter": ("lfilter", ["element at lfilter", "last at lfilter gradient", "zeros at lfilter"]),
}  # fmt: skip
"""Check → the place where it can be made to fail, and wrong results."""
ALL = ",".join(ON_CPU)
MOST = max(len(faults) for _, faults in ON_CPU.values())


def everywhere(what: str) -> str:
    """`what` at the place of every check."""
    return ";".join(f"{what} at {place}" for place, _ in ON_CPU.values())


def on_cpu(fault: str, *options: str) -> dict[str, dict[str, Any]]:
    found = drive("--devices", "cpu", "--checks", ALL, *options, FAULT=fault)
    return {check: outcome for (check, _), outcome in found.items()}


def test_they_pass_on_a_sound_torch() -> None:
    found = on_cpu("")
    assert {check: outcome["status"] for check, outcome in found.items()} == dict.fromkeys(ON_CPU, "pass")
    for check, outcome in found.items():
        assert 0 <= outcome["max_relative_error"] <= outcome["tolerance"] < 1e-4, check
        assert "seed" in outcome["reason"]


@pytest.mark.parametrize("number", range(MOST))
def test_wrong_results_fail(number: int) -> None:
    """Each check with one of its faults; those of other checks are at places that it does not use."""
    chosen = {check: faults[number] for check, (_, faults) in ON_CPU.items() if number < len(faults)}
    found = on_cpu(";".join(chosen.values()))
    assert {check: outcome["status"] for check, outcome in found.items()} == {
        check: "fail" if check in chosen else "pass" for check in ON_CPU
    }


def test_a_missing_kernel_fails_with_its_message() -> None:
    for check, outcome in on_cpu(everywhere("error")).items():
        assert outcome["status"] == "fail", check
        assert outcome["reason"].endswith(f"RuntimeError: {ON_CPU[check][0]} is broken")


def test_a_crash_ends_its_check_alone() -> None:
    for check, outcome in on_cpu(everywhere("segfault")).items():
        assert (outcome["status"], outcome["signal"]) == ("crash", "SIGSEGV"), check
        assert "Segmentation fault" in outcome["detail"]


@pytest.mark.long
def test_what_does_not_end_is_ended() -> None:
    found = on_cpu(everywhere("hang"), "--timeout", "1")
    assert {check: outcome["status"] for check, outcome in found.items()} == dict.fromkeys(ON_CPU, "timeout")


SMALL = """
import sys
sys.path.insert(0, {kernels!r})
import driver
driver.__file__ = {kernels!r} + "/driver.py"
driver.package()
from envmedic_kernels import session
from envmedic_kernels.checks import algebra, attention, dense, memory, queues, transforms
for sizes in (algebra.ORDERS, algebra.SPARSE, attention.SHAPES, dense.MATMUL_SHAPES, dense.CONV_SHAPES, memory.SIZES,
              transforms.LENGTHS):
    sizes["gpu"] = sizes["cpu"]
memory.SIZES["gpu"], queues.COUNT, dense.FP8_SHAPE = (1, 999), 500, (16, 32, 16)
sys.exit(session.main({arguments!r}))
"""
GPU = "cuda:0 Stand-in GPU"
ON_GPU = {
    "device-memory": ("copy", ["last at copy to cuda:0", "zeros at copy to cpu"]),
    "matmul-tf32": ("matmul", ["element at tf32 matmul on cuda:0"]),
    "matmul-fp16": ("matmul", ["zeros at float16 matmul on cuda:0"]),
    "matmul-fp8": ("fp8", ["element at fp8", "zeros at fp8"]),
    "conv-fp16": ("conv2d", ["zeros at float16 conv2d on cuda:0"]),
    "complex-kernels-own": ("jiterator", ["element at jiterator", "nan at jiterator"]),
    "sparse": ("sparse product", ["zeros at float32 matmul on cuda:0"]),
    "attention-math": ("math attention", ["element at math attention"]),
    "attention-flash": ("flash attention", ["zeros at flash attention", "last at flash attention value gradient"]),
    "attention-efficient": ("efficient attention", ["zeros at efficient attention query gradient"]),
    "attention-cudnn": ("cudnn attention", ["nan at cudnn attention"]),
    "streams": ("wait_stream", ["early at add", "last at mul"]),
    "streams-graph": ("replay", ["half at replay", "early at add", "zeros at mul"]),
    "all-reduce": ("nccl of rank 0", ["element at all-reduce of rank 0"]),
}  # fmt: skip
OF_GPUS = "device-memory,matmul,conv,complex-kernels,sparse,attention,streams,all-reduce"


def on_gpu(fault: str, *options: str, **variables: str) -> dict[Key, dict[str, Any]]:
    script = SMALL.format(kernels=str(KERNELS), arguments=list(options) or ["--checks", OF_GPUS])
    settings = {"PYTHONPATH": str(STAND_IN), "GPUS": "1", "CUDA_BUILD": "12.4", "FAULT": fault, **variables}
    argv = [sys.executable, "-B", "-c", script]
    done = subprocess.run(argv, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    return outcomes(done.stdout)


def of_gpu(found: dict[Key, dict[str, Any]], check: str) -> dict[str, Any]:
    return found[check, "cuda" if check == "all-reduce" else GPU]


def test_parts_for_gpus_pass_and_others_are_not_repeated_on_the_cpu() -> None:
    found = on_gpu("")
    assert set(statuses(found).values()) == {"pass"}
    assert {check for check, device in found if device != "cpu"} >= set(ON_GPU)
    assert {check for check, device in found if device == "cpu"} == {
        "matmul-fp32", "matmul-bf16", "conv-fp32", "conv-bf16",
    }  # fmt: skip


@pytest.mark.parametrize("number", range(max(len(faults) for _, faults in ON_GPU.values())))
def test_wrong_results_of_a_gpu_fail(number: int) -> None:
    chosen = {check: faults[number] for check, (_, faults) in ON_GPU.items() if number < len(faults)}
    found = on_gpu(";".join(chosen.values()))
    assert {check: of_gpu(found, check)["status"] for check in chosen} == dict.fromkeys(chosen, "fail")


@pytest.mark.long
@pytest.mark.parametrize(("what", "status"), [("error", "fail"), ("segfault", "crash"), ("hang", "timeout")])
def test_kernels_of_a_gpu_that_are_missing_crash_or_hang(what: str, status: str) -> None:
    limits = dict.fromkeys(OF_GPUS.split(","), 1.0 if what == "hang" else 60.0)
    options = ("--spec", spec({**limits, "fft": 60.0}))  # the longest limit is that of importing torch
    found = on_gpu(";".join(f"{what} at {place}" for place, _ in ON_GPU.values()), *options)
    assert {check: of_gpu(found, check)["status"] for check in ON_GPU} == dict.fromkeys(ON_GPU, status)


def test_what_a_gpu_or_a_backend_cannot_have_is_not_held_against_it() -> None:
    found = on_gpu("flash takes nothing", CAPABILITY="7.5")
    for check in ("matmul-tf32", "matmul-fp8", "attention-flash"):
        assert (found[check, GPU]["status"], found[check, GPU]["applicable"]) == ("skip", False), check
    assert found["matmul-tf32", GPU]["reason"] == "TF32 needs compute capability 8.0, this GPU has 7.5"
    assert found["attention-efficient", GPU]["status"] == "pass"


def test_an_old_torch_has_no_attention_and_a_new_one_must_have_it() -> None:
    old = drive("--devices", "cpu", "--checks", "attention,torch-compile", TORCH="1.13.1+cpu")
    assert {(outcome["status"], outcome["applicable"]) for outcome in old.values()} == {("skip", False)}
    assert old["attention", "cpu"]["reason"] == (
        "torch 1.13.1+cpu has no scaled_dot_product_attention: it came with 2.0"
    )


def test_a_check_for_gpus_alone_says_so_where_there_is_none_to_be_asked_for() -> None:
    found = drive("--devices", "cpu", "--checks", "streams")
    assert {(item["status"], item["applicable"], item["reason"]) for item in found.values()} == {
        ("skip", False, "streams are for GPUs")
    }


def test_a_torchaudio_that_cannot_be_imported_leaves_torch_its_checks() -> None:
    found = drive("--devices", "cpu", "--checks", "fft,torchaudio-lfilter", FAULT="abort at import torchaudio")
    assert statuses(found) == {("fft", "cpu"): "pass", ("torchaudio-lfilter", "cpu"): "crash"}
    assert found["torchaudio-lfilter", "cpu"]["reason"] == "import torchaudio: ended by SIGABRT"
