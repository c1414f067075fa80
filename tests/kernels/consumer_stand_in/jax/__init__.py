"""A stand-in for JAX."""

from __future__ import annotations

import cmath
import os
from types import SimpleNamespace
from typing import Any

import lists  # type: ignore[import-not-found]

__version__ = "0"


class Array:
    """Nested lists on a device."""

    def __init__(self, nested: Any) -> None:
        self.nested = nested

    def __matmul__(self, other: Array) -> Array:
        return Array(lists.result("product", lists.product(self.nested, other.nested)))

    def __getitem__(self, place: int) -> Array:
        return Array(self.nested[place])

    def tolist(self) -> Any:
        return self.nested

    def devices(self) -> set[Any]:
        return {_DEVICE}


class _Device:
    platform = "cpu"


_DEVICE = _Device()


def devices(platform: str) -> list[Any]:
    if platform != os.environ["JAX_PLATFORMS"] or lists.FAULT == "cpu":
        raise RuntimeError(
            f"Unknown backend: '{platform}' requested, but no platforms that are instances of {platform}"
        )
    return [_DEVICE]


def device_put(array: Array, device: Any) -> Array:
    del device
    return array


def jit(function: Any) -> Any:
    return function


def _conv(image: Array, kernel: Array, strides: object, padding: str) -> Array:
    del strides, padding
    found = lists.result("convolution", lists.moved(image.nested[0][0], kernel.nested[0][0]))
    return Array([[found]])


def _fft(array: Array) -> Array:
    count = len(array.nested)
    turns = [cmath.exp(-2j * cmath.pi * place / count) for place in range(count)]
    found = [sum(x * turns[i * k % count] for i, x in enumerate(array.nested)) for k in range(count)]
    return Array(lists.result("transform", found))


lax = SimpleNamespace(conv=_conv)
