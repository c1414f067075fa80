"""The checks: one row for each, with what it proves, where it runs and the faults that its failure indicates."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from envmedic.model.base import Model
from envmedic.model.registries.faults import FAULT_CLASSES, Fault
from envmedic.model.registries.registry import by_name

Profile = Literal["quick", "standard", "full"]
Devices = Literal["none", "cpu and gpu", "gpu"]


class CheckKind(Model, frozen=True, kw_only=True):
    """Static description of a check."""

    name: str
    proves: str
    """Ability of an environment that passes, as a sentence."""
    devices: Devices = "none"
    """Where it computes. ``gpu`` is for what CUDA builds alone bring: it runs on the CPU only where torch is no CUDA
    build and the user names the check."""
    profile: Profile | None
    """The smallest profile that has it; None for a check of a fault rather than of what an environment can do."""
    consumer: bool = False
    """Whether it is about the library of its name, and not about torch."""
    points_to: tuple[Fault, ...]
    """Classes of fault that its failure indicates, likeliest first. Its output may tell more."""


_LIBRARIES: Final[tuple[Fault, ...]] = ("missing-cuda-library", "nvidia-wheel-conflict", "no-kernel-image")
"""What keeps kernels of NVIDIA's libraries from running."""
_ROWS: Final = (
    CheckKind(
        name="import",
        proves="each name given is imported in a process of its own",
        profile="quick",
        points_to=(
            "half-installed",
            "extension-undefined-symbol",
            "companion-version",
            "missing-cuda-library",
            "nvidia-wheel-conflict",
            "numpy-abi",
            "libstdcxx",
            "mkl-openmp",
            "duplicate-install",
        ),
    ),
    CheckKind(
        # In no profile: ten processes for each sequence, and only after a crash does the order of imports matter.
        name="import-sequence",
        proves="the names given are imported one after the other, ten times in fresh processes, without a crash",
        profile=None,
        points_to=("native-crash", "mkl-openmp", "libstdcxx"),
    ),
    CheckKind(
        # No device: it reads torch's table of registered kernels, which works without a GPU.
        name="torchvision-dispatch",
        proves="torchvision's operators are registered for CPU (and CUDA) by the right kernels",
        profile="quick",
        points_to=("torchvision-ops", "companion-version", "half-installed"),
    ),
    CheckKind(
        name="torchvision-nms",
        proves="torchvision.ops.nms equals a reference in 64 bits, on CPU and every GPU",
        devices="cpu and gpu",
        profile="quick",
        points_to=("torchvision-ops", "no-kernel-image", "companion-version"),
    ),
    CheckKind(
        name="torchvision-many-boxes",
        proves="torchvision.ops.nms and batched_nms of 5,000 boxes equal a reference in 64 bits, on every GPU",
        devices="gpu",
        profile="quick",
        points_to=("torchvision-ops", "no-kernel-image", "companion-version"),
    ),
    CheckKind(
        name="torchvision-roi-align",
        proves="torchvision.ops.roi_align and its gradient equal a reference in 64 bits, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("torchvision-ops", "no-kernel-image", "companion-version"),
    ),
    CheckKind(
        name="torchaudio-lfilter",
        proves="torchaudio.functional.lfilter and its gradient equal a reference in 64 bits, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("companion-version", "extension-undefined-symbol", "no-kernel-image"),
    ),
    CheckKind(
        name="device-memory",
        proves="a context opens, and bytes copied to a GPU, within it, from it and between GPUs arrive unchanged",
        devices="gpu",
        profile="quick",
        points_to=("gpu-host-fault", "driver-too-old", "cpu-only-torch"),
    ),
    CheckKind(
        name="matmul",
        proves="matrix products in fp32 and bf16, on GPUs in TF32, fp16 and fp8 too, agree with fp64, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("no-kernel-image", "missing-cuda-library", "nvidia-wheel-conflict", "gpu-host-fault"),
    ),
    CheckKind(
        name="numerics",
        proves="products of fp32 numbers are as exact as this shell's settings allow, on every GPU; settings that cost accuracy or speed are told",
        devices="gpu",
        profile="standard",
        points_to=("gpu-host-fault",),
    ),
    CheckKind(
        name="conv",
        proves="convolutions in fp32 (with gradients), bf16 and on GPUs fp16 agree with fp64, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("cudnn-mismatch", "missing-cuda-library", "nvidia-wheel-conflict", "no-kernel-image"),
    ),
    CheckKind(
        name="fft",
        proves="Fourier transforms (cuFFT) equal their definition in 64 bits, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=_LIBRARIES,
    ),
    CheckKind(
        name="complex-kernels",
        proves="functions of complex numbers, which NVRTC compiles for the GPU present, equal a reference in 64 bits",
        devices="gpu",
        profile="standard",
        points_to=("nvrtc-arch", "missing-cuda-library", "nvidia-wheel-conflict"),
    ),
    CheckKind(
        name="linalg",
        proves="factors and solutions (cuSOLVER) give the matrix back in 64 bits, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=_LIBRARIES,
    ),
    CheckKind(
        name="sparse",
        proves="products of sparse matrices (cuSPARSE) equal a reference in 64 bits, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=_LIBRARIES,
    ),
    CheckKind(
        name="attention",
        proves="scaled dot product attention and its gradients equal a reference in 64 bits, by each backend that is there",
        devices="gpu",
        profile="standard",
        points_to=("cudnn-mismatch", "no-kernel-image", "nvrtc-arch"),
    ),
    CheckKind(
        name="linear",
        proves="linear layers with bias and batches of products, with gradients, in fp32, fp16, bf16 and fp64 agree with fp64, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=_LIBRARIES,
    ),
    CheckKind(
        name="recurrent",
        proves="LSTM and GRU with gradients, in fp32, fp16 and bf16, agree with their equations in 64 bits, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("cudnn-mismatch", "missing-cuda-library", "no-kernel-image"),
    ),
    CheckKind(
        name="normalization",
        proves="batch, layer, group and instance normalization with gradients agree with fp64, in three precisions, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("cudnn-mismatch", "no-kernel-image"),
    ),
    CheckKind(
        name="conv-layers",
        proves="convolutions of 1 x 1, by channel, in groups, with strides, dilated, transposed, in 1 and 3 dimensions, with gradients, agree with fp64, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("cudnn-mismatch", "missing-cuda-library", "no-kernel-image"),
    ),
    CheckKind(
        name="long-attention",
        proves="plain, causal and masked attention over 2,048 positions of width 128, with gradients, agrees with fp64, by each backend that is there",
        devices="gpu",
        profile="standard",
        points_to=("cudnn-mismatch", "no-kernel-image"),
    ),
    CheckKind(
        name="losses",
        proves="softmax, cross entropy and activations with gradients agree with fp64, in three precisions, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image",),
    ),
    CheckKind(
        name="selection",
        proves="embeddings, sort, topk, scatter, index_add and cumsum agree with loops in Python, in three precisions, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image",),
    ),
    CheckKind(
        name="pooling",
        proves="pooling and interpolation with gradients agree with fp64, in three precisions, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image", "cudnn-mismatch"),
    ),
    CheckKind(
        name="randomness",
        proves="dropout and random numbers have their distribution, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image",),
    ),
    CheckKind(
        name="training-steps",
        proves="steps of optimizers, autocast and gradient scaling agree with their formulas, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image", "half-installed"),
    ),
    CheckKind(
        name="large-tensors",
        proves="tensors of more than 2**31 elements are written, added, searched and copied right, on every GPU that has the memory",
        devices="gpu",
        profile="standard",
        points_to=("gpu-host-fault", "no-kernel-image"),
    ),
    CheckKind(
        name="async-copies",
        proves="copies from and to pinned memory that run beside other work arrive unchanged, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("gpu-host-fault", "driver-too-old"),
    ),
    CheckKind(
        name="triton-kernel",
        proves="kernels that Triton compiles for the GPU present agree with fp64, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("companion-version", "extension-build-toolchain", "half-installed"),
    ),
    CheckKind(
        name="autograd",
        proves="gradients of a small network agree with finite differences, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image", "missing-cuda-library"),
    ),
    CheckKind(
        name="streams",
        proves="work on streams that wait for each other, and a replayed CUDA graph, have their exact results on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("gpu-host-fault", "driver-too-old"),
    ),
    CheckKind(
        name="all-reduce",
        proves="the sum of a process for each GPU (NCCL), and the numbers of each, arrive at all of them; with one GPU, that NCCL starts",
        devices="gpu",
        profile="standard",
        points_to=("missing-cuda-library", "nvidia-wheel-conflict", "gpu-host-fault"),
    ),
    CheckKind(
        # a repair has it only where what it compiles with changed: it runs compilers, which takes far longer than a kernel
        name="torch-compile",
        proves="a function compiled by torch.compile (Triton) equals a reference in 64 bits, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("companion-version", "extension-build-toolchain", "nvrtc-arch"),
    ),
    CheckKind(
        name="bandwidth",
        proves="how many bytes a second each GPU's memory and its way to the host's move, which is compared with what they can",
        devices="gpu",
        profile="full",
        points_to=("gpu-host-fault",),
    ),
    CheckKind(
        name="extension-smoke",
        proves="each extension package that is installed and known computes right, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("no-kernel-image", "extension-undefined-symbol", "companion-version", "cuda-arch-list"),
    ),
    CheckKind(
        name="extension-build",
        proves="a small extension compiles with torch's builder, loads and computes, on CPU and every GPU",
        devices="cpu and gpu",
        profile="full",
        points_to=("cuda-toolkit-mismatch", "cuda-arch-list", "extension-build-toolchain", "no-kernel-image"),
    ),
    CheckKind(
        name="jax",
        proves="a JAX with a CUDA plugin opens its libraries, and a compiled product, a convolution and a transform agree with fp64, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("companion-version", "missing-cuda-library", "cudnn-mismatch", "nvidia-wheel-conflict"),
        consumer=True,
    ),
    CheckKind(
        name="tensorflow",
        proves="TensorFlow uses the device that is asked for, and a product and a convolution agree with fp64, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("missing-cuda-library", "cudnn-mismatch", "no-kernel-image"),
        consumer=True,
    ),
    CheckKind(
        name="cupy",
        proves="CuPy opens its libraries and compiles, and a raw kernel and a product by cuBLAS agree with fp64 on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("missing-cuda-library", "duplicate-install", "nvrtc-arch"),
        consumer=True,
    ),
    CheckKind(
        name="cudf",
        proves="sums and sums by groups of cuDF equal those of Python, on every GPU",
        devices="gpu",
        profile="standard",
        points_to=("companion-version", "missing-cuda-library", "no-kernel-image"),
        consumer=True,
    ),
    CheckKind(
        name="numba",
        proves="Numba compiles for GPUs, and its kernels equal their formula, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("missing-cuda-library", "companion-version"),
        consumer=True,
    ),
    CheckKind(
        name="onnxruntime",
        proves="a session of onnxruntime runs on the provider that is asked for, and agrees with fp64, on CPU and every GPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("duplicate-install", "missing-cuda-library", "cpu-only-torch", "no-kernel-image"),
        consumer=True,
    ),
    CheckKind(
        name="ctranslate2",
        proves="a small decoder of CTranslate2 has finite scores, and on every GPU those of the CPU",
        devices="cpu and gpu",
        profile="standard",
        points_to=("missing-cuda-library", "cudnn-mismatch", "no-kernel-image"),
        consumer=True,
    ),
    CheckKind(
        # Relative to the state before: working environments often have unmet requirements, which no repair asked for.
        name="pip-check",
        proves="no distribution lacks a requirement that it had before",
        profile="standard",
        points_to=("companion-version", "unsatisfiable", "half-installed"),
    ),
    CheckKind(
        # In no profile: only a repair of these programs asks.
        name="programs",
        proves="each program given starts: a binary with --version, and of a script the Python of its first line",
        profile=None,
        points_to=("half-installed",),
    ),
    CheckKind(
        # In no profile, as is `command`: these two are about the fault or the command of one repair.
        name="facts",
        proves="no fact confirms the fault any more; without a playbook: none confirms a fault that was not there before",
        profile=None,
        points_to=(),
    ),
    CheckKind(
        name="command",
        proves="the user's own command exits with 0",
        profile=None,
        points_to=(),
    ),
)
CHECKS: Mapping[str, CheckKind] = MappingProxyType(by_name(_ROWS))
"""Every check, by its name. Those of kernels have their code in ``envmedic/kernels/catalogue.py``."""
# Without the structs, for completion and the loader: most callers need names and sentences only.
CHECK_NAMES: Mapping[str, str] = MappingProxyType({row.name: row.proves for row in _ROWS})
"""Every check that a playbook or ``verify --check`` may name, with what it proves."""
GPU_CHECKS = frozenset(row.name for row in _ROWS if row.devices != "none")
"""Checks with outcomes on GPUs: `Check.gpu` makes no sense for the others."""
CONSUMER_CHECKS = frozenset(row.name for row in _ROWS if row.consumer)
"""Checks of what computes without torch; `compat.consumers` says which library has which."""
_PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)
PROFILES: Mapping[Profile, tuple[str, ...]] = MappingProxyType({
    # profiles are nested: each has the checks of those before it in `Profile`
    profile: tuple(row.name for row in _ROWS if row.profile in _PROFILES[: place + 1])
    for place, profile in enumerate(_PROFILES)
})  # fmt: skip
"""Checks of ``--profile``; ``full`` runs the numerical ones with `FULL_ROUNDS` different inputs, ``quick`` imports of
an environment with torch the torch family alone."""


def _require_shown() -> None:
    """Raise LookupError for a class of fault that no check points to, unless its row says that none does."""
    shown = {fault for row in _ROWS for fault in row.points_to}
    for fault in FAULT_CLASSES.values():
        if fault.shown_by_checks != (fault.name in shown):
            raise LookupError(
                f"{fault.name!r} has shown_by_checks={fault.shown_by_checks} in envmedic/model/registries/faults.py: name it in "
                "`points_to` of the checks that fail with it, in envmedic/model/registries/check_kinds.py, or set it to False"
            )


# at import, so that a new class of fault without a check fails on the first run
_require_shown()
