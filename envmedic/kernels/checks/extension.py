"""Compiling a small extension with torch's own builder, loading it and running it.

What is used of torch, and nothing else: ``torch.utils.cpp_extension`` with its ``BuildExtension``, ``CppExtension``,
``CUDAExtension``, ``CUDA_HOME`` and the ``setuptools`` that it holds; ``torch.version.cuda``,
``torch.ops.load_library(path)``, ``torch.ops.envmedic_probe`` and ``envmedic_probe_cuda``; ``torch.tensor(list)``, of a
tensor ``to(device)`` and ``tolist()``; ``torch.cuda.device(name)``, ``device_count()``, ``get_arch_list()``.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from envmedic_kernels.harness.outcome import NotApplicable, Result, same

TENSORS = """
#if __has_include(<ATen/ops/add.h>)  // from torch 1.11 on, and many times faster to compile
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#else
#include <ATen/ATen.h>
#endif
#include <torch/library.h>
"""
CPP = (
    TENSORS
    + """
at::Tensor twice(const at::Tensor& x) { return at::add(x, x); }
TORCH_LIBRARY(envmedic_probe, library) { library.def("twice", twice); }
"""
)
CUDA_BINDING = (
    TENSORS
    + """
extern "C" int envmedic_twice(const float* from, float* to, long long count);
at::Tensor twice(const at::Tensor& x) {
    at::Tensor from = x.contiguous();
    at::Tensor to = at::empty_like(from);
    int error = envmedic_twice(from.data_ptr<float>(), to.data_ptr<float>(), from.numel());
    TORCH_CHECK(error == 0, "CUDA error ", error);
    return to;
}
TORCH_LIBRARY(envmedic_probe_cuda, library) { library.def("twice", twice); }
"""
)
CUDA = """
#include <cuda_runtime.h>
__global__ void twice(const float* from, float* to, long long count) {
    long long place = blockIdx.x * (long long) blockDim.x + threadIdx.x;
    if (place < count) to[place] = from[place] + from[place];
}
extern "C" int envmedic_twice(const float* from, float* to, long long count) {
    twice<<<(unsigned) ((count + 127) / 128), 128>>>(from, to, count);
    cudaError_t error = cudaGetLastError();
    return (int) (error != cudaSuccess ? error : cudaDeviceSynchronize());
}
"""
NUMBERS = [0.5 * number for number in range(1, 300)]


def cpp(context):
    """An extension in C++ compiles, loads and doubles numbers on the CPU."""
    if context.on_gpu:
        raise NotApplicable("an extension without GPU code is for the CPU")
    torch, builder = _builder()
    with tempfile.TemporaryDirectory(prefix="envmedic-") as folder:
        _build(builder, builder.CppExtension, folder, {"probe.cpp": CPP})
        _load(torch, folder)
        same("twice(x)", torch.ops.envmedic_probe.twice(torch.tensor(NUMBERS)).tolist(), [2 * x for x in NUMBERS])
    return Result("C++ extension")


def cuda(context):
    """An extension with GPU code compiles and loads, and on a GPU doubles numbers."""
    torch, builder = _builder()
    if not torch.version.cuda:
        raise NotApplicable("torch is not a CUDA build")
    nvcc = _nvcc(builder)
    with tempfile.TemporaryDirectory(prefix="envmedic-") as folder, _Architectures(torch):
        _build(builder, builder.CUDAExtension, folder, {"probe.cpp": CUDA_BINDING, "kernel.cu": CUDA})
        _load(torch, folder)
        if context.on_gpu:
            with torch.cuda.device(context.device):
                x = torch.tensor(NUMBERS).to(context.device)
                same("twice(x)", torch.ops.envmedic_probe_cuda.twice(x).tolist(), [2 * number for number in NUMBERS])
    return Result("CUDA extension by %s" % nvcc)


def _builder():
    """Return torch and its builder, where there is what they build with."""
    if importlib.util.find_spec("setuptools") is None:
        raise NotApplicable("setuptools, which torch builds extensions with, is not installed")
    compiler = (os.environ.get("CXX") or "c++").split()[0]
    if shutil.which(compiler) is None:
        raise NotApplicable("there is no C++ compiler (%s)" % compiler)
    import torch
    from torch.utils import cpp_extension

    return torch, cpp_extension


def _nvcc(builder):
    """The nvcc that torch takes; a CUDA_HOME that is set and has none is a fault, not an absence."""
    # In the order of torch.utils.cpp_extension, so that the check uses the toolkit of a real build.
    set_to = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = os.path.join(set_to or builder.CUDA_HOME or "/nonexistent", "bin", "nvcc")
    if not set_to and not Path(nvcc).exists():
        raise NotApplicable("there is no nvcc: torch finds no CUDA toolkit")
    text = subprocess.check_output([nvcc, "--version"]).decode("utf-8", "replace")  # torch's own choice
    found = re.search(r"release (\d+\.\d+)", text)
    return "nvcc %s" % (found.group(1) if found else nvcc)


class _Architectures:
    """The list of architectures, where neither a variable nor a GPU gives one: one that torch has code for."""

    def __init__(self, torch):
        self._value = ""
        if not os.environ.get("TORCH_CUDA_ARCH_LIST") and torch.cuda.device_count() == 0:
            known = [int(name[3:]) for name in torch.cuda.get_arch_list() if re.match(r"sm_\d+$", name)]
            # Only compiled, not run: the oldest may be dropped by a new nvcc, and the newest unknown to an old one.
            middle = sorted(known)[len(known) // 2] if known else 80
            self._value = "%d.%d" % divmod(middle, 10)

    def __enter__(self):
        if self._value:
            os.environ["TORCH_CUDA_ARCH_LIST"] = self._value

    def __exit__(self, *_):
        if self._value:
            del os.environ["TORCH_CUDA_ARCH_LIST"]


def _build(builder, make, folder, files):
    """Compile `files` in `folder` as setup.py would."""
    for name, text in files.items():
        Path(folder, name).write_text(text)
    # setuptools writes beside the current directory; this process is a child of its own, and ends after the check
    os.chdir(folder)
    extension = make("envmedic_probe", sorted(files, key=lambda name: name.endswith(".cu")))
    command = builder.BuildExtension(
        builder.setuptools.Distribution({"name": "envmedic-probe", "ext_modules": [extension]})
    )
    # distutils' commands without a setup.py: the same compiler flags, and no second interpreter
    command.build_lib = command.build_temp = folder
    command.ensure_finalized()
    command.run()


def _load(torch, folder):
    for library in glob.glob(os.path.join(folder, "envmedic_probe*.so")):
        torch.ops.load_library(library)
