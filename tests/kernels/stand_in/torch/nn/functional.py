"""torch.nn.functional"""

from __future__ import annotations

import torch
from torch import Tensor


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
