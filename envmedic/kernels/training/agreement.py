"""What the checks of training share: inputs in a precision, their exact counterparts, and the judgement of results.

References are built of elementary operations (products, sums, exponentials) in fp64 on the CPU, which the checks of
`dense` and `algebra` compare with plain Python; none calls the function under test. Errors are in units of
roundoff of the precision, relative to the largest element of what is wanted, or to a scale that the check gives.

What is used of torch here: ``torch.Generator`` and ``manual_seed``, ``torch.rand(shape, generator=, dtype=)``,
``torch.float64 / float32 / float16 / bfloat16``; of a tensor ``to(device)``, ``to(dtype)``, ``double()``, ``cpu()``,
``detach()``, ``requires_grad_()``, ``abs()``, ``max()``, ``numel()``, ``shape``, ``dtype``, ``device.type``.
"""

from __future__ import annotations

from envmedic_kernels.checks import dense
from envmedic_kernels.harness.outcome import Result, same, within
from envmedic_kernels.references import reference

ROUNDOFF = dict(reference.UNIT_ROUNDOFF, fp64=2.0**-53)
"""Largest relative error of rounding to nearest, by precision."""
DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


class Inputs:
    """Random operands of one round: on the device in its precision, and the same numbers in fp64 on the CPU."""

    def __init__(self, torch, context, kind, seed):
        self.torch, self.context, self.kind = torch, context, kind
        self.dtype = getattr(torch, DTYPES[kind])
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def exact(self, *shape, size=1.0):
        """Numbers in [-size, size) that the precision holds exactly, in fp64 on the CPU."""
        torch = self.torch
        numbers = torch.rand(shape, generator=self.generator, dtype=torch.float64) * (2.0 * size) - size
        return numbers.to(self.dtype).double()

    def whole(self, below, *shape):
        """Whole numbers from 0 to `below`, in int64 on the CPU."""
        torch = self.torch
        return (torch.rand(shape, generator=self.generator, dtype=torch.float64) * below).to(torch.int64)

    def placed(self, exact, dtype=None):
        """A copy of `exact` on the device."""
        return exact.detach().to(dtype or self.dtype).to(self.context.device).clone()

    def pair(self, *shape, size=1.0, dtype=None):
        """An operand on the device and the same in fp64 on the CPU, both with gradients."""
        exact = self.exact(*shape, size=size)
        return self.placed(exact, dtype).requires_grad_(), exact.requires_grad_()


class Part:
    """One result of a check: `got` on the device, `wanted` in fp64, and the error allowed, in units of roundoff."""

    def __init__(self, what, got, wanted, units, scale=None, kind=None):
        self.what, self.got, self.wanted, self.units, self.scale = what, got, wanted, units, scale
        self.kind = kind

    def error(self):
        """The largest error relative to the scale; infinite where a result is no number."""
        got, wanted = self.got.detach().double().cpu(), self.wanted.detach().double().cpu()
        difference = (got - wanted).abs()
        if not difference.numel():
            return 0.0
        scale = wanted.abs().max() if self.scale is None else self.scale
        if self.units == 0:  # exact results: any difference counts
            return float(difference.max())
        return float((difference / scale).max())


def sent_back(result, exact, upstream):
    """Send the gradient `upstream`, in fp64, back through a result and through its reference."""
    # y.backward(upstream) imports sympy in torch 2.5: 2 s
    (result * upstream.to(result.dtype).to(result.device)).sum().backward()
    (exact * upstream).sum().backward()


def judged(context, kind, parts):
    """Run ``parts(inputs)``, which yields each `Part`, for each seed. Raises `Disagreement` for what is off."""
    import torch

    dense.prepare(torch, context)
    errors, count = [], 0
    for seed in context.seeds():
        for part in parts(Inputs(torch, context, kind, seed)):
            what = "%s %s, seed %d" % (part.what, kind, seed)
            same("device of %s" % what, part.got.device.type, context.device.partition(":")[0])
            same("shape of %s" % what, list(part.got.shape), list(part.wanted.shape))
            limit = part.units * ROUNDOFF[part.kind or kind]
            error = within(what, part.error(), limit)
            count += 1
            if limit:
                errors.append((error, limit))
    worst = dense.nearest(errors) if errors else (0.0, 0.0)
    return Result("seed %d, %d results" % (context.seed, count), *worst)


def check_of(parts):
    """The check, by precision, of what ``parts(inputs)`` yields."""

    def check(context, kind):
        return judged(context, kind, parts)

    return check
