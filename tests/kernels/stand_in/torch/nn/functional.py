"""torch.nn.functional"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import attention


def conv2d(x: Tensor, weight: Tensor, bias: Tensor, *, stride: int, padding: int) -> Tensor:
    """A convolution as a sum over pairs of elements, kept for both gradients."""
    torch.misbehave("conv2d")
    images, inputs, side, _ = x.shape
    outputs, _, size, _ = weight.shape
    out = (side + 2 * padding - size) // stride + 1
    pairs = [
        ((n * outputs + o) * out * out + r * out + c, ((n * inputs + i) * side + y) * side + z, ((o * inputs + i) * size + a) * size + b)
        for n in range(images) for o in range(outputs) for r in range(out) for c in range(out)
        for i in range(inputs) for a in range(size) for b in range(size)
        for y, z in [(r * stride + a - padding, c * stride + b - padding)] if 0 <= y < side and 0 <= z < side
    ]  # fmt: skip
    data = [bias.data[position // (out * out) % outputs] for position in range(images * outputs * out * out)]
    for target, source, factor in pairs:
        data[target] += x.data[source] * weight.data[factor]

    def gradient(up: list[float], *, of_input: bool) -> list[float]:
        result = [0.0] * len((x if of_input else weight).data)
        for target, source, factor in pairs:
            if of_input:
                result[source] += up[target] * weight.data[factor]
            else:
                result[factor] += up[target] * x.data[source]
        place = "" if x.dtype is torch.float64 else "conv2d input gradient" if of_input else "conv2d weight gradient"
        spoiled: list[float] = torch.spoiled(result, place, x.where)
        return spoiled

    kind = "" if x.dtype is torch.float64 else f"{x.dtype.name} "
    result = Tensor(torch.spoiled(data, f"{kind}conv2d", x.where), (images, outputs, out, out), x.dtype, x.where)
    result.parents = [
        (x, lambda up: gradient(up, of_input=True)),
        (weight, lambda up: gradient(up, of_input=False)),
    ]
    return result


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention of (1, heads, positions, width), row by row; each row's part of the gradients is kept."""
    name = attention.CHOSEN[-1]
    torch.misbehave(f"{name} attention")
    rows: list[tuple[int, int, list[float]]] = []
    (heads, positions, width), scale = query.shape[1:], query.shape[-1] ** -0.5
    queries, keys, values = (tensor.tolist()[0] for tensor in (query, key, value))
    data: list[float] = []
    for head in range(heads):
        for place in range(positions):
            scores = [scale * _dot(queries[head][place], other) for other in keys[head]]
            powers = [math.exp(score - max(scores)) for score in scores]
            weights = [power / sum(powers) for power in powers]
            rows.append((head, place, weights))
            data += [_dot(weights, [row[column] for row in values[head]]) for column in range(width)]
    result = query._like(torch.spoiled(data, f"{name} attention", query.where))

    def gradients(up: list[float]) -> tuple[list[float], list[float], list[float]]:
        found = ([0.0] * len(query.data), [0.0] * len(key.data), [0.0] * len(value.data))
        for number, (head, place, weights) in enumerate(rows):
            upstream = up[number * width : (number + 1) * width]
            of_weights = [_dot(upstream, row) for row in values[head]]
            mean = _dot(of_weights, weights)
            for other, (weight, one) in enumerate(zip(weights, of_weights, strict=True)):
                for column in range(width):
                    here, there = (
                        (head * positions + place) * width + column,
                        (head * positions + other) * width + column,
                    )
                    found[0][here] += scale * weight * (one - mean) * keys[head][other][column]
                    found[1][there] += scale * weight * (one - mean) * queries[head][place][column]
                    found[2][there] += weight * upstream[column]
        return found

    def gradient(index: int, label: str) -> Callable[[list[float]], list[float]]:
        return lambda up: torch.spoiled(gradients(up)[index], f"{name} attention {label} gradient", query.where)

    labels = ("query", "key", "value")
    result.parents = [(one, gradient(i, labels[i])) for i, one in enumerate((query, key, value))]
    return result


def _dot(left: list[float], right: list[float]) -> float:
    return sum(map(float.__mul__, left, right))
