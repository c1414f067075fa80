"""An extension of our own: a weighted sampling between pixels, as deformable attention does it, with a CUDA kernel."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tests.gpu.replays import compilers
from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

SETUP = """\
import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

seen = torch.cuda.is_available() and CUDA_HOME is not None
build = CUDAExtension if seen or os.environ.get("FORCE_CUDA") == "1" else CppExtension
sources = ["binding.cpp", "kernel.cu"] if build is CUDAExtension else ["binding.cpp"]
setup(
    name="replay-attention",
    version="1.0",
    packages=["replay_attention"],
    ext_modules=[build("replay_attention._C", sources, libraries=LIBRARIES)],
    cmdclass={"build_ext": BuildExtension},
)
"""
BINDING = r"""
#include <torch/extension.h>

at::Tensor replay_sample_cuda_forward(const at::Tensor& value, const at::Tensor& place, const at::Tensor& weight);

static at::Tensor sample(const at::Tensor& value, const at::Tensor& place, const at::Tensor& weight) {
  TORCH_CHECK(value.is_cuda() && value.dim() == 2, "value has to be a matrix on a GPU, not on ", value.device());
  return replay_sample_cuda_forward(value, place, weight);
}

PYBIND11_MODULE(_C, m) { m.def("sample", &sample); }
"""
KERNEL = r"""
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void sample(const float* value, const float* place, const float* weight, float* out, int size, int points) {
  const float* row = value + (long)blockIdx.x * size;
  for (int q = threadIdx.x; q < points; q += blockDim.x) {
    const long at = (long)blockIdx.x * points + q;
    const float x = fminf(fmaxf(place[at], 0.f), size - 1.f);
    const int low = (int)x, high = min(low + 1, size - 1);
    atomicAdd(out + blockIdx.x, weight[at] * (row[low] + (x - low) * (row[high] - row[low])));
  }
}

at::Tensor replay_sample_cuda_forward(const at::Tensor& value, const at::Tensor& place, const at::Tensor& weight) {
  auto out = at::zeros({value.size(0)}, value.options());
  sample<<<value.size(0), 64, 0, c10::cuda::getCurrentCUDAStream()>>>(
      value.data_ptr<float>(), place.data_ptr<float>(), weight.data_ptr<float>(), out.data_ptr<float>(), value.size(1),
      place.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
PACKAGE = "import torch\n\nfrom replay_attention._C import sample\n"
CHECK_FAIL = re.compile(r"(torchCheckFail\(\s*const char\* func,\s*const char\* file,\s*)uint32_t line")
USE = """\
import torch, replay_attention
torch.manual_seed(torch.seed() % 1000)
value, place, weight = torch.rand(50, 97), torch.rand(50, 33) * 96, torch.rand(50, 33)
low = place.floor().long(); high = (low + 1).clamp(max=96); part = place - low
pixels = value.gather(1, low) + part * (value.gather(1, high) - value.gather(1, low))
expected = (weight.double() * pixels.double()).sum(1)
for number in range(torch.cuda.device_count()):
    with torch.cuda.device(number):
        found = replay_attention.sample(*(item.cuda() for item in (value, place, weight))).cpu().double()
    assert torch.allclose(found, expected, rtol=1e-4), (found - expected).abs().max()
assert torch.cuda.device_count() > 0
"""


def source(room: Room, *libraries: str) -> Path:
    """Write the sources."""
    folder = room.folder / "source"
    (folder / "replay_attention").mkdir(parents=True)
    (folder / "setup.py").write_text(SETUP.replace("LIBRARIES", repr(list(libraries))), encoding="utf-8")
    (folder / "binding.cpp").write_text(BINDING, encoding="utf-8")
    (folder / "kernel.cu").write_text(KERNEL, encoding="utf-8")
    (folder / "replay_attention" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    return folder


def toolkit(room: Room) -> Path:
    """The CUDA toolkit that builds take here; raises NotHere where there is none."""
    named = room.outside.get("CUDA_HOME", os.environ.get("CUDA_HOME"))
    nvcc = Path(named, "bin", "nvcc") if named else Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    if not nvcc.is_file():
        raise NotHere(f"no nvcc: {nvcc}")
    return nvcc.resolve().parent.parent


def builds(room: Room, *libraries: str) -> Command:
    """The command that builds the extension where its source lies, outside the environment."""
    toolkit(room)
    folder = source(room, *libraries)
    return ("bash", "-c", f"cd '{folder}' && python setup.py build_ext --inplace --force")


def one_architecture(room: Room) -> Command:
    """Built where the list of architectures named that of another machine."""
    home = toolkit(room)
    room.install(source(room), FORCE_CUDA="1", TORCH_CUDA_ARCH_LIST="8.0", CUDA_HOME=str(home))
    return ("python", "-c", USE)


def no_cuda_source(room: Room) -> Command:
    """Built where no GPU was seen, so that the source of the kernel was left out without a word."""
    toolkit(room)
    room.install(source(room), CUDA_VISIBLE_DEVICES="", FORCE_CUDA="0")
    return ("python", "-c", USE)


def other_headers(room: Room) -> Command:
    """Built against the headers of another torch: there, a function of c10 takes its line number as an int."""
    home = toolkit(room)
    header = room.site / "torch" / "include" / "c10" / "util" / "Exception.h"
    kept = header.read_text(encoding="utf-8")
    other, changes = CHECK_FAIL.subn(r"\1int line", kept)
    if not changes:
        raise NotHere(f"this torch's {header.name} does not declare c10::detail::torchCheckFail as known")
    room.write(header, other)
    room.install(source(room), FORCE_CUDA="1", CUDA_HOME=str(home))
    room.write(header, kept)
    return ("python", "-c", USE)


def unknown_architectures(room: Room) -> Command:
    """Two lists, torch's and the one that tiny-cuda-nn reads, of a machine with GPUs that this toolkit does not know."""
    room.variable("TCNN_CUDA_ARCHITECTURES", "'90;101;130'")
    return unknown_architecture(room)


def unknown_architecture(room: Room) -> Command:
    """A list with an entry that this torch does not know."""
    room.variable("TORCH_CUDA_ARCH_LIST", "'8.0;9.0;10.1'")
    return builds(room)


def other_toolkit(room: Room) -> Command:
    """CUDA_HOME at a toolkit whose nvcc says that it is of another major version."""
    real = toolkit(room)
    other = room.folder / "cuda-11.8"
    (other / "bin").mkdir(parents=True)
    for item in (*(path for path in real.iterdir() if path.name != "bin"), *(real / "bin").iterdir()):
        (other / item.relative_to(real)).symlink_to(item)
    nvcc = other / "bin" / "nvcc"
    nvcc.unlink()
    says = "Cuda compilation tools, release 11.8, V11.8.89"
    nvcc.write_text(
        f'#!/bin/sh\ncase " $* " in *" --version "*) echo "{says}";; *) exec "{real}/bin/nvcc" "$@";; esac\n',
        encoding="utf-8",
    )
    nvcc.chmod(0o755)
    room.variable("CUDA_HOME", f"'{other}'")
    return builds(room)


def driver_library(room: Room) -> Command:
    """Linked with the driver's library by a compiler that looks in its own folders alone, as conda's does."""
    toolkit(room)
    room.outside["LIBRARY_PATH"] = ""
    gcc, gxx = compilers.apart(room)
    probe = room.folder / "empty.c"
    probe.write_text("int nothing;\n", encoding="utf-8")
    link = (gcc, "-shared", "-fPIC", probe, "-o", room.folder / "empty.so")
    room.run(*link, "-lc", "-lstdc++").must()
    traced = room.run(*link, "-lcuda", "-Wl,--trace")
    if traced.code == 0:
        found = [line for line in traced.out.splitlines() if "libcuda." in line]
        raise NotHere(f"the linker still finds the driver's library at {', '.join(found)}")
    room.variable("CC", f"'{gcc}'")
    room.variable("CXX", f"'{gxx}'")
    *shell, script = builds(room, "cuda")
    (room.folder / "source" / "use.py").write_text(USE, encoding="utf-8")
    return (*shell, f"{script} && python use.py")


REPLAYS = (
    Replay(
        "one-architecture",
        "an extension with code for sm_80 alone",
        frozenset({"no-kernel-image-extension"}),
        one_architecture,
    ),
    Replay(
        "no-cuda-source",
        "an extension built without its CUDA source",
        frozenset({"extension-not-built"}),
        no_cuda_source,
    ),
    Replay(
        "other-headers",
        "an extension built against the headers of another torch",
        frozenset({"stale-extension", "extension-undefined-symbol"}),
        other_headers,
    ),
    Replay(
        "unknown-architectures",
        "TORCH_CUDA_ARCH_LIST and TCNN_CUDA_ARCHITECTURES with unknown entries",
        frozenset({"cuda-arch-list"}),
        unknown_architectures,
        left=(("TCNN_CUDA_ARCHITECTURES", r"\d+(;\d+)*"),),
    ),
    Replay(
        "unknown-architecture",
        "TORCH_CUDA_ARCH_LIST with an unknown entry",
        frozenset({"cuda-arch-list"}),
        unknown_architecture,
    ),
    Replay(
        "other-toolkit",
        "CUDA_HOME at an nvcc of another major version",
        frozenset({"cuda-toolkit-mismatch"}),
        other_toolkit,
    ),
    Replay("driver-library", "-lcuda not found", frozenset({"link-libcuda"}), driver_library, facts=False),
)
