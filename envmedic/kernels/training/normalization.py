"""Batch, layer, group and RMS normalization with gradients.

What is used of torch under test: ``torch.nn.functional.batch_norm``, ``layer_norm``, ``group_norm``, ``instance_norm``; the
references use means and squares. Under 16 bits, weights and statistics of batch normalization are fp32, as in training.
"""

from __future__ import annotations

from envmedic_kernels.training.agreement import Part, check_of, sent_back

EPSILON, MOMENTUM = 1e-5, 0.1
UNITS = {"fp64": 64.0, "fp32": 64.0, "fp16": 8.0, "bf16": 8.0}
SHAPE = (6, 24, 17, 13)
"""Images, channels, rows, columns."""


def _normalized(x, axes):
    mean = x.mean(axes, keepdim=True)
    variance = ((x - mean) ** 2).mean(axes, keepdim=True)
    return (x - mean) / (variance + EPSILON) ** 0.5, mean, variance


def _columns(vector, dimensions):
    return vector.reshape(1, -1, *([1] * (dimensions - 2)))


def _checked(inputs, name, x, exact, result, wanted, weights):
    """The parts of one normalization; `weights` are (on the device, in fp64) pairs."""
    units = UNITS[inputs.kind]
    sent_back(result, wanted, inputs.exact(*wanted.shape))
    yield Part(name, result, wanted, units)
    yield Part(name + ", gradient of the input", x.grad, exact.grad, units)
    for label, (weight, reference) in zip(("weight", "bias"), weights):
        yield Part("%s, gradient of the %s" % (name, label), weight.grad, reference.grad, units)


def _batch(inputs, layout):
    torch, functional = inputs.torch, inputs.torch.nn.functional
    single = inputs.dtype if inputs.kind == "fp64" else torch.float32
    x, xe = inputs.pair(*SHAPE)
    if layout == "channels last":
        x = x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    (weight, we), (bias, be) = (inputs.pair(SHAPE[1], dtype=single) for _ in range(2))
    running = [torch.zeros(SHAPE[1], dtype=single).to(x.device), torch.ones(SHAPE[1], dtype=single).to(x.device)]
    result = functional.batch_norm(x, *running, weight, bias, True, MOMENTUM, EPSILON)
    plain, mean, variance = _normalized(xe, (0, 2, 3))
    wanted = plain * _columns(we, 4) + _columns(be, 4)
    name = "batch norm" + (", " + layout if layout else "")
    yield from _checked(inputs, name, x, xe, result, wanted, ((weight, we), (bias, be)))
    count = xe.numel() / SHAPE[1]
    kind = None if inputs.kind == "fp64" else "fp32"
    moved = (1.0 - MOMENTUM) + MOMENTUM * variance.flatten() * count / (count - 1.0)
    yield Part(name + ", running mean", running[0], MOMENTUM * mean.flatten(), 64.0, kind=kind)
    yield Part(name + ", running variance", running[1], moved, 64.0, kind=kind)
    result = functional.batch_norm(x.detach(), *running, weight, bias, False, MOMENTUM, EPSILON)
    kept = [_columns(each.double().cpu(), 4) for each in running]
    wanted = (xe - kept[0]) / (kept[1] + EPSILON) ** 0.5 * _columns(we, 4) + _columns(be, 4)
    yield Part(name + ", evaluation", result, wanted, UNITS[inputs.kind])


def parts(inputs):
    """Every result of the check."""
    functional = inputs.torch.nn.functional
    yield from _batch(inputs, "")
    yield from _batch(inputs, "channels last")
    for width in (96, 1030):
        x, xe = inputs.pair(33, width)
        (weight, we), (bias, be) = (inputs.pair(width) for _ in range(2))
        result = functional.layer_norm(x, (width,), weight, bias, EPSILON)
        wanted = _normalized(xe, (1,))[0] * we + be
        yield from _checked(inputs, "layer norm of %d" % width, x, xe, result, wanted, ((weight, we), (bias, be)))
    x, xe = inputs.pair(*SHAPE)
    (weight, we), (bias, be) = (inputs.pair(SHAPE[1]) for _ in range(2))
    result = functional.group_norm(x, 4, weight, bias, EPSILON)
    plain = _normalized(xe.reshape(SHAPE[0], 4, -1), (2,))[0].reshape(SHAPE)
    wanted = plain * _columns(we, 4) + _columns(be, 4)
    yield from _checked(inputs, "group norm", x, xe, result, wanted, ((weight, we), (bias, be)))
    x, xe = inputs.pair(*SHAPE)
    result, wanted = functional.instance_norm(x, eps=EPSILON), _normalized(xe, (2, 3))[0]
    yield from _checked(inputs, "instance norm", x, xe, result, wanted, ())


check = check_of(parts)
