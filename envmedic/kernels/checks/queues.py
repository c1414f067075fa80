"""Streams that wait for each other, and a CUDA graph that is replayed.

What is used of torch, and nothing else: ``torch.cuda.set_device``, ``Stream``, ``current_stream``, ``stream``,
``synchronize``, ``CUDAGraph`` and ``graph`` (from 1.10 on); of streams ``wait_stream``, of graphs ``replay``;
``torch.tensor(list, dtype=)``, ``torch.full(shape, value, device=)``, ``torch.mul(x, y, out=)``,
``torch.add(x, y, out=)``, ``torch.float32``; of a tensor ``to(device)``, ``copy_``, ``cpu()``, ``tolist()``.

The numbers are chosen so that every result is exact.
"""

from __future__ import annotations

import random

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable, Result, same
from envmedic_kernels.references import reference

COUNT = 1 << 16
REPLAYS = 3


def _numbers(seed):
    return reference.uniform(random.Random(seed), COUNT)


def _poisoned(torch, context):
    return torch.full((COUNT,), float("nan"), device=context.device)


def _begin(context):
    import torch

    if not context.on_gpu:
        raise NotApplicable("streams are for GPUs")
    torch.cuda.set_device(context.device)
    dense.prepare(torch, context)
    return torch


def streams(context):
    """Work on two streams that wait for each other has the result of the same work in order."""
    torch = _begin(context)
    for seed in context.seeds():
        numbers = _numbers(seed)
        x = torch.tensor(numbers, dtype=torch.float32).to(context.device)
        halves, sums, doubled = (_poisoned(torch, context) for _ in range(3))
        main, side = torch.cuda.current_stream(), torch.cuda.Stream()
        torch.mul(x, 0.5, out=halves)
        # Without it `side` could read `halves` before `main` has written them: the poison would show.
        side.wait_stream(main)
        with torch.cuda.stream(side):
            torch.add(halves, 1.0, out=sums)
        main.wait_stream(side)
        torch.mul(sums, 2.0, out=doubled)
        torch.cuda.synchronize()
        same("x / 2 + 1 on two streams, doubled", doubled.cpu().tolist(), [x + 2.0 for x in numbers])
    return Result("seed %d, two streams" % context.seed, 0.0, 0.0)


def graph(context):
    """A captured graph computes with what its inputs hold when it is replayed."""
    torch = _begin(context)
    torch_support.needs(torch, (1, 10), "CUDA graphs")
    x, halves, sums = (_poisoned(torch, context) for _ in range(3))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # the first calls may do what cannot be captured
        _work(torch, x, halves, sums)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        _work(torch, x, halves, sums)
    for number in range(REPLAYS):
        numbers = _numbers(context.seed + number)
        x.copy_(torch.tensor(numbers, dtype=torch.float32))
        # a replay that does nothing leaves NaN
        for target in (halves, sums):
            target.copy_(_poisoned(torch, context))
        captured.replay()
        torch.cuda.synchronize()
        same("x / 2 + 1 in replay %d" % number, sums.cpu().tolist(), [x * 0.5 + 1.0 for x in numbers])
    return Result("seed %d, %d replays" % (context.seed, REPLAYS), 0.0, 0.0)


def _work(torch, x, halves, sums):
    torch.mul(x, 0.5, out=halves)
    torch.add(halves, 1.0, out=sums)
