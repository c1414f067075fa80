"""A context on the device, and copies of bytes to it, within it, from it and between GPUs.

What is used of torch, and nothing else: ``torch.tensor(list, dtype=)``, ``torch.full(shape, value, dtype=, device=)``,
``torch.uint8``; of a tensor ``copy_(other)``, ``pin_memory()`` (GPU only) and ``tolist()``;
``torch.cuda.set_device``, ``synchronize``, ``get_device_capability`` and ``device_count()`` (GPU only).
"""

from __future__ import annotations

import random

from envmedic_kernels.harness.outcome import Disagreement, Result

SIZES = {"cpu": (1, 4097, 1 << 16), "gpu": (1, 4097, 1 << 20)}
"""Bytes."""
POISON = 0xA5
"""What every target holds before."""


def memory(context):
    """Random bytes arrive as they were sent, each in a target that held something else before."""
    import torch

    note = "%d bytes" % max(SIZES["gpu" if context.on_gpu else "cpu"])
    if context.on_gpu:
        torch.cuda.set_device(context.device)
        note += ", sm_%d%d" % torch.cuda.get_device_capability(context.device)
    for seed in context.seeds():
        for size in SIZES["gpu" if context.on_gpu else "cpu"]:
            _round(torch, context, random.Random(seed + size), size)
    return Result("seed %d, %s" % (context.seed, note), 0.0, 0.0)


def _round(torch, context, generator, size):
    content = list(bytearray(generator.getrandbits(8 * size).to_bytes(size, "little")))
    host = torch.tensor(content, dtype=torch.uint8)
    there = _copied(torch, host, context.device)
    _arrived(torch, "to %s and back" % context.device, there, content)
    within = _copied(torch, there, context.device)
    _arrived(torch, "within %s" % context.device, within, content)
    if not context.on_gpu:
        return
    # Pinned memory is copied by the GPU itself (DMA), another path than that of pageable memory.
    pinned = _copied(torch, host.pin_memory(), context.device)
    _arrived(torch, "from pinned memory to %s" % context.device, pinned, content)
    # Between GPUs the bytes may take NVLink or PCIe directly, which the copies from the host do not test.
    for index in range(torch.cuda.device_count()):
        other = "cuda:%d" % index
        if other != context.device:
            _arrived(torch, "from %s to %s" % (context.device, other), _copied(torch, there, other), content)


def _copied(torch, source, device):
    """`source` in a poisoned target on `device`."""
    target = torch.full(tuple(source.shape), POISON, dtype=torch.uint8, device=device)
    # a copy that silently does nothing leaves the poison
    target.copy_(source)
    return target


def _arrived(torch, way, tensor, content):
    """Raise `Disagreement` unless `tensor` holds `content`."""
    got = _copied(torch, tensor, "cpu").tolist()
    wrong = [place for place, (one, other) in enumerate(zip(got, content)) if one != other]
    if wrong or len(got) != len(content):
        raise Disagreement(
            "copy of %d bytes %s: %d of them differ, the first at %d"
            % (len(content), way, len(wrong), wrong[0] if wrong else len(got))
        )
