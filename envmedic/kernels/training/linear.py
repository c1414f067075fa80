"""Linear layers with bias, batches of products and their sums with a third operand, with gradients.

What is used of torch under test: ``torch.nn.functional.linear``, ``torch.addmm``, ``bmm``, ``baddbmm``, ``mv``; the
references use ``@``.
"""

from __future__ import annotations

from envmedic_kernels.training.agreement import Part, check_of, sent_back

LAYERS = (("linear", (6, 32, 160), 72), ("linear of odd sizes", (37, 75), 29), ("wide linear", (256, 512), 384))
"""(name, shape of the input, outputs)"""
UNITS = {"fp64": 64.0, "fp32": 64.0, "fp16": 4.0, "bf16": 4.0}
"""Sums in fp32 (or fp64) of random signs err by little more than the square root of their length in partial sums."""


def _layers(inputs):
    """Linear layers with bias, and their gradients."""
    functional, units = inputs.torch.nn.functional, UNITS[inputs.kind]
    for name, shape, outputs in LAYERS:
        (x, xe), (weight, we), (bias, be) = (inputs.pair(*each) for each in (shape, (outputs, shape[-1]), (outputs,)))
        result, wanted = functional.linear(x, weight, bias), xe @ we.t() + be
        sent_back(result, wanted, inputs.exact(*wanted.shape))
        yield Part(name, result, wanted, units)
        yield Part(name + ", gradient of the input", x.grad, xe.grad, units)
        yield Part(name + ", gradient of the weight", weight.grad, we.grad, units)
        yield Part(name + ", gradient of the bias", bias.grad, be.grad, units)


def _batches(inputs):
    """Products of batches, one operand transposed, and sums with a third."""
    torch, units = inputs.torch, UNITS[inputs.kind]
    (left, le), (right, re), (third, te) = (inputs.pair(*shape) for shape in ((7, 48, 64), (7, 40, 64), (7, 48, 40)))
    result, wanted = torch.bmm(left, right.transpose(1, 2)), le @ re.transpose(1, 2)
    sent_back(result, wanted, inputs.exact(7, 48, 40))
    yield Part("bmm", result, wanted, units)
    yield Part("bmm, gradient of the left operand", left.grad, le.grad, units)
    yield Part("bmm, gradient of the right operand", right.grad, re.grad, units)
    result = torch.baddbmm(third, left, right.transpose(1, 2), beta=0.5, alpha=2.0)
    yield Part("baddbmm", result, 0.5 * te + 2.0 * wanted.detach(), units)
    result = torch.addmm(third[0], left[0], right[0].t(), beta=0.5, alpha=2.0)
    yield Part("addmm", result, 0.5 * te[0] + 2.0 * (le[0] @ re[0].t()), units)
    yield Part("mv", torch.mv(left[1], right[1][0]), le[1] @ re[1][0], units)


def parts(inputs):
    """Every result of the check."""
    yield from _layers(inputs)
    yield from _batches(inputs)


check = check_of(parts)
