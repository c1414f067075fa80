"""How many bytes a second a GPU's memory moves, and the way between it and the host's.

What is used of torch, and nothing else: ``torch.full(shape, value, dtype=, device=, pin_memory=)``, ``torch.uint8``; of a tensor
``copy_(other, non_blocking=True)``, ``numel()``, slices, ``tolist()``; ``torch.cuda.set_device``, ``synchronize``, ``mem_get_info``.
"""

from __future__ import annotations

import time

from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import Result, same

WITHIN, BETWEEN = 1 << 30, 1 << 28
"""Bytes of a copy within the GPU, and of one between it and the host."""
ROUNDS = 5
PATTERN = 0x5A


def check(context):
    """Copies within the GPU, from pinned memory to it and back; the fastest of some counts."""
    import torch

    torch_support.capable(torch, context, (3, 0), "bandwidth")
    torch_support.needs(torch, (1, 12), "torch.cuda.mem_get_info")
    torch.cuda.set_device(context.device)
    within = min(WITHIN, torch.cuda.mem_get_info(context.device)[0] // 4)
    between = min(BETWEEN, within)
    one, other = (torch.full((within,), value, dtype=torch.uint8, device=context.device) for value in (PATTERN, 0))
    host = torch.full((between,), 0, dtype=torch.uint8, pin_memory=True)
    figures = {
        # each byte is read and written
        "memory_gb_s": 2 * _rate(torch, other, one),
        "from_gpu_gb_s": _rate(torch, host, other[:between]),
        "to_gpu_gb_s": _rate(torch, one[:between], host),
    }
    same("the last bytes after all copies", [other[-3:].tolist(), host[-3:].tolist()], [[PATTERN] * 3] * 2)
    note = "memory %.0f GB/s, to the GPU %.1f GB/s, from it %.1f GB/s" % (
        figures["memory_gb_s"],
        figures["to_gpu_gb_s"],
        figures["from_gpu_gb_s"],
    )
    return Result(note, figures={name: round(value, 2) for name, value in figures.items()})


def _rate(torch, target, source):
    """Bytes in a second of a copy, in units of 10**9."""
    best = float("inf")
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return source.numel() / best / 1e9
