"""All-reduce and all-gather over all GPUs by NCCL, a process for each; on the CPU by Gloo in two processes.

With one GPU nothing is exchanged: that NCCL starts and gives the numbers back is all that is seen then, and said.

What is used of torch, and nothing else: ``torch.distributed`` with ``init_process_group(backend, init_method=, rank=,
world_size=, timeout=)``, ``all_reduce(tensor)``, ``all_gather(list, tensor)``, ``destroy_process_group()``; ``torch.cuda.set_device`` and
``device_count()``, ``synchronize()`` (GPU only); ``torch.tensor(list, dtype=)``, ``torch.float32``; of a tensor
``to(device)``, ``double()``, ``cpu()``, ``tolist()``.

NVLink multicast is left alone: it needs the fabric manager, and torch runs without it.
"""

from __future__ import annotations

import datetime as dt
import importlib
import math
import os
import random
import tempfile

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.outcome import Disagreement, Ended, Result, same, within
from envmedic_kernels.harness.units import describe, last_words
from envmedic_kernels.references import reference

COUNT = 5003
PROCESSES = 2
"""On the CPU."""
LIMIT_S = 120.0


def all_reduce(context):
    """The sum over all processes arrives at each of them."""
    with tempfile.TemporaryDirectory(prefix="envmedic-") as folder:
        errors = []
        size = _size(context)
        for round_, seed in enumerate(context.seeds()):
            # A file as meeting point, since a TCP port could be taken; torch demands a new one for each group.
            meeting = "file://" + os.path.join(folder, str(round_))
            errors += _together(context, meeting, seed, size)
    limit = size * 2 * reference.UNIT_ROUNDOFF["fp32"]
    worst = max(within("all-reduce, seed %d" % context.seed, error, limit) for error in errors)
    note = (
        "%d processes" % size
        if size > 1
        else "one process: NCCL starts and gives its numbers back, nothing is exchanged"
    )
    return Result("seed %d, %s" % (context.seed, note), worst, limit)


def _size(context):
    """The number of processes; GPUs are counted in a child: this process must not initialise CUDA."""
    if not context.on_gpu:
        return PROCESSES
    found = []

    def count(send):
        import torch

        send(torch.cuda.device_count())

    ending = supervise.run(count, LIMIT_S, found.append)
    if not found:
        raise Ended("counting the GPUs: " + last_words(ending), ending)
    return found[0]


def _together(context, meeting, seed, size):
    """Run one process for each rank; returns their errors. Raises what the first one that ends badly tells."""
    errors = {}

    def start(rank):
        def hear(message):
            errors[rank] = message

        return supervise.Supervised(lambda send: _rank(context, meeting, (seed, rank, size), send), LIMIT_S, hear)

    children = {rank: start(rank) for rank in range(size)}
    failure = None
    while children:
        supervise.listen(list(children.values()))
        for rank, child in sorted(children.items()):
            child.press()
            if child.ended():
                ending = children.pop(rank).finish()
                failure = failure or _failure("rank %d of %d" % (rank, size), errors.get(rank), ending)
        for child in children.values() if failure is not None else ():
            child.deadline = 0.0  # it would wait for the one that is gone
    if failure is not None:
        raise failure
    return [math.inf if message["error"] is None else message["error"] for message in errors.values()]


def _failure(who, message, ending):
    """The error for a process that ended so after `message`; None without an error."""
    if message is None:
        print(ending.output, end="")
        return Ended("%s: %s" % (who, last_words(ending)), ending)
    if "problem" in message:
        print(ending.output, end="")
        return Disagreement("%s: %s" % (who, message["problem"]))
    return None


def _rank(context, meeting, place, send):
    """One process: its numbers in, the sum out. `place` is the seed, its rank and the number of processes."""
    try:
        error = _sum(context, meeting, *place)
    except Exception as problem:
        send({"problem": describe(problem)})
        raise
    send({"error": error if error < math.inf else None})


def _sum(context, meeting, seed, rank, size):
    import torch

    # NVLS is NVLink multicast, see above; set before NCCL makes its communicators
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    distributed = importlib.import_module("torch.distributed")
    backend, device = ("nccl", "cuda:%d" % rank) if context.on_gpu else ("gloo", "cpu")
    if context.on_gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend, init_method=meeting, rank=rank, world_size=size, timeout=dt.timedelta(seconds=LIMIT_S)
    )
    numbers = [reference.uniform(random.Random(seed + 7 * other), COUNT) for other in range(size)]
    tensor = torch.tensor(numbers[rank], dtype=torch.float32).to(device)
    distributed.all_reduce(tensor)
    got = tensor.double().cpu().tolist()
    mine = torch.tensor(numbers[rank], dtype=torch.float32).to(device)
    gathered = [torch.full((COUNT,), float("nan"), dtype=torch.float32, device=device) for _ in range(size)]
    distributed.all_gather(gathered, mine)
    arrived = [each.double().cpu().tolist() for each in gathered]
    distributed.destroy_process_group()
    for other, (one, right) in enumerate(zip(arrived, numbers)):
        same(
            "numbers of rank %d that all-gather brings" % other,
            one,
            torch.tensor(right, dtype=torch.float32).double().tolist(),
        )
    columns = list(zip(*numbers))
    wanted = [math.fsum(column) for column in columns]
    return reference.largest_error(got, wanted, [sum(map(abs, column)) or 1.0 for column in columns])
