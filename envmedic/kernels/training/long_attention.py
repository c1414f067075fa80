"""Attention over long sequences: plain, causal and masked, by each backend, with gradients.

What is used of torch under test: as in `checks.attention`; the reference uses ``@``, ``exp`` and sums in fp64 on the same device,
since 2,048 positions take a CPU a second, and some of its rows are computed again on the CPU.
"""

from __future__ import annotations

import math

from envmedic_kernels.checks import attention, dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable, Result, same, within
from envmedic_kernels.training.agreement import ROUNDOFF, Inputs

SHAPES = {"cpu": (1, 2, 40, 16), "gpu": (1, 2, 2048, 128)}
"""(batch, heads, positions, width)"""
SHARP = 4.0
"""Size of the queries: with smaller ones all positions count nearly alike, and a wrong scale hardly shows."""
FLOOR = 0.02
"""Least scale of a row, as a part of the largest number of all rows: some rows of gradients are nearly zero."""
GRADIENT = 4.0
"""Factor for gradients: where they nearly cancel, the rounded result that they are made from counts (20 units on an H100)."""
UNITS = {"fp32": 256.0, "fp16": 16.0, "bf16": 16.0}
SPOTS = 6
MODES = ("plain", "causal", "masked")


def by(name):
    """The check of one backend; None for the one that torch selects."""

    def check(context):
        import torch

        torch_support.needs(torch, attention.BACKENDS[name][1] if name else attention.FIRST, "attention by %s" % name)
        dense.prepare(torch, context)
        errors, taken = [], []
        kinds = ("fp16", "bf16") if context.on_gpu else ("fp32",)
        for kind in kinds:
            if kind == "bf16" and torch.cuda.get_device_capability(context.device)[0] < dense.FIRST_WITH_BF16:
                continue
            for seed in context.seeds():
                for mode in MODES:
                    found = _round(torch, Inputs(torch, context, kind, seed), name, mode)
                    taken += [mode] if found else []
                    for part, error in found or ():
                        limit = (1.0 if part == attention.PARTS[0] else GRADIENT) * UNITS[kind] * ROUNDOFF[kind]
                        what = "attention over %d, %s, %s %s, seed %d" % (_shape(context)[2], mode, part, kind, seed)
                        errors.append((within(what, error, limit), limit))
        if not errors:
            raise NotApplicable("torch says that %s does not take such inputs on this GPU" % name)
        modes = ", ".join(mode for mode in MODES if mode in taken)
        return Result("seed %d, %s" % (context.seed, modes), *dense.nearest(errors))

    return check


def _shape(context):
    return SHAPES["gpu" if context.on_gpu else "cpu"]


def _mask(torch, inputs, mode):
    """True where a query sees a key; the reference's own, also for the causal mode."""
    positions = _shape(inputs.context)[2]
    if mode == "plain":
        return None
    if mode == "causal":
        return torch.ones(positions, positions, dtype=torch.bool).tril()
    seen = inputs.whole(4, positions, positions) > 0
    # each query sees itself: without any key a row has no result
    return seen | torch.eye(positions, dtype=torch.bool)


def _reference(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    powers = (scores - scores.detach().amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True) @ value


def _round(torch, inputs, name, mode):
    """Errors of the result and of the gradients; None where the backend does not take the mode."""
    shape, context = _shape(inputs.context), inputs.context
    exact = [inputs.exact(*shape, size=SHARP if place == 0 else 1.0) for place in range(4)]
    mask = _mask(torch, inputs, mode)
    operands = [inputs.placed(each).requires_grad_() for each in exact[:3]]
    there = mask.to(context.device) if mask is not None else None
    given = {"is_causal": True} if mode == "causal" else {"attn_mask": there} if mode == "masked" else {}
    try:
        result = _attended(torch, name, operands, given)
    except NotApplicable:
        return None
    same("device of the result", result.device.type, context.device.partition(":")[0])
    (result * inputs.placed(exact[3])).sum().backward()
    doubles = [each.to(context.device).clone().requires_grad_() for each in exact[:3]]
    wanted = _reference(*doubles, there)
    (wanted * exact[3].to(context.device)).sum().backward()
    _spots(inputs, wanted, exact, mask)
    pairs = [(result, wanted), *((one.grad, other.grad) for one, other in zip(operands, doubles))]
    return [(part, _by_rows(got, right)) for part, (got, right) in zip(attention.PARTS, pairs)]


def _attended(torch, name, operands, given):
    function = torch.nn.functional.scaled_dot_product_attention
    if name is None:
        return function(*operands, **given)
    more = (given.get("attn_mask"), 0.0, "is_causal" in given)
    return attention.only(torch, name, lambda: function(*operands, **given), operands, more)


def _spots(inputs, wanted, exact, mask):
    """Compare some rows of the reference with the same on the CPU."""
    query, key, value = (each[0, 1] for each in exact[:3])
    for row in inputs.whole(len(query), SPOTS).tolist():
        seen = slice(None) if mask is None else mask[row]
        right = _reference(query[row : row + 1], key[seen], value[seen], None)
        right, got = right.detach(), wanted[0, 1, row : row + 1].detach().cpu()
        within("the fp64 reference itself", float((got - right).abs().max() / right.abs().max()), 1e-11)


def _by_rows(got, wanted):
    """Largest error, relative to the largest number of its row: rows with many positions are small."""
    got, wanted = got.detach().double(), wanted.detach()
    largest = wanted.abs().amax(-1, keepdim=True)
    scale = largest.clamp(min=float(largest.max()) * FLOOR)
    return float(((got - wanted).abs() / scale).max())
