"""torch.fft, by halving where it can."""

from __future__ import annotations

import cmath
import math
from typing import Any

import torch
from torch import Tensor


def _transform(values: list[Any], sign: int) -> list[Any]:
    count = len(values)
    if count % 2:
        return [
            sum(value * cmath.exp(sign * 2j * math.pi * place * k / count) for place, value in enumerate(values))
            for k in range(count)
        ]
    even, odd = _transform(values[::2], sign), _transform(values[1::2], sign)
    turned = [cmath.exp(sign * 2j * math.pi * k / count) * value for k, value in enumerate(odd)]
    pairs = list(zip(even, turned, strict=True))
    return [a + b for a, b in pairs] + [a - b for a, b in pairs]


def fft(x: Tensor) -> Tensor:
    torch.misbehave("fft")
    return Tensor(torch.spoiled(_transform(x.data, -1), "fft", x.where), x.shape, torch.complex64, x.where)


def rfft(x: Tensor) -> Tensor:
    half = _transform(x.data, -1)[: len(x.data) // 2 + 1]
    return Tensor(torch.spoiled(half, "rfft", x.where), (len(half),), torch.complex64, x.where)


def irfft(x: Tensor, *, n: int) -> Tensor:
    data: list[Any] = [x.data[k] if k < len(x.data) else x.data[n - k].conjugate() for k in range(n)]
    real = [value.real / n for value in _transform(data, 1)]
    return Tensor(torch.spoiled(real, "irfft", x.where), (n,), torch.float32, x.where)
