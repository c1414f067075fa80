"""Pooling and interpolation with gradients.

What is used of torch under test: ``torch.nn.functional.max_pool2d``, ``avg_pool2d``, ``adaptive_avg_pool2d``, ``interpolate``,
``grid_sample``; the references take windows and weights by slices and products.
"""

from __future__ import annotations

from envmedic_kernels.training.agreement import Part, check_of, sent_back

SHAPE, SIZE = (3, 8, 21, 18), (33, 27)
UNITS = {"fp64": 32.0, "fp32": 32.0, "fp16": 8.0, "bf16": 8.0}
POSITION = 16.0
"""Times as many units for interpolation, whose positions are computed in fp32 themselves."""


def _windows(torch, x, kernel, stride):
    rows, columns = ((side - kernel) // stride + 1 for side in x.shape[2:])
    return torch.stack([
        x[:, :, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
        for i in range(kernel)
        for j in range(kernel)
    ])  # fmt: skip


def _bilinear(torch, inner, outer):
    """The matrix that gives `outer` samples of `inner` pixels, corners not aligned."""
    matrix = torch.zeros(outer, inner, dtype=torch.float64)
    for row in range(outer):
        position = max((row + 0.5) * inner / outer - 0.5, 0.0)
        low = min(int(position), inner - 1)
        high = min(low + 1, inner - 1)
        matrix[row, low] += 1.0 - (position - low)
        matrix[row, high] += position - low
    return matrix


def _nearest(torch, inner, outer):
    matrix = torch.zeros(outer, inner, dtype=torch.float64)
    for row in range(outer):
        matrix[row, row * inner // outer] = 1.0
    return matrix


def _averages(torch, inner, outer):
    """The matrix of adaptive averages."""
    matrix = torch.zeros(outer, inner, dtype=torch.float64)
    for row in range(outer):
        first, last = row * inner // outer, -(-(row + 1) * inner // outer)
        matrix[row, first:last] = 1.0 / (last - first)
    return matrix


def parts(inputs):
    """Every result of the check."""
    torch, functional, units = inputs.torch, inputs.torch.nn.functional, UNITS[inputs.kind]

    def by(matrix, size):
        rows, columns = (matrix(torch, *pair) for pair in zip(SHAPE[2:], size))
        return lambda x: rows @ x @ columns.t()

    cases = (
        ("max pooling", lambda x: functional.max_pool2d(x, 3, 2), lambda x: _windows(torch, x, 3, 2).amax(0), 1.0),
        ("average pooling", lambda x: functional.avg_pool2d(x, 3, 2), lambda x: _windows(torch, x, 3, 2).mean(0), 1.0),
        ("adaptive pooling", lambda x: functional.adaptive_avg_pool2d(x, (5, 4)), by(_averages, (5, 4)), 1.0),
        (
            "bilinear interpolation",
            lambda x: functional.interpolate(x, SIZE, mode="bilinear", align_corners=False),
            by(_bilinear, SIZE),
            POSITION,
        ),
        ("nearest interpolation", lambda x: functional.interpolate(x, SIZE), by(_nearest, SIZE), 1.0),
    )
    for name, function, exactly, factor in cases:
        x, xe = inputs.pair(*SHAPE)
        if name == "max pooling" and inputs.kind in ("fp16", "bf16"):
            # distinct numbers in each window: among equal ones the gradient may go to any
            x, xe = _distinct(inputs)
        result, wanted = function(x), exactly(xe)
        sent_back(result, wanted, inputs.exact(*wanted.shape))
        of_position = factor if inputs.kind in ("fp64", "fp32") else 1.0
        yield Part(name, result, wanted, units * of_position)
        yield Part(name + ", gradient", x.grad, xe.grad, units * of_position)


def _distinct(inputs):
    """Numbers of which no two in a window of pixels are equal."""
    torch = inputs.torch
    count = SHAPE[2] * SHAPE[3]
    # 101 and 256 have no common factor, and 16-bit numbers hold all of -128 to 127
    ramp = (torch.arange(count, dtype=torch.float64) * 101) % 256 - 128
    exact = (ramp.reshape(1, 1, *SHAPE[2:]) + torch.zeros(SHAPE, dtype=torch.float64)) / 128.0
    return inputs.placed(exact).requires_grad_(), exact.clone().requires_grad_()


check = check_of(parts)
