"""Softmax, cross entropy and activations with gradients.

What is used of torch under test: ``torch.nn.functional.softmax``, ``log_softmax``, ``cross_entropy``, ``mse_loss``,
``binary_cross_entropy_with_logits``, ``gelu``, ``silu``, ``relu``; the references use ``exp``, ``log``, ``erf`` and sums.
"""

from __future__ import annotations

import math

from envmedic_kernels.training.agreement import Part, check_of, sent_back

ROWS, FEW, CLASSES, MANY = 60, 50, 1000, 5003
UNITS = {"fp64": 32.0, "fp32": 32.0, "fp16": 8.0, "bf16": 8.0}
IGNORED = -100
"""Label that counts for nothing."""


def _log_softmax(x, axis):
    top = x.detach().amax(axis, keepdim=True)
    return x - top - (x - top).exp().sum(axis, keepdim=True).log()


def _softmax(inputs):
    functional, units = inputs.torch.nn.functional, UNITS[inputs.kind]
    for shape, axis in (((ROWS, CLASSES), 1), ((7, MANY), 1), ((5, 33, 41), 1)):
        for name in ("softmax", "log_softmax"):
            x, xe = inputs.pair(*shape, size=4.0)
            result = getattr(functional, name)(x, axis)
            wanted = _log_softmax(xe, axis)
            wanted = wanted.exp() if name == "softmax" else wanted
            sent_back(result, wanted, inputs.exact(*shape))
            what = "%s of %s" % (name, "x".join(map(str, shape)))
            yield Part(what, result, wanted, units)
            yield Part(what + ", gradient", x.grad, xe.grad, units)


def _cross_entropy(inputs):
    torch, units = inputs.torch, UNITS[inputs.kind]
    # with smoothing torch adds all logarithms in the precision itself: those of many classes exceed what fp16 holds
    for smoothing, classes in ((0.0, CLASSES), (0.1, FEW)):
        labels = inputs.whole(classes, ROWS)
        labels[::7] = IGNORED
        used = labels != IGNORED
        x, xe = inputs.pair(ROWS, classes, size=4.0)
        more = {"label_smoothing": smoothing} if smoothing else {}
        result = torch.nn.functional.cross_entropy(x, labels.to(x.device), ignore_index=IGNORED, **more)
        logs = _log_softmax(xe, 1)[used]
        own = logs.gather(1, labels[used].reshape(-1, 1)).reshape(-1)
        wanted = -((1.0 - smoothing) * own + smoothing * logs.mean(1)).mean()
        result.backward()
        wanted.backward()
        yield Part("cross entropy, smoothing %s" % smoothing, result, wanted, units)
        yield Part("cross entropy, smoothing %s, gradient" % smoothing, x.grad, xe.grad, units)


def _activations(inputs):
    torch, units = inputs.torch, UNITS[inputs.kind]
    functional = torch.nn.functional
    functions = {
        "gelu": lambda x: 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0))),
        "silu": lambda x: x / (1.0 + (-x).exp()),
        "relu": lambda x: x * (x > 0),
    }
    for name, function in functions.items():
        x, xe = inputs.pair(37, 129, size=4.0)
        result, wanted = getattr(functional, name)(x), function(xe)
        sent_back(result, wanted, inputs.exact(37, 129))
        yield Part(name, result, wanted, units)
        yield Part(name + ", gradient", x.grad, xe.grad, units)
    (x, xe), (target, te) = inputs.pair(ROWS, 75), inputs.pair(ROWS, 75)
    result, wanted = functional.mse_loss(x, target), ((xe - te) ** 2).mean()
    result.backward()
    wanted.backward()
    yield Part("mean squared error", result, wanted, units)
    yield Part("mean squared error, gradient", x.grad, xe.grad, units)
    x, xe = inputs.pair(ROWS, 75, size=4.0)
    target = inputs.whole(2, ROWS, 75).double()
    result = functional.binary_cross_entropy_with_logits(x, inputs.placed(target))
    wanted = ((1.0 + xe.exp()).log() - target * xe).mean()
    result.backward()
    wanted.backward()
    yield Part("binary cross entropy", result, wanted, units)
    yield Part("binary cross entropy, gradient", x.grad, xe.grad, units)


def parts(inputs):
    """Every result of the check."""
    yield from _softmax(inputs)
    yield from _cross_entropy(inputs)
    yield from _activations(inputs)


check = check_of(parts)
