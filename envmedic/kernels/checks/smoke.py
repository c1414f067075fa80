"""A call to each extension package that is installed, through its public functions, against a reference.

One function for each distribution, named in `CALLS`. It is called with torch and the device, imports the package, and
raises `Disagreement` for a wrong result. The parts of torch that a package's own operators use are not listed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random

from envmedic_kernels.checks import dense
from envmedic_kernels.harness.outcome import NotApplicable, Result, Skipped, same, within
from envmedic_kernels.references import exact, reference

HALF = 32.0 * reference.UNIT_ROUNDOFF["fp16"]
SINGLE = 256.0 * reference.UNIT_ROUNDOFF["fp32"]


class Probe:
    """What a call gets: torch, its device, and random numbers."""

    def __init__(self, torch, device, seed):
        self.torch = torch
        self.device = device
        self.generator = random.Random(seed)

    def numbers(self, *shape):
        """Nested lists of random numbers."""
        return reference.uniform(self.generator, *shape)

    def placed(self, nested, dtype=None):
        """A tensor of `nested` on the device; fp32 unless `dtype` says otherwise."""
        return self.torch.tensor(nested, dtype=dtype or self.torch.float32).to(self.device)

    def half(self, nested):
        """The same in fp16, and what fp16 made of the numbers."""
        tensor = self.placed(nested).to(self.torch.float16)
        return tensor, tensor.double().cpu().tolist()

    def near(self, what, tensor, wanted, limit):
        """Raise `Disagreement` unless `tensor` is `wanted` within `limit` of its largest element; returns the error."""
        same("device of " + what, tensor.device.type, self.device.partition(":")[0])
        got = tensor.detach().double().cpu().tolist()
        return within(what, reference.largest_error(got, wanted, exact.largest(wanted)), limit)


def smoke(context, distribution):
    """The call of one distribution on one device."""
    import torch

    module, call, limit = CALLS[distribution]
    if call is None:
        raise NotApplicable(limit)
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        raise Skipped("%s is not installed" % module)
    dense.prepare(torch, context)
    # many packages launch kernels on the current device, whatever device their tensors are on
    if context.on_gpu:
        torch.cuda.set_device(context.device)
    elif distribution not in ON_CPU:
        raise NotApplicable("%s is called on GPUs alone" % distribution)
    worst = 0.0
    for seed in context.seeds():
        probe = Probe(torch, context.device, seed)
        worst = max(worst, call(probe, importlib.import_module(module), limit) or 0.0)
    return Result("seed %d" % context.seed, worst, limit)


def _attention(probe, function, limit, shape=(48, 2, 64)):
    """Attention of (1, positions, heads, width) tensors in fp16."""
    tensors = [probe.half([probe.numbers(*shape)]) for _ in range(3)]
    # the reference gets the numbers as fp16 rounded them: only the kernel's own error is measured
    by_head = [list(zip(*values[0])) for _, values in tensors]
    nothing = [[0.0] * shape[2]] * shape[0]
    heads = [exact.attention(*(list(rows) for rows in head), nothing)[0] for head in zip(*by_head)]
    wanted = [[list(rows) for rows in zip(*heads)]]
    return probe.near("attention", function(*(tensor for tensor, _ in tensors)), wanted, limit)


def xformers(probe, module, limit):
    """Memory-efficient attention."""
    return _attention(probe, module.memory_efficient_attention, limit)


def flash_attn(probe, module, limit):
    """Flash attention."""
    return _attention(probe, module.flash_attn_func, limit)


def sageattention(probe, module, limit):
    """Attention with 8-bit scores, so its limit is wide."""
    return _attention(probe, lambda *inputs: module.sageattn(*inputs, tensor_layout="NHD"), limit)


def _boxes(probe):
    boxes, scores = reference.boxes_and_scores(probe.generator.randrange(10**6), 100, 0.5)
    return boxes, scores, reference.nms(boxes, scores, 0.5)


def mmcv(probe, module, _limit):
    """Non-maximum suppression."""
    boxes, scores, expected = _boxes(probe)
    kept = module.nms(probe.placed([list(box) for box in boxes]), probe.placed(scores), 0.5)[1]
    same("kept boxes", [int(index) for index in kept.cpu().tolist()], expected)


def detectron2(probe, module, _limit):
    """Non-maximum suppression of rotated boxes, with an angle of zero."""
    boxes, scores, expected = _boxes(probe)
    turned = [[(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1], 0.0] for b in boxes]
    kept = module.nms_rotated(probe.placed(turned), probe.placed(scores), 0.5)
    same("kept boxes", [int(index) for index in kept.cpu().tolist()], expected)


def _nearest(points):
    """Index of the nearest other point of each, and the squared distance to it."""
    found = []
    for place, point in enumerate(points):
        others = [
            (sum((a - b) ** 2 for a, b in zip(point, other)), index)
            for index, other in enumerate(points)
            if index != place
        ]
        found.append(min(others))
    return found


def pytorch3d(probe, module, limit):
    """Distances to the nearest points; the first is the point itself."""
    points = probe.numbers(64, 3)
    tensor = probe.placed([points])
    found = module.knn_points(tensor, tensor, K=2).dists
    return probe.near("squared distances", found, [[[0.0, near] for near, _ in _nearest(points)]], limit)


def torch_cluster(probe, module, _limit):
    """The nearest points, the point itself among them."""
    points = probe.numbers(64, 3)
    edges = module.knn(probe.placed(points), probe.placed(points), 2).cpu().tolist()
    wanted = {(place, place) for place in range(64)} | {
        (place, near) for place, (_, near) in enumerate(_nearest(points))
    }
    same("edges to the nearest points", set(zip(*edges)), wanted)


def torch_scatter(probe, module, limit):
    """Largest of the numbers of each group."""
    numbers = probe.numbers(90)
    groups = [place % 9 for place in range(90)]
    wanted = [max(numbers[group::9]) for group in range(9)]
    found = module.scatter_max(probe.placed(numbers), probe.placed(groups, probe.torch.int64))[0]
    return probe.near("scatter_max", found, wanted, limit)


def torch_sparse(probe, module, limit):
    """Product of a sparse matrix and a dense one."""
    values, right = probe.numbers(20), probe.numbers(20, 3)
    order = list(range(20))
    probe.generator.shuffle(order)
    rows, columns = (probe.placed(each, probe.torch.int64) for each in (list(range(20)), order))
    matrix = module.SparseTensor(row=rows, col=columns, value=probe.placed(values), sparse_sizes=(20, 20))
    wanted = [[value * number for number in right[column]] for value, column in zip(values, order)]
    return probe.near("sparse product", module.matmul(matrix, probe.placed(right)), wanted, limit)


def bitsandbytes(probe, module, limit):
    """Numbers in 4 bits come back within half of the widest gap between two such numbers."""
    numbers = probe.numbers(64, 64)
    packed, state = module.quantize_4bit(probe.placed(numbers))
    return probe.near("4-bit numbers", module.dequantize_4bit(packed, state), numbers, limit)


def apex(probe, module, limit):
    """A fused layer normalisation."""
    rows = probe.numbers(8, 64)
    wanted = []
    for row in rows:
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        wanted.append([(value - mean) / (variance + 1e-5) ** 0.5 for value in row])
    return probe.near("layer norm", module.FusedLayerNorm(64).to(probe.device)(probe.placed(rows)), wanted, limit)


def multi_scale_deformable_attention(probe, module, limit):
    """One sample at the centre of one pixel of a map is that pixel's value."""
    values = probe.numbers(4, 4)
    pixel = probe.generator.randrange(4)
    place = [(pixel % 2 + 0.5) / 2, (pixel // 2 + 0.5) / 2]
    whole = probe.torch.int64
    found = module.ms_deform_attn_forward(
        probe.placed([[[pixel_values] for pixel_values in values]]),
        probe.placed([[2, 2]], whole),
        probe.placed([0], whole),
        probe.placed([[[[[place]]]]]),
        probe.placed([[[[[1.0]]]]]),
        1,
    )
    return probe.near("sampled value", found, [[values[pixel]]], limit)


def causal_conv1d(probe, module, limit):
    """A convolution that looks back."""
    samples, weights = probe.numbers(8, 64), probe.numbers(8, 4)
    wanted = [exact.filtered(row, [1.0], weight[::-1]) for row, weight in zip(samples, weights)]
    return probe.near(
        "convolution", module.causal_conv1d_fn(probe.placed([samples]), probe.placed(weights)), [wanted], limit
    )


def mamba_ssm(probe, module, limit):
    """A block by the fused kernels, compared with the package's unfused path."""
    block = module.Mamba(d_model=16).to(probe.device)
    x = probe.placed([probe.numbers(8, 16)])
    fused = block(x)
    # no plain reference of a whole block: its two implementations in the package are compared
    block.use_fast_path = False
    return probe.near("Mamba block", fused, block(x).detach().double().cpu().tolist(), limit)


def tinycudann(probe, module, limit):
    """An encoding that changes nothing."""
    rows = probe.numbers(256, 3)
    found = module.Encoding(3, {"otype": "Identity"})(probe.placed(rows))
    return probe.near("encoding", found, rows, limit)


def nvdiffrast(probe, module, _limit):
    """A triangle over the whole image is in each of its pixels."""
    corners = probe.placed([[[-9.0, -9.0, 0.0, 1.0], [9.0, -9.0, 0.0, 1.0], [0.0, 27.0, 0.0, 1.0]]])
    triangle = probe.placed([[0, 1, 2]], probe.torch.int32)
    found = module.rasterize(module.RasterizeCudaContext(), corners, triangle, resolution=[8, 8])[0]
    same("triangle of each pixel", reference.flat(found.double().cpu().tolist())[3::4], [1.0] * 64)


def spconv(probe, module, limit):
    """A convolution over one single point: its features by the weights of the centre."""
    torch = probe.torch
    row = probe.numbers(4)
    layer = module.SubMConv3d(4, 4, 3, bias=False).to(probe.device)
    torch.nn.init.constant_(layer.weight, 0.5)
    point = torch.zeros((1, 4), dtype=torch.int32).to(probe.device)
    found = layer(module.SparseConvTensor(probe.placed([row]), point, [4, 4, 4], 1)).features
    return probe.near("features", found, [[sum(row) * 0.5] * 4], limit)


def gsplat(probe, module, limit):
    """Covariances of Gaussians that are not turned."""
    scales = [[1.5 + number for number in row] for row in probe.numbers(16, 3)]
    found = module.quat_scale_to_covar_preci(probe.placed([[1.0, 0.0, 0.0, 0.0]] * 16), probe.placed(scales))[0]
    wanted = [[[row[i] ** 2 * (i == j) for j in range(3)] for i in range(3)] for row in scales]
    return probe.near("covariances", found, wanted, limit)


def dgl(probe, module, _limit):
    """Edges that end in each node."""
    ends = [probe.generator.randrange(10) for _ in range(40)]
    torch = probe.torch
    graph = module.graph((torch.zeros(40, dtype=torch.int64), torch.tensor(ends)), num_nodes=10).to(probe.device)
    same("edges by node", graph.in_degrees().cpu().tolist(), [ends.count(node) for node in range(10)])


def cupy(probe, module, limit):
    """A product of matrices."""
    left, right = probe.numbers(20, 30), probe.numbers(30, 10)
    with module.cuda.Device(int(probe.device.partition(":")[2])):
        found = module.asarray(left, dtype="float32") @ module.asarray(right, dtype="float32")
        got = module.asnumpy(found).tolist()
    wanted = exact.product(left, right)
    return within("product", reference.largest_error(got, wanted, exact.largest(wanted)), limit)


def jax(probe, module, limit):
    """A product of matrices."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # read when its backend starts, at the next line
    device = module.devices("gpu")[int(probe.device.partition(":")[2])]
    left, right = probe.numbers(20, 30), probe.numbers(30, 10)
    with module.default_device(device):
        found = module.numpy.matmul(module.numpy.array(left), module.numpy.array(right), precision="highest")
    wanted = exact.product(left, right)
    return within("product", reference.largest_error(found.tolist(), wanted, exact.largest(wanted)), limit)


def vllm(probe, module, _limit):
    """It sees the GPU that torch sees."""
    platform = module.current_platform
    same("vLLM's platform is CUDA", platform.is_cuda(), True)
    seen = platform.get_device_capability(int(probe.device.partition(":")[2]))
    same("compute capability", tuple(seen), tuple(probe.torch.cuda.get_device_capability(probe.device)))


def auto_gptq(_probe, _module, _limit):
    """Its two compiled modules load."""
    importlib.import_module("exllama_kernels")
    importlib.import_module("exllamav2_kernels")


def av(_probe, module, _limit):
    """It has codecs."""
    same("codecs are there", bool(module.codec.codecs_available), True)


_OWN = "the check %s calls it"
_VIDEO = "its operators need a video, which is not at hand"
CALLS = {
    "torchvision": ("torchvision", None, _OWN % "torchvision-nms"),
    "torchaudio": ("torchaudio", None, _OWN % "torchaudio-lfilter"),
    "triton": ("triton", None, _OWN % "torch-compile"),
    "torchcodec": ("torchcodec", None, _VIDEO),
    "decord": ("decord", None, _VIDEO),
    "xformers": ("xformers.ops", xformers, HALF),
    "flash-attn": ("flash_attn", flash_attn, HALF),
    "sageattention": ("sageattention", sageattention, 0.1),
    "mmcv": ("mmcv.ops", mmcv, 0.0),
    "detectron2": ("detectron2.layers", detectron2, 0.0),
    "pytorch3d": ("pytorch3d.ops", pytorch3d, SINGLE),
    "torch-cluster": ("torch_cluster", torch_cluster, 0.0),
    "torch-scatter": ("torch_scatter", torch_scatter, SINGLE),
    "torch-sparse": ("torch_sparse", torch_sparse, SINGLE),
    "bitsandbytes": ("bitsandbytes.functional", bitsandbytes, 0.2),
    "apex": ("apex.normalization", apex, SINGLE),
    "multiscaledeformableattention": ("MultiScaleDeformableAttention", multi_scale_deformable_attention, SINGLE),
    "causal-conv1d": ("causal_conv1d", causal_conv1d, SINGLE),
    "mamba-ssm": ("mamba_ssm", mamba_ssm, 1e-3),
    "deepspeed": ("deepspeed", None, "it compiles its operators when they are first called"),
    "tiny-cuda-nn": ("tinycudann", tinycudann, HALF),
    "nvdiffrast": ("nvdiffrast.torch", nvdiffrast, 0.0),
    "spconv": ("spconv.pytorch", spconv, HALF),
    "gsplat": ("gsplat", gsplat, SINGLE),
    "dgl": ("dgl", dgl, 0.0),
    "cupy": ("cupy", cupy, SINGLE),
    "jax": ("jax", jax, SINGLE),
    "vllm": ("vllm.platforms", vllm, 0.0),
    "auto-gptq": ("auto_gptq", auto_gptq, 0.0),
    "av": ("av", av, 0.0),
}
"""Distribution → (module, its call, its tolerance); without a call, why there is none."""
ON_CPU = (
    "av",
    "bitsandbytes",
    "pytorch3d",
    "torch-cluster",
    "torch-scatter",
    "torch-sparse",
    "dgl",
    "mmcv",
    "detectron2",
)
"""Distributions whose functions work without a GPU too."""
