"""torchvision for another torch."""

from __future__ import annotations

import json
import shutil

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


REPLAYS = (
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
