"""Random numbers and dropout: their distribution, their seeds, and the gradient of dropout.

What is used of torch under test: ``torch.nn.functional.dropout``, ``torch.rand``, ``randn``, ``randperm``, ``bernoulli`` with ``device=``,
``torch.manual_seed``. Statistics are allowed `SIGMAS` standard deviations: a sound generator is off by more once in 10**8 runs.
"""

from __future__ import annotations

import math

from envmedic_kernels.checks import dense
from envmedic_kernels.harness.outcome import Disagreement, Result, same

COUNT = 1 << 20
PARTS = 64
"""Parts of the numbers that must have the mean by themselves: blocks of threads that repeat each other show."""
SIGMAS = 6.5
DROPPED = 0.3


def _near(what, got, wanted, deviation):
    if not abs(got - wanted) <= SIGMAS * deviation:
        raise Disagreement("%s is %.6g, expected %.6g within %.2g" % (what, got, wanted, SIGMAS * deviation))
    return abs(got - wanted) / deviation


def check(context, kind):
    """Dropout keeps the right share of elements, everywhere, scales them, and sends gradients through these alone."""
    import torch

    dense.prepare(torch, context)
    worst = 0.0
    for seed in context.seeds():
        torch.manual_seed(seed)
        worst = max(worst, _dropout(torch, context, getattr(torch, kind)))
        if kind == "float32":
            worst = max(worst, _numbers(torch, context, seed))
    return Result("seed %d, largest deviation %.1f sigma" % (context.seed, worst))


def _dropout(torch, context, dtype):
    x = torch.full((COUNT,), 0.75, dtype=dtype, device=context.device).requires_grad_()
    y = torch.nn.functional.dropout(x, DROPPED, True)
    y.sum().backward()
    kept = (y.detach() != 0).double()
    deviation = math.sqrt(DROPPED * (1.0 - DROPPED) / COUNT)
    worst = _near("share of elements that dropout keeps", float(kept.mean()), 1.0 - DROPPED, deviation)
    for number, share in enumerate(kept.reshape(PARTS, -1).mean(1).cpu().tolist()):
        what = "share that dropout keeps in part %d" % number
        worst = max(worst, _near(what, share, 1.0 - DROPPED, deviation * math.sqrt(PARTS)))
    pairs = float((kept[1:] * kept[:-1]).mean())
    # neighbours are independent
    worst = max(worst, _near("share of neighbours that are both kept", pairs, (1.0 - DROPPED) ** 2, 2 * deviation))
    values = sorted(set(y.detach().double().unique().cpu().tolist()))
    right = float(torch.tensor(0.75 / (1.0 - DROPPED), dtype=torch.float64).to(dtype).double())
    if values[:1] != [0.0] or values[2:] or any(abs(value - right) > right * 2.0**-7 for value in values[1:]):
        raise Disagreement("dropout gives %.200r, expected 0.0 and %r" % (values, right))
    if bool(((x.grad != 0) != (y.detach() != 0)).any()):
        raise Disagreement("gradients pass dropout elsewhere than numbers")
    same("dropout in evaluation", bool((torch.nn.functional.dropout(x, DROPPED, False) == x).all()), True)
    return worst


def _numbers(torch, context, seed):
    first = torch.rand(COUNT, device=context.device)
    same("numbers of rand in [0, 1)", bool(((first >= 0) & (first < 1)).all()), True)
    root = math.sqrt(COUNT)
    worst = _near("mean of rand", float(first.double().mean()), 0.5, math.sqrt(1 / 12) / root)
    again = torch.rand(COUNT, device=context.device)
    product = float(((first.double() - 0.5) * (again.double() - 0.5)).mean())
    worst = max(worst, _near("covariance of two calls of rand", product, 0.0, 1 / 12 / root))
    torch.manual_seed(seed)
    torch.nn.functional.dropout(torch.ones(COUNT, dtype=torch.float32, device=context.device), DROPPED, True)
    same("rand after the same seed", bool((torch.rand(COUNT, device=context.device) == first).all()), True)
    normal = torch.randn(COUNT, device=context.device).double()
    for power, (wanted, variance) in {1: (0.0, 1.0), 2: (1.0, 2.0), 3: (0.0, 15.0), 4: (3.0, 96.0)}.items():
        what = "moment %d of randn" % power
        worst = max(worst, _near(what, float((normal**power).mean()), wanted, math.sqrt(variance) / root))
    order = torch.randperm(5003, device=context.device).sort()[0].cpu().tolist()
    same("randperm, sorted", order, list(range(5003)))
    return worst
