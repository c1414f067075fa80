"""The spellings of this fault in torch 1.7 to 2.15, and what looks like it and is not."""

from __future__ import annotations

from functools import cache

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader


@cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    return (loader.load_file(loader.shipped_directory() / "nms-cuda.yaml", "shipped"),)


def diagnosed(text: str) -> Diagnosis:
    playbooks = shipped()
    return diagnose(read_text(text.encode().split(b"\n"), playbooks), None, playbooks, prefix=None, log="log")


REGISTRATIONS = """

CPU: registered at /build/torchvision/csrc/ops/cpu/nms_kernel.cpp:112 [kernel]
Meta: registered at /dev/null:184 [kernel]
QuantizedCPU: registered at /build/torchvision/csrc/ops/quantized/cpu/qnms_kernel.cpp:124 [kernel]
BackendSelect: fallthrough registered at ../aten/src/ATen/core/BackendSelectFallbackKernel.cpp:3 [backend fallback]
"""


SPELLINGS = """
no-cuda-kernel | RuntimeError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend. 'torchvision::nms' is only available for these backends: [CPU, BackendSelect, Named, AutogradOther].
no-cuda-kernel | NotImplementedError: Could not run 'torchvision::deform_conv2d' with arguments from the 'AutogradCUDA' backend.{registrations}
no-cuda-kernel | [rank3]: NotImplementedError: Could not run 'torchvision::roi_align' with arguments from{newline}[rank3]: the 'CUDA' backend.
no-cuda-kernel-cut | NotImplementedError: Could not run 'torchvision::nms' with argu…
no-cuda-kernel-cut | NotImplementedError: Could not run 'torchvision::nms' with arguments from the
no-cuda-kernel-cut | NotImplementedError: Could not run 'torchvision::nms
operator-missing | torch._dynamo.exc.InternalTorchDynamoError: operator torchvision::roi_align does not exist
no-such-operator | RuntimeError: Could not find schema for torchvision::_cuda_version.
operator-attribute | AttributeError: '_OpNamespace' object has no attribute 'nms'
operator-attribute | AttributeError: '_OpNamespace' 'torchvision' object has no attribute '_cuda_version'
meta-registration | @torch._custom_ops.impl_abstract("torchvision::nms"){newline}AttributeError: module 'torch._custom_ops' has no attribute 'impl_abstract'
half-imported | ImportError: cannot import name '_meta_registrations' from partially initialized module 'torchvision'
other-cuda | RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA versions. PyTorch has CUDA Version=10.1 and torchvision has CUDA Version=10.0.
image-extension-mismatch | UserWarning: Failed to load image Python extension: 'dlopen(/x/torchvision/image.so, 0x0006): Symbol not found: __ZN3c106detail19maybe_wrap_dim_slowExxb
image-extension-mismatch | UserWarning: Failed to load image Python extension: '[WinError 127] The specified procedure could not be found'
image-extension | UserWarning: Failed to load image Python extension: '/x/torchvision/image.so: cannot open'
image-extension | UserWarning: Failed to load image Python extension:
dets-not-cuda | RuntimeError: dets must be a CUDA tensor
"""


@pytest.mark.parametrize(
    ("signature", "text"), [tuple(line.split(" | ", 1)) for line in SPELLINGS.strip().splitlines()]
)
def test_every_spelling_is_recognised_from_the_text_alone(signature: str, text: str) -> None:
    diagnosis = diagnosed(text.replace("{newline}", "\n").replace("{registrations}", REGISTRATIONS))
    assert diagnosis.verdict == "env"
    assert (diagnosis.findings[0].signature, diagnosis.findings[0].fault) == (signature, "torchvision-ops")
    assert diagnosis.findings[0].confirmed is None


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: rois must be a CUDA tensor",
        "RuntimeError: Unknown builtin op: torchvision::nms.",
        "UserWarning: Failed to load image Python extension: 'libjpeg.so.8: cannot open shared object file'If you don't plan",
    ],
)
def test_a_line_that_several_causes_share_is_ranked_but_leaves_the_verdict_open(text: str) -> None:
    diagnosis = diagnosed(text)
    assert (diagnosis.verdict, len(diagnosis.findings)) == ("unknown", 1)
    assert diagnosis.findings[0].confidence < 0.5
    assert diagnosis.reason


@pytest.mark.parametrize(
    "text",
    [
        "NotImplementedError: Could not run 'quantized::conv2d.new' with arguments from the 'CUDA' backend.",
        "NotImplementedError: Could not run 'aten::_slow_conv2d_forward' with arguments from the 'CUDA' backend.",
        "NotImplementedError: Could not run 'flash_attn::_flash_attn_forward' with arguments from the 'CUDA' backend.",
        "NotImplementedError: Could not run 'xformers::efficient_attention_forward_cutlass' with arguments from the 'CUDA' backend.",
        "NotImplementedError: Could not run 'torchaudio::forced_align' with arguments from the 'CUDA' backend.",
        "RuntimeError: nms_impl: implementation for device cuda:0 not found.",
        "ModuleNotFoundError: No module named 'mmcv._ext'",
        "RuntimeError: Not compiled with GPU support (modulated_deform_conv_forward at /x/detectron2/layers/csrc/deformable.h:120)",
        "RuntimeError: input must be a CUDA tensor",
        "RuntimeError: No such operator torchaudio::ffmpeg_StreamReader",
        "AttributeError: '_OpNamespace' 'vllm' object has no attribute 'rms_norm'",
        "AttributeError: module 'torchvision' has no attribute 'transforms'",
        "RuntimeError: operator torchao::quant_llm_linear does not exist",
        "torch.onnx.errors.UnsupportedOperatorError: Exporting the operator 'torchvision::nms' to ONNX opset version 9 is not supported.",
        "RuntimeError: boxes and scores should have same number of elements in dimension 0, got 3 and 4",
        "ERROR: torchvision 0.16.0 requires torch==2.1.0, but you have torch 2.0.1 which is incompatible.",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    ],
)  # fmt: skip
def test_what_only_looks_like_it_is_unknown(text: str) -> None:
    diagnosis = diagnosed(text)
    assert (diagnosis.verdict, diagnosis.findings) == ("unknown", ())
    assert diagnosis.reason


@pytest.mark.parametrize("text", ["{} backend.", "{}\n backend."])
def test_a_device_that_torchvision_has_no_kernels_for_is_no_fault_of_the_environment(text: str) -> None:
    message = text.format("NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'MPS'")
    diagnosis = diagnosed(message)
    assert (diagnosis.verdict, diagnosis.findings) == ("not-an-env-problem", ())
    assert "torchvision::nms" in (diagnosis.reason or "")
