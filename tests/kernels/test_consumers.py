"""The checks of JAX, CuPy and others pass on a sound stand-in, and each fails on what breaks there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kernels.driving import KERNELS, drive

STAND_IN = Path(__file__).parent / "consumer_stand_in"
CPU = ("--devices", "cpu", "--checks")


def run(check: str, fault: str = "", *, limit: str = "120") -> dict[str, tuple[str, str]]:
    """Status and reason of each part of a check, by part and device."""
    found = drive(*CPU, check, "--timeout", limit, path=STAND_IN, FAULT=fault)
    return {
        f"{part} {device or ''}".strip(): (item["status"], item["reason"]) for (part, device), item in found.items()
    }


def test_sound_ones_pass() -> None:
    found = run("jax,cupy")
    passed = {"jax-plugin", "jax cpu", "cupy-libraries"}
    assert {name: found[name][0] for name in passed} == dict.fromkeys(passed, "pass")


@pytest.mark.parametrize("place", ["product", "convolution", "transform"])
@pytest.mark.parametrize("kind", ["wrong", "nan"])
def test_a_wrong_result_of_jax_is_seen(kind: str, place: str) -> None:
    status, reason = run("jax", f"{kind} at {place}")["jax cpu"]
    assert status == "fail"
    assert "largest relative error" in reason


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("crash at product", "crash", "SIGSEGV"),
        ("hang at product", "timeout", "no end"),
        ("cpu", "fail", "Unknown backend"),
    ],
)
def test_jax_that_crashes_hangs_or_goes_on_elsewhere_fails(fault: str, status: str, words: str) -> None:
    found = run("jax", fault, limit="5")["jax cpu"]
    assert found[0] == status
    assert words in found[1]


@pytest.mark.parametrize(
    ("fault", "words"),
    [("other release", "'0.6.0', expected '0.6.2'"), ("no cudnn", "cuDNN not found"), ("old cudnn", "90100 is there")],
)
def test_a_plugin_that_jax_would_not_use_fails(fault: str, words: str) -> None:
    found = run("jax", fault)
    assert found["jax-plugin"][0] == "fail"
    assert words in found["jax-plugin"][1]
    assert found["jax cpu"][0] == "pass", "JAX itself goes on"


@pytest.mark.parametrize("fault", ["missing at cublas", "missing at cufft", "wrong at compiler"])
def test_cupy_without_a_library_or_a_compiler_fails(fault: str) -> None:
    assert run("cupy", fault)["cupy-libraries"][0] == "fail"


def test_what_is_not_installed_is_skipped() -> None:
    found = run("onnxruntime,tensorflow,ctranslate2,numba,cudf")
    assert {item[0] for item in found.values()} == {"skip"}
    assert all("not installed" in reason or "GPUs alone" in reason for _, reason in found.values())


def test_the_model_that_is_written_by_hand_has_the_fields_of_onnx() -> None:
    sys.path.insert(0, str(KERNELS))
    try:
        from consumers import onnx_model  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(KERNELS))
    model: bytes = onnx_model.product_and_convolution(48, 16)
    assert model[:2] == b"\x08\x08", "ir_version 8"
    assert model[-4:] == b"\x42\x02\x10\x0d", "opset 13"
    for name in (b"MatMul", b"Conv", b"left", b"kernel", b"moved"):
        assert name in model
