"""torchaudio's compiled recursive filter, and its gradient, against fp64.

What is used of torch and torchaudio, and nothing else: ``torchaudio.functional.lfilter(samples, a, b, clamp=False)``;
``torch.tensor(list, dtype=)``, ``torch.float32``; of a tensor ``to(device)``, ``detach()``, ``double()``, ``cpu()``,
``tolist()``, ``device.type``, ``requires_grad_()``, ``grad``, and ``(y * upstream).sum().backward()``.
"""

from __future__ import annotations

import importlib
import random

from envmedic_kernels.checks import dense
from envmedic_kernels.harness.outcome import Result, same, within
from envmedic_kernels.references import exact, reference

COUNT = {"cpu": 200, "gpu": 2000}
FEEDBACK, FORWARD = [1.0, -0.5, 0.25], [0.5, 0.25, -0.125]
"""Coefficients of a stable filter, exact in fp32."""


def lfilter(context):
    """The filter and the gradient of its input, which is the filter run backwards in time."""
    import torch

    functional = importlib.import_module("torchaudio.functional")
    dense.prepare(torch, context)
    limit = 64.0 * reference.UNIT_ROUNDOFF["fp32"]
    worst = 0.0
    for seed in context.seeds():
        for part, error in _round(torch, functional, context, seed):
            worst = max(worst, within("lfilter %s, seed %d" % (part, seed), error, limit))
    return Result("seed %d" % context.seed, worst, limit)


def _round(torch, functional, context, seed):
    generator = random.Random(seed)
    count = COUNT["gpu" if context.on_gpu else "cpu"]
    samples, upstream = reference.uniform(generator, count), reference.uniform(generator, count)

    def place(numbers):
        return torch.tensor(numbers, dtype=torch.float32).to(context.device)

    x = place([samples]).detach().requires_grad_()
    y = functional.lfilter(x, place(FEEDBACK), place(FORWARD), clamp=False)
    same("device of the samples", y.device.type, context.device.partition(":")[0])
    (y * place([upstream])).sum().backward()
    wanted = exact.filtered(samples, FEEDBACK, FORWARD)
    # A filter is linear: the gradient of its input is the same filter over the reversed upstream.
    gradient = exact.filtered(upstream[::-1], FEEDBACK, FORWARD)[::-1]
    for part, tensor, expected in (("result", y, wanted), ("gradient", x.grad, gradient)):
        got = tensor.detach().double().cpu().tolist()[0]
        yield part, reference.largest_error(got, expected, exact.largest(expected))
