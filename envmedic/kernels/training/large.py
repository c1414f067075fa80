"""Tensors of more than 2**31 elements, whose places need 64 bits, and copies that run beside the work of a GPU.

What is used of torch under test: ``torch.zeros``, ``arange``, ``full``, ``add``, ``argmax``, ``cat``, ``mul``, ``index_select``; of a tensor
``sum``, ``copy_(other, non_blocking=True)``, ``pin_memory``, ``fill_``; ``torch.cuda.mem_get_info, Stream, Event, stream``.
"""

from __future__ import annotations

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable, Result, same
from envmedic_kernels.training.agreement import Inputs

COUNT = (1 << 31) + 4099
NEEDED = 3 * COUNT + (1 << 30)
"""Bytes: three tensors of one byte for each element at a time, and room for what others do."""
SPOTS = 9
COPIED = 1 << 22
ROUNDS = 6


def elements(context):
    """Numbers at places beyond 2**31 are written, added, found, gathered and copied back."""
    import torch

    if not context.on_gpu:
        raise NotApplicable("more than 2**31 elements are for GPUs")
    torch_support.needs(torch, (1, 12), "torch.cuda.mem_get_info")
    free = torch.cuda.mem_get_info(context.device)[0]
    if free < NEEDED:
        raise NotApplicable("%d MB are free on this GPU, and this takes %d" % (free >> 20, NEEDED >> 20))
    for seed in context.seeds():
        _far(torch, context, Inputs(torch, context, "fp32", seed))
    return Result("seed %d, %d elements" % (context.seed, COUNT), 0.0, 0.0)


def _far(torch, context, inputs):
    x = torch.full((COUNT,), 1, dtype=torch.uint8, device=context.device)
    places = sorted({*inputs.whole(COUNT, SPOTS).tolist(), 0, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, COUNT - 1})
    index = torch.tensor(places, dtype=torch.int64).to(context.device)
    x.index_fill_(0, index, 3)
    same("sum beyond 2**31", int(x.sum(dtype=torch.int64)), COUNT + 2 * len(places))
    y = torch.add(x, 1)
    same("elements beyond 2**31", y.index_select(0, index).cpu().tolist(), [4] * len(places))
    same("sum after an addition", int(y.sum(dtype=torch.int64)), 2 * COUNT + 2 * len(places))
    y[COUNT - 2] = 9
    same("place of the largest", int(torch.argmax(y)), COUNT - 2)
    same("the last elements", y[-4099:].cpu().tolist()[-3:], [2, 9, 4])
    x.copy_(y)
    same("sum after a copy", int(x.sum(dtype=torch.int64)), 2 * COUNT + 2 * len(places) + 7)


def copies(context):
    """Copies from and to pinned memory on a second stream, in chunks, while the first one computes."""
    import torch

    if not context.on_gpu:
        raise NotApplicable("asynchronous copies are for GPUs")
    torch.cuda.set_device(context.device)
    dense.prepare(torch, context)
    for seed in context.seeds():
        _piped(torch, context, Inputs(torch, context, "fp32", seed))
    return Result("seed %d, %d chunks of %d MB" % (context.seed, ROUNDS, COPIED * 4 >> 20), 0.0, 0.0)


def _piped(torch, context, inputs):
    generator = inputs.generator
    chunks = [torch.randint(-1000, 1000, (COPIED,), generator=generator, dtype=torch.int32) for _ in range(ROUNDS)]
    pinned = [chunk.pin_memory() for chunk in chunks]
    back = [torch.full((COPIED,), -7, dtype=torch.int32).pin_memory() for _ in chunks]
    there = torch.full((ROUNDS, COPIED), -9, dtype=torch.int32, device=context.device)
    main, side = torch.cuda.current_stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    for place, chunk in enumerate(pinned):
        with torch.cuda.stream(side):
            there[place].copy_(chunk, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record(side)
        main.wait_event(arrived)
        there[place].mul_(3).add_(1)
        done = torch.cuda.Event()
        done.record(main)
        side.wait_event(done)
        with torch.cuda.stream(side):
            back[place].copy_(there[place], non_blocking=True)
    torch.cuda.synchronize()
    for place, chunk in enumerate(chunks):
        wrong = int((back[place] != chunk * 3 + 1).sum())
        same("wrong numbers of chunk %d, copied beside other work" % place, wrong, 0)
