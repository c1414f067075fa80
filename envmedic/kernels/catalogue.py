"""Catalogue of the checks: their parts, the module that each imports, and the devices of each part."""

from __future__ import annotations

import functools

from envmedic_kernels.checks import (
    algebra,
    attention,
    audio,
    bandwidth,
    collective,
    compiled,
    dense,
    extension,
    memory,
    numerics,
    operators,
    queues,
    smoke,
    transforms,
)
from envmedic_kernels.consumers import (
    with_ctranslate2,
    with_cudf,
    with_cupy,
    with_jax,
    with_numba,
    with_onnxruntime,
    with_tensorflow,
)
from envmedic_kernels.harness.units import Unit
from envmedic_kernels.training import (
    convolutions,
    large,
    linear,
    long_attention,
    losses,
    normalization,
    pooling,
    randomness,
    recurrent,
    selection,
    steps,
    triton_kernel,
)

EVERYWHERE = "the CPU and every GPU"
RATHER_GPU = "every GPU, and where no GPU is asked for the CPU"
GPU_ONLY = "every GPU"
ALL_GPUS = "all GPUs together, and where no GPU is asked for the CPU"
NOWHERE = "no device"


def _of_kind(check, *kinds):
    """A function that runs `check` in each of `kinds`, by kind."""
    return {kind: functools.partial(check, kind=kind) for kind in kinds}


def _precisions(name, check, *more):
    """The parts of a check of training: fp32 wherever it runs, the other precisions on GPUs alone."""
    return (
        (name + "-fp32", functools.partial(check, kind="fp32"), RATHER_GPU),
        (name + "-fp16", functools.partial(check, kind="fp16"), GPU_ONLY),
        (name + "-bf16", functools.partial(dense.bf16, check), GPU_ONLY),
        *((name + "-" + kind, functools.partial(check, kind=kind), GPU_ONLY) for kind in more),
    )


_MATMUL = _of_kind(dense.matmul, "fp32", "tf32", "fp16")
_CONV = _of_kind(dense.conv, "fp32", "fp16")
ON_TORCH = {
    "device-memory": (("device-memory", memory.memory, RATHER_GPU),),
    "matmul": (
        ("matmul-fp32", _MATMUL["fp32"], EVERYWHERE),
        ("matmul-bf16", functools.partial(dense.bf16, dense.matmul), EVERYWHERE),
        ("matmul-tf32", functools.partial(dense.tf32, dense.matmul), GPU_ONLY),
        ("matmul-fp16", _MATMUL["fp16"], GPU_ONLY),
        ("matmul-fp8", dense.fp8, GPU_ONLY),
    ),
    "numerics": (("numerics", numerics.check, GPU_ONLY),),
    "conv": (
        ("conv-fp32", _CONV["fp32"], EVERYWHERE),
        ("conv-bf16", functools.partial(dense.bf16, dense.conv), EVERYWHERE),
        ("conv-fp16", _CONV["fp16"], GPU_ONLY),
    ),
    "fft": (("fft", transforms.fft, RATHER_GPU),),
    "complex-kernels": (
        ("complex-kernels", transforms.complex_kernels, RATHER_GPU),
        ("complex-kernels-own", transforms.jiterator, GPU_ONLY),
    ),
    "linalg": (("linalg", algebra.linalg, RATHER_GPU),),
    "sparse": (("sparse", algebra.sparse, RATHER_GPU),),
    "attention": (
        ("attention", attention.default, RATHER_GPU),
        *(("attention-" + name, attention.by(name), GPU_ONLY) for name in attention.BACKENDS),
    ),
    "linear": _precisions("linear", linear.check, "fp64"),
    "recurrent": _precisions("recurrent", recurrent.check),
    "normalization": _precisions("normalization", normalization.check),
    "conv-layers": _precisions("conv-layers", convolutions.check),
    "long-attention": (
        ("long-attention", long_attention.by(None), RATHER_GPU),
        *(("long-attention-" + name, long_attention.by(name), GPU_ONLY) for name in attention.BACKENDS),
    ),
    "losses": _precisions("losses", losses.check),
    "selection": _precisions("selection", selection.check),
    "pooling": _precisions("pooling", pooling.check),
    "randomness": (
        ("randomness-fp32", functools.partial(randomness.check, kind="float32"), RATHER_GPU),
        ("randomness-fp16", functools.partial(randomness.check, kind="float16"), GPU_ONLY),
    ),
    "training-steps": (
        ("training-steps-optimizers", steps.optimizers, RATHER_GPU),
        ("training-steps-bf16", functools.partial(steps.mixed, kind="bf16"), RATHER_GPU),
        ("training-steps-fp16", functools.partial(steps.mixed, kind="fp16"), GPU_ONLY),
    ),
    "large-tensors": (("large-tensors", large.elements, GPU_ONLY),),
    "async-copies": (("async-copies", large.copies, GPU_ONLY),),
    "triton-kernel": (("triton-kernel", triton_kernel.check, GPU_ONLY),),
    "autograd": (("autograd", algebra.autograd, RATHER_GPU),),
    "streams": (("streams", queues.streams, GPU_ONLY), ("streams-graph", queues.graph, GPU_ONLY)),
    "bandwidth": (("bandwidth", bandwidth.check, GPU_ONLY),),
    "torch-compile": (("torch-compile", compiled.compiled, RATHER_GPU),),
    "all-reduce": (("all-reduce", collective.all_reduce, ALL_GPUS),),
    "extension-smoke": (("extension-smoke", smoke.smoke, RATHER_GPU),),
    "extension-build": (
        ("extension-build-cpp", extension.cpp, EVERYWHERE),
        ("extension-build-cuda", extension.cuda, EVERYWHERE),
    ),
}
ON_TORCHVISION = {
    "torchvision-dispatch": (("torchvision-dispatch", operators.dispatch, NOWHERE),),
    "torchvision-nms": (("torchvision-nms", operators.nms, EVERYWHERE),),
    "torchvision-many-boxes": (("torchvision-many-boxes", operators.many, RATHER_GPU),),
    "torchvision-roi-align": (("torchvision-roi-align", operators.roi_align, EVERYWHERE),),
}
ON_TORCHAUDIO = {"torchaudio-lfilter": (("torchaudio-lfilter", audio.lfilter, RATHER_GPU),)}
ON_CONSUMERS = {
    "jax": (("jax-plugin", with_jax.plugin, NOWHERE), ("jax", with_jax.compute, EVERYWHERE)),
    "tensorflow": (("tensorflow", with_tensorflow.compute, EVERYWHERE),),
    "cupy": (("cupy-libraries", with_cupy.libraries, NOWHERE), ("cupy", with_cupy.compute, GPU_ONLY)),
    "cudf": (("cudf", with_cudf.compute, GPU_ONLY),),
    "numba": (("numba-compiler", with_numba.compiles, NOWHERE), ("numba", with_numba.compute, EVERYWHERE)),
    "onnxruntime": (
        ("onnxruntime-provider", with_onnxruntime.provider, NOWHERE),
        ("onnxruntime", with_onnxruntime.compute, EVERYWHERE),
    ),
    "ctranslate2": (("ctranslate2", with_ctranslate2.compute, EVERYWHERE),),
}
"""Checks of what computes without torch, each in a process that has imported nothing."""
CHECKS = {**ON_TORCH, **ON_TORCHVISION, **ON_TORCHAUDIO, **ON_CONSUMERS}
BY_MODULE = {"torchvision": ON_TORCHVISION, "torchaudio": ON_TORCHAUDIO}
"""Module that is imported on top of torch → the checks that use it."""
# Each takes from seconds to minutes: they compile, start processes, import many packages or measure.
SLOW = ("torch-compile", "triton-kernel", "all-reduce", "extension-smoke", "extension-build", "bandwidth")
"""Checks that run by hand only when they are named."""
QUIET = ("bandwidth",)
"""Checks that measure: nothing else runs on a GPU meanwhile."""
TOGETHER = frozenset(CHECKS) - {*SLOW, *ON_CONSUMERS}
"""Checks that share a process and its context on a GPU; the others start processes, compile or import packages."""


class Gpus:
    """The visible GPUs as (device, name) pairs; without any, the status and reason of every GPU outcome."""

    def __init__(self, devices=(), status="skip", reason=""):
        self.devices = [tuple(device) for device in devices]
        self.status = status
        self.reason = reason

    def as_message(self):
        """Form of a message from a zygote to its parent."""
        return {"gpus": {"devices": self.devices, "status": self.status, "reason": self.reason}}


def units_of(requests, gpus):
    """The units of `requests`; without a known GPU, one unit of device ``cuda`` stands for all GPUs."""
    return [
        Unit(request, part + suffix, _about(function, subject), device, label)
        for request in requests
        for suffix, subject in _subjects(request)
        for part, function, where in CHECKS[request["name"]]
        for device, label in _places(request, where, gpus)
    ]


def _subjects(request):
    """The subjects of a check besides its device (packages, or None), each with a suffix of the check's name."""
    if request["name"] != "extension-smoke":
        return [("", None)]
    return [(" " + name, name) for name in request["arguments"] if "=" not in name]


def _about(function, subject):
    return function if subject is None else functools.partial(function, distribution=subject)


def _places(request, where, gpus):
    """(device, label) pairs of one part of a check."""
    if where == NOWHERE:
        return [(None, None)]
    places = []
    # a check that has parts for the CPU runs these where no GPU is wanted; one for GPUs alone is reported as skipped
    if where == EVERYWHERE or not (request["gpu"] or (where == GPU_ONLY and _has_more(request))):
        places.append(("cpu", "cpu"))
    # one unit, whose process starts one more for each GPU
    if request["gpu"] and where == ALL_GPUS:
        return [("cuda" if not gpus.devices else "cuda:0", "cuda")]
    if request["gpu"]:
        places += [(device, ("%s %s" % (device, title)).strip()) for device, title in gpus.devices or [("cuda", "")]]
    return places


def _has_more(request):
    """Whether a check has parts that are not for GPUs alone: where no GPU is asked for, these are enough."""
    return any(where != GPU_ONLY for _, _, where in CHECKS[request["name"]])
