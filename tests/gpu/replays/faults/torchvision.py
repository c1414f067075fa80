"""torchvision for another torch, and one that was built without CUDA."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.gpu.replays.faults import extensions
from tests.gpu.replays.packing import pack
from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

NMS = (
    "import torch, torchvision; d = 'cuda' if torch.cuda.is_available() else 'cpu';"
    "b = torch.tensor([[0., 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]], device=d);"
    "s = torch.tensor([.9, .8, .7], device=d);"
    "assert torchvision.ops.nms(b, s, .5).tolist() == [0, 2]"
)


SCHEMAS = (
    "import torch, torchvision;"
    "print(*[str(s) for s in torch._C._jit_get_all_schemas() if s.name.startswith('torchvision::')], sep='\\n')"
)
OPERATORS = r"""
#include <ATen/ATen.h>
#include <torch/library.h>

static at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  auto order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true)).contiguous();
  auto area = ((boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1))).to(at::kDouble);
  std::vector<int64_t> kept;
  for (int64_t at_ = 0; at_ < order.numel(); ++at_) {
    const int64_t i = order.data_ptr<int64_t>()[at_];
    bool free_ = true;
    for (int64_t j : kept) {
      auto low = at::max(boxes[i].slice(0, 0, 2), boxes[j].slice(0, 0, 2));
      auto high = at::min(boxes[i].slice(0, 2, 4), boxes[j].slice(0, 2, 4));
      const double inter = (high - low).clamp_min(0).prod().item<double>();
      free_ = free_ && inter / (area[i].item<double>() + area[j].item<double>() - inter) <= threshold;
    }
    if (free_) kept.push_back(i);
  }
  return at::tensor(kept, at::kLong);
}
static int64_t cuda_version() { return -1; }

TORCH_LIBRARY(torchvision, m) {
// DEFINITIONS
}
TORCH_LIBRARY_IMPL(torchvision, CPU, m) { m.impl("nms", nms); }
TORCH_LIBRARY_IMPL(torchvision, CatchAll, m) { m.impl("_cuda_version", cuda_version); }
"""
SOURCE = Path(__file__).parents[1] / "torchvision"
"""Operators of our own writing, for CPUs and for GPUs."""
SETUP = """\
import os
from pathlib import Path

import torch
from setuptools import find_packages, setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

cuda = (torch.cuda.is_available() and CUDA_HOME is not None) or os.environ.get("FORCE_CUDA") == "1"
print("building with CUDA:", cuda)
build = CUDAExtension if cuda else CppExtension
sources = ["csrc/ops/operators.cpp", "csrc/ops/cpu/kernels.cpp", *(["csrc/ops/cuda/kernels.cu"] if cuda else [])]
macros = [("WITH_CUDA", None)] if cuda else []
setup(
    name="torchvision",
    version=VERSION,
    packages=find_packages(include=["torchvision", "torchvision.*"]),
    install_requires=REQUIRES,
    ext_modules=[build("torchvision._C", sources, define_macros=macros)],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
)
"""
"""As torchvision's own: CUDA where a GPU and a toolkit are seen, or where FORCE_CUDA says so."""
FROM_SOURCE = """\
id: torchvision-from-source
fault: torchvision-ops
title: torchvision was built without CUDA from a source that is there
fix_kind: rebuild-extension
explain: torchvision is built again from the source directory that it was installed from.
signatures:
  - id: no-cuda-kernel
    pattern: "Could not run 'torchvision::\\\\w+' with arguments from the 'CUDA' backend"
    sample: "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."
    confidence: 0.97
when:
  all:
    - {fact: torch.cuda-build, operator: is, value: true}
    - {fact: torchvision.has-gpu-code, operator: is, value: false}
steps:
  - step: rebuild
    distribution: torchvision
checks: [torchvision-dispatch, torchvision-nms, torchvision-roi-align]
"""


def installed(room: Room, name: str) -> str:
    """The version of a distribution, of its metadata directory."""
    return room.found(f"{name}-*.dist-info")[0].name.removeprefix(f"{name}-").removesuffix(".dist-info")


def other_torch(room: Room) -> Command:
    """Another release's wheel over the right one, as an upgrade without its torch leaves it."""
    version = installed(room, "torchvision")
    others = [path for path in sorted(room.wheels.glob("torchvision-*.whl")) if path.name.split("-")[1] != version]
    if not others:
        raise NotHere(f"no wheel of another torchvision than {version} in --wheels {room.wheels}")
    pack(room.site, "torchvision", room.links)
    room.install(others[-1])
    return ("python", "-c", NMS)


def without_cuda(room: Room) -> Command:
    """A build that saw no CUDA: its library has every operator's name and, of our own source, kernels for the CPU."""
    pack(room.site, "torchvision", room.links)
    schemas = room.run(room.python, "-c", SCHEMAS).must().out.splitlines()
    source = room.folder / "source"
    source.mkdir()
    definitions = "\n".join(f"  m.def({json.dumps(schema)});" for schema in schemas)
    (source / "ops.cpp").write_text(OPERATORS.replace("// DEFINITIONS", definitions), encoding="utf-8")
    torch = room.site / "torch"
    include = (f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include")
    library = room.found("torchvision/_C*.so")[0]
    built = source / library.name
    linked = (f"-L{torch}/lib", "-ltorch_cpu", "-lc10")
    room.run("g++", "-std=c++20", "-O1", "-shared", "-fPIC", *include, source / "ops.cpp", "-o", built, *linked).must()
    shutil.rmtree(room.folder / "other", ignore_errors=True)
    (room.folder / "other").mkdir()
    room.write(library, built.read_bytes())
    room.install(pack(room.site, "torchvision", room.folder / "other"), "--reinstall")
    return ("python", "-c", NMS)


def source(room: Room) -> Path:
    """A source directory of torchvision: our operators, and the Python files of the one that is installed."""
    folder = room.folder / "source"
    shutil.copytree(SOURCE / "csrc", folder / "csrc")
    schemas = room.run(room.python, "-c", SCHEMAS).must().out.splitlines()
    definitions = "".join(f"m.def({json.dumps(schema)});\n" for schema in schemas)
    (folder / "csrc" / "ops" / "schemas.inc").write_text(definitions, encoding="utf-8")
    compiled = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(room.site / "torchvision", folder / "torchvision", ignore=compiled)
    needs = [f"torch=={installed(room, 'torch').partition('+')[0]}", "numpy", "pillow"]
    text = SETUP.replace("VERSION", repr(installed(room, "torchvision"))).replace("REQUIRES", repr(needs))
    (folder / "setup.py").write_text(text, encoding="utf-8")
    return folder


def built_without_cuda(room: Room) -> Command:
    """Built from its source where no GPU was seen, as in the making of an image; the source is still there."""
    extensions.toolkit(room)
    room.install(source(room), "--reinstall", CUDA_VISIBLE_DEVICES="", FORCE_CUDA="0")
    return ("python", "-c", NMS)


REPLAYS = (
    Replay(
        "torchvision-rebuilt",
        "torchvision built without CUDA, built again with FORCE_CUDA=1 by a playbook of one's own",
        frozenset({"nms-cuda"}),
        built_without_cuda,
        playbook=FROM_SOURCE,
    ),
    Replay(
        "torchvision-no-cuda",
        "torchvision built without CUDA",
        frozenset({"nms-cuda"}),
        without_cuda,
    ),
    Replay(
        "torchvision-other-torch",
        "torchvision of another torch's release",
        frozenset({"nms-cuda"}),
        other_torch,
    ),
)
