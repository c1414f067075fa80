"""torchvision's compiled operators: how they are registered, and what they compute.

What is used of torch and torchvision, and nothing else: ``torchvision.ops.nms``, ``torchvision.ops.roi_align(x, rois,
size, scale, sampling, aligned)``, ``torchvision.extension._has_ops`` where it exists;
``torch.tensor(nested_list, dtype=)``, ``torch.zeros(shape)``, ``torch.float32``; of a tensor ``to(device)``,
``detach()``, ``double()``, ``cpu()``, ``tolist()``, ``shape``, ``dtype``, ``device.type``, ``requires_grad_()``,
``grad``, and ``(y * upstream).sum().backward()``; ``torch.version.cuda``, and where they exist
``torch._C._dispatch_has_kernel_for_dispatch_key(operator, key)`` and ``torch._C._dispatch_dump(operator)``. Only after
a failure: ``torch.ops.load_library(path)``.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import random
import re

from envmedic_kernels.checks import dense
from envmedic_kernels.harness.outcome import Disagreement, Result, same, within
from envmedic_kernels.references import reference

OPERATORS = ("torchvision::nms", "torchvision::roi_align")
_REGISTERED = re.compile(r"^(\w+): registered at (\S+?)(?::\d+)? ", re.MULTILINE)
_FOLDER = {"CPU": "cpu", "CUDA": "(?:cuda|hip)"}
NMS_SIZES = {"cpu": (0, 1, 7, 65), "gpu": (0, 1, 63, 64, 65, 500)}
"""The CUDA kernel works in blocks of 64 boxes."""
MANY, KINDS, THRESHOLD = {"cpu": 400, "gpu": 5000}, 3, 0.5
ROI_SHAPES = {"cpu": (2, 3, 16, 6), "gpu": (2, 8, 40, 60)}
"""(images, channels, pixels a side, regions)"""
POOLED, SAMPLING, SCALE = 3, 2, 0.5


def dispatch(_context):
    """The operators have a CPU kernel, and a CUDA kernel where torch is a CUDA build, each from its own source file.

    No GPU is needed. A torchvision built for a torch with other dispatch keys imports cleanly and has its kernels
    under the wrong keys: the CPU key then names a file under ``ops/cuda/``. Torch before 1.9 cannot list kernels:
    there this only tells that the operators exist, and the note says so.
    """
    import torch
    import torchvision

    extension = getattr(torchvision, "extension", None)
    if hasattr(extension, "_has_ops") and not extension._has_ops():
        raise Disagreement("torchvision could not load its compiled operators: %s" % (loader_message() or "no reason"))
    has_kernel = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    if has_kernel is None:
        for operator in OPERATORS:
            getattr(torch.ops.torchvision, operator.partition("::")[2])
        return Result("this torch cannot list kernels: only that the operators exist was checked")
    keys = ("CPU", "CUDA") if torch.version.cuda else ("CPU",)
    for operator in OPERATORS:
        _registered(torch, has_kernel, operator, keys)
    return Result("kernels for %s" % " and ".join(keys))


def loader_message():
    """The dynamic loader's message about torchvision's library of operators, which torchvision itself hides.

    None when the library loads or is not there.
    """
    import torch

    spec = importlib.util.find_spec("torchvision")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "_C*.so"))):
            try:
                torch.ops.load_library(path)
            except (OSError, RuntimeError, ImportError) as error:  # one library, seldom two
                return str(error).strip().splitlines()[0]
    return None


def _registered(torch, has_kernel, operator, keys):
    """Raise `Disagreement` unless `operator` has a kernel of the right source under each of `keys`."""
    places = dict(_REGISTERED.findall(torch._C._dispatch_dump(operator)))
    # wrong sources first: with shifted dispatch keys, "no kernel" would be true too but would not name the cause
    for key in keys:
        place = places.get(key, "")
        other = next(folder for name, folder in _FOLDER.items() if name != key)
        if re.search("/ops/(?:quantized/|autograd/|autocast/)?%s/" % other, place):
            raise Disagreement(
                "%s has the kernel of another device under %s (%s): "
                "torchvision was compiled for another torch" % (operator, key, place[place.index("/ops/") + 1 :])
            )
    for key in keys:
        if not has_kernel(operator, key):
            raise Disagreement("%s has no kernel for %s" % (operator, key))


def nms(context):
    """Non-maximum suppression keeps the same boxes in the same order as the reference."""
    import torch
    import torchvision

    dense.prepare(torch, context)
    sizes = NMS_SIZES["gpu" if context.on_gpu else "cpu"]
    for seed in context.seeds():
        for count in sizes:
            for threshold in (0.3, 0.7):
                _nms_round(torch, torchvision, context, seed + count, count, threshold)
    return Result("seed %d, up to %d boxes" % (context.seed, max(sizes)), 0.0, 0.0)


def _nms_round(torch, torchvision, context, seed, count, threshold):
    boxes, scores = reference.boxes_and_scores(seed, count, threshold)
    expected = reference.nms(boxes, scores, threshold)
    box_tensor = torch.tensor([list(box) for box in boxes], dtype=torch.float32) if count else torch.zeros((0, 4))
    score_tensor = torch.tensor(scores, dtype=torch.float32) if count else torch.zeros((0,))
    kept = torchvision.ops.nms(box_tensor.to(context.device), score_tensor.to(context.device), threshold)
    same("device of the kept indices", kept.device.type, context.device.partition(":")[0])
    what = "nms of %d boxes at %s, seed %d" % (count, threshold, seed)
    same(what, [int(index) for index in kept.cpu().tolist()], expected)


def many(context):
    """``nms`` and ``batched_nms`` of thousands of boxes keep the same ones in the same order as the reference."""
    import torch
    import torchvision

    dense.prepare(torch, context)
    count = MANY["gpu" if context.on_gpu else "cpu"]
    for seed in context.seeds():
        boxes, scores, kept = reference.scattered_boxes(seed, count, THRESHOLD)
        placed = torch.tensor(boxes, dtype=torch.float32).to(context.device)
        marks = torch.tensor(scores, dtype=torch.float32).to(context.device)
        got = torchvision.ops.nms(placed, marks, THRESHOLD)
        same("device of the kept indices", got.device.type, context.device.partition(":")[0])
        _same_boxes("nms of %d boxes, seed %d" % (count, seed), got, kept)
        kinds = [number % KINDS for number in range(count)]
        _, _, kept = reference.scattered_boxes(seed, count, THRESHOLD, kinds)
        got = torchvision.ops.batched_nms(placed, marks, torch.tensor(kinds).to(context.device), THRESHOLD)
        _same_boxes("batched_nms of %d boxes, seed %d" % (count, seed), got, kept)
    return Result("seed %d, %d boxes" % (context.seed, count), 0.0, 0.0)


def _same_boxes(what, tensor, expected):
    got = [int(index) for index in tensor.cpu().tolist()]
    if got != expected:
        first = next((place for place, pair in enumerate(zip(got, expected)) if pair[0] != pair[1]), None)
        where = "the number of them" if first is None else "number %d" % first
        raise Disagreement("%s keeps %d boxes, expected %d; they differ at %s" % (what, len(got), len(expected), where))


def roi_align(context):
    """RoIAlign and the gradient of its input agree with the reference; regions may be none.

    Sampling positions up to the map's side are computed in fp32, each off by some roundings, and a value moves
    by at most the difference of neighbouring pixels for it: 64 x side x 2**-24 of the largest value covers both.
    """
    import torch
    import torchvision

    dense.prepare(torch, context)
    shape = ROI_SHAPES["gpu" if context.on_gpu else "cpu"]
    limit = 64.0 * shape[2] * reference.UNIT_ROUNDOFF["fp32"]
    worst = 0.0
    for seed in context.seeds():
        for aligned in (False, True):
            for part, error in _roi_round(torch, torchvision, context, seed, shape, aligned):
                worst = max(worst, within("roi_align %s, seed %d" % (part, seed), error, limit))
    _no_regions(torch, torchvision, context, shape)
    return Result("seed %d" % context.seed, worst, limit)


def _roi_round(torch, torchvision, context, seed, shape, aligned):
    images, channels, side, count = shape
    generator = random.Random(seed)
    rows = reference.regions(seed, count, images, side, SCALE)
    features = reference.uniform(generator, images, channels, side, side)
    upstream = reference.uniform(generator, count, channels, POOLED, POOLED)
    cells = [reference.roi_weights(row, side, SCALE, POOLED, SAMPLING, aligned) for row in rows]
    x = torch.tensor(features, dtype=torch.float32).to(context.device).detach().requires_grad_()
    rois = torch.tensor(rows, dtype=torch.float32).to(context.device)
    y = torchvision.ops.roi_align(x, rois, (POOLED, POOLED), SCALE, SAMPLING, aligned)
    same("device of the regions", y.device.type, context.device.partition(":")[0])
    same("shape of the regions", list(y.shape), [count, channels, POOLED, POOLED])
    (y * torch.tensor(upstream, dtype=torch.float32).to(context.device)).sum().backward()
    expected = reference.roi_align(features, rows, cells, POOLED)
    gradient = reference.roi_align_gradient((images, channels, side, side), rows, cells, upstream)
    results = (("result", y, expected), ("gradient", x.grad, gradient))
    return [(part, _relative(tensor, wanted)) for part, tensor, wanted in results]


def _relative(tensor, wanted):
    """Largest error of `tensor`, relative to the largest magnitude of the reference `wanted`."""
    scale = max(abs(number) for number in reference.flat(wanted))
    return reference.largest_error(tensor.detach().double().cpu().tolist(), wanted, scale)


def _no_regions(torch, torchvision, context, shape):
    x = torch.zeros((shape[0], shape[1], shape[2], shape[2])).to(context.device)
    rois = torch.zeros((0, 5)).to(context.device)
    y = torchvision.ops.roi_align(x, rois, (POOLED, POOLED), SCALE, SAMPLING, False)
    same("shape of no regions", list(y.shape), [0, shape[1], POOLED, POOLED])
