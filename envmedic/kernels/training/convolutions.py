"""Convolutions of 1 x 1, by channel, in groups, with strides, dilated, transposed, in one and three dimensions, with gradients.

What is used of torch under test: ``torch.nn.functional.conv1d, conv2d, conv3d, conv_transpose2d``; the reference adds shifted
products in fp64 on the CPU.
"""

from __future__ import annotations

import itertools

from envmedic_kernels.training.agreement import Part, check_of, sent_back

UNITS = {"fp64": 128.0, "fp32": 128.0, "fp16": 6.0, "bf16": 6.0}


class Shape:
    """One convolution: images, channels, pixels of each side, kernel of each side, and how it moves."""

    def __init__(self, name, images, channels, sides, kernel, stride=1, padding=0, dilation=1, groups=1, *, last=False):
        self.name, self.images, self.sides, self.kernel = name, images, sides, kernel
        self.inputs, self.outputs = channels
        self.stride, self.padding, self.dilation, self.groups, self.last = stride, padding, dilation, groups, last

    @property
    def settings(self):
        """How it moves, as torch's functions take it."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}


SHAPES = (
    Shape("1x1", 4, (64, 48), (14, 14), (1, 1)),
    Shape("1x1, channels last", 4, (64, 48), (14, 14), (1, 1), last=True),
    Shape("1x1 with strides", 2, (32, 64), (15, 15), (1, 1), stride=2),
    Shape("by channel", 4, (32, 32), (16, 16), (3, 3), padding=1, groups=32),
    Shape("by channel, channels last", 4, (32, 32), (16, 16), (3, 3), stride=2, padding=1, groups=32, last=True),
    Shape("in groups", 2, (32, 64), (14, 14), (3, 3), padding=1, groups=4),
    Shape("7x7 with strides", 2, (3, 32), (40, 40), (7, 7), stride=2, padding=3),
    Shape("3x3 with strides, channels last", 2, (32, 64), (21, 21), (3, 3), stride=2, padding=1, last=True),
    Shape("dilated", 2, (16, 16), (19, 19), (3, 3), padding=2, dilation=2),
    Shape("one dimension", 3, (16, 32), (120,), (5,), stride=2, padding=2),
    Shape("three dimensions", 2, (8, 16), (7, 10, 10), (3, 3, 3), padding=1),
)


def _convolved(torch, x, weight, shape):
    """The sum, over the places of the kernel, of the shifted input times the weights of that place."""
    images, groups = x.shape[0], shape.groups
    padded = torch.zeros(images, shape.inputs, *(side + 2 * shape.padding for side in shape.sides), dtype=x.dtype)
    inner = tuple(slice(shape.padding, shape.padding + side) for side in shape.sides)
    padded[(slice(None), slice(None), *inner)] = x
    ends = [
        (side + 2 * shape.padding - shape.dilation * (kernel - 1) - 1) // shape.stride + 1
        for side, kernel in zip(shape.sides, shape.kernel)
    ]
    padded = padded.reshape(images, groups, shape.inputs // groups, *padded.shape[2:])
    weights = weight.reshape(groups, shape.outputs // groups, shape.inputs // groups, *shape.kernel)
    total = 0.0
    for place in itertools.product(*(range(side) for side in shape.kernel)):
        window = tuple(
            slice(shape.dilation * at, shape.dilation * at + shape.stride * (end - 1) + 1, shape.stride)
            for at, end in zip(place, ends)
        )
        moved = padded[(slice(None), slice(None), slice(None), *window)].flatten(3)
        total = total + weights[(slice(None), slice(None), slice(None), *place)] @ moved
    return total.reshape(images, shape.outputs, *ends)


def _layout(torch, shape, tensor):
    return tensor.contiguous(memory_format=torch.channels_last) if shape.last else tensor


def parts(inputs):
    """Every result of the check."""
    torch, functional, units = inputs.torch, inputs.torch.nn.functional, UNITS[inputs.kind]
    for shape in SHAPES:
        x, xe = inputs.pair(shape.images, shape.inputs, *shape.sides)
        weight, we = inputs.pair(shape.outputs, shape.inputs // shape.groups, *shape.kernel)
        bias, be = inputs.pair(shape.outputs)
        x, weight = (_layout(torch, shape, each.detach()).requires_grad_() for each in (x, weight))
        function = getattr(functional, "conv%dd" % len(shape.sides))
        result = function(x, weight, bias, **shape.settings)
        wanted = _convolved(torch, xe, we, shape) + be.reshape(-1, *([1] * len(shape.sides)))
        sent_back(result, wanted, inputs.exact(*wanted.shape))
        name = "convolution, " + shape.name
        yield Part(name, result, wanted, units)
        yield Part(name + ", gradient of the input", x.grad, xe.grad, units)
        yield Part(name + ", gradient of the weight", weight.grad, we.grad, units)
        yield Part(name + ", gradient of the bias", bias.grad, be.grad, units)
    yield from _transposed(inputs)


def _transposed(inputs):
    """A transposed convolution is the gradient that the convolution of the same weights has for its input."""
    torch = inputs.torch
    shape = Shape("transposed", 2, (16, 24), (15, 15), (3, 3), stride=2, padding=1)
    weight = inputs.exact(shape.outputs, shape.inputs, *shape.kernel)
    upstream = inputs.exact(2, shape.outputs, 8, 8)
    origin = torch.zeros(2, shape.inputs, *shape.sides, dtype=torch.float64).requires_grad_()
    (_convolved(torch, origin, weight, shape) * upstream).sum().backward()
    result = torch.nn.functional.conv_transpose2d(
        inputs.placed(upstream), inputs.placed(weight), stride=shape.stride, padding=shape.padding
    )
    yield Part("transposed convolution", result, origin.grad, UNITS[inputs.kind])


check = check_of(parts)
