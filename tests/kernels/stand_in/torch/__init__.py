"""What the checks use of torch, on nested lists; the variable FAULT names what is wrong with it.

``GPUS`` devices named "Stand-in GPU" can be had. On them and on the CPU the same code computes.
"""

from __future__ import annotations

import builtins
import ctypes
import math
import os
import struct
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

FAULT = os.environ.get("FAULT", "")
"""Several are separated by semicolons, where each is of the form ``WHAT at PLACE``."""
FAULTS = [tuple(fault.split(" at ")) for fault in FAULT.split(";") if " at " in fault]
GPUS = int(os.environ.get("GPUS", "0"))
magnitude = builtins.abs
__version__ = os.environ.get("TORCH", "2.5.1+cu124")
version = SimpleNamespace(cuda=os.environ.get("CUDA_BUILD") or None)


def misbehave(place: str) -> None:
    """Carry out a FAULT such as ``segfault at matmul``."""
    for what in [what for what, where in FAULTS if where == place]:
        if what == "segfault":
            ctypes.string_at(0)
        if what == "hang":
            time.sleep(600)
        if what == "abort":
            os.abort()
        if what == "exit":
            os._exit(0)
        if what == "error":
            raise RuntimeError(f"{place} is broken\nsecond line")


print("rubbish on stdout at import\n@envmedic not a message")  # noqa: T201
misbehave("import torch")


class dtype:  # noqa: N801  # torch's name
    """An element type: how a number is rounded to it."""

    def __init__(self, name: str, round_: Callable[[float], float]) -> None:
        self.name, self.round = name, round_

    def __repr__(self) -> str:
        return f"torch.{self.name}"


def _to_single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _to_bfloat16(value: float) -> float:
    (bits,) = struct.unpack("I", struct.pack("f", value))
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0])


def _to_half(value: float) -> float:
    return float(struct.unpack("e", struct.pack("e", value))[0])


def _to_eighth(value: float) -> float:
    """To three bits of fraction; the range does not matter here."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(fraction * 16), exponent - 4)


float64 = dtype("float64", float)
float32 = dtype("float32", _to_single)
float16 = dtype("float16", _to_half)
bfloat16 = dtype("bfloat16", _to_bfloat16)
float8_e4m3fn = dtype("float8_e4m3fn", _to_eighth)
complex64 = dtype("complex64", lambda value: value)
int64 = dtype("int64", int)
uint8 = dtype("uint8", int)


def _flat(nested: Any) -> list[float]:
    return [number for part in nested for number in _flat(part)] if isinstance(nested, list) else [nested]


def _shape(nested: Any) -> tuple[int, ...]:
    return (len(nested), *_shape(nested[0])) if isinstance(nested, list) and nested else (0,) * isinstance(nested, list)


class Tensor:
    """Numbers with a shape; `parents` are (tensor, function from the own gradient to its) pairs."""

    def __init__(self, data: list[float], shape: tuple[int, ...], kind: dtype, device: str = "cpu") -> None:
        self.data = [kind.round(value) for value in data]
        self.shape, self.dtype = shape, kind
        self.where = device
        self.device = SimpleNamespace(type=device.partition(":")[0])
        self.parents: list[tuple[Tensor, Callable[[list[float]], list[float]]]] = []
        self.grad: Tensor | None = None

    def _like(self, data: list[float], **changes: Any) -> Tensor:
        return Tensor(data, self.shape, changes.get("kind", self.dtype), changes.get("device", self.where))

    def to(self, target: dtype | str) -> Tensor:
        return self._like(self.data, **({"kind": target} if isinstance(target, dtype) else {"device": target}))

    def double(self) -> Tensor:
        return self.to(float64)

    def cpu(self) -> Tensor:
        return self.to("cpu")

    def detach(self) -> Tensor:
        return self._like(self.data)

    def abs(self) -> Tensor:
        return self._like([magnitude(value) for value in self.data])

    def requires_grad_(self) -> Tensor:
        return self

    def pin_memory(self) -> Tensor:
        return self

    def copy_(self, source: Tensor) -> Tensor:
        misbehave("copy")
        way = f"copy to {self.where}" if self.where != source.where else f"copy within {self.where}"
        self.data[:] = spoiled([self.dtype.round(value) for value in source.data], way, self.where)
        return self

    def t(self) -> Tensor:
        rows = [list(row) for row in zip(*self.tolist(), strict=True)]
        return Tensor(_flat(rows), _shape(rows), self.dtype, self.where)

    def tolist(self) -> Any:
        nested: list[Any] = list(self.data)
        if not self.shape:
            return nested[0]
        for length in reversed(self.shape[1:]):
            nested = [nested[start : start + length] for start in range(0, len(nested), length)] if length else []
        return nested

    def __mul__(self, other: Tensor) -> Tensor:
        result = self._like([a * b for a, b in zip(self.data, other.data, strict=True)])
        result.parents = [(self, lambda up: [a * b for a, b in zip(up, other.data, strict=True)])]
        return result

    def __add__(self, number: float) -> Tensor:
        return self._like([value + number for value in self.data])

    def sum(self, dimension: int | None = None) -> Tensor:
        if dimension == 1:
            rows = [sum(row) for row in self.tolist()]
            return Tensor(rows, (len(rows),), self.dtype, self.where)
        result = Tensor([sum(self.data)], (), self.dtype, self.where)
        result.parents = [(self, lambda up: up * len(self.data))]
        return result

    def backward(self) -> None:
        todo = [(self, [1.0])]
        while todo:
            tensor, gradient = todo.pop()
            tensor.grad = tensor._like(gradient)
            todo += [(parent, function(gradient)) for parent, function in tensor.parents]


def tensor(nested: Any, *, dtype: dtype) -> Tensor:
    return Tensor(_flat(nested), _shape(nested), dtype)


def zeros(shape: tuple[int, ...]) -> Tensor:
    size = 1
    for length in shape:
        size *= length
    return Tensor([0.0] * size, shape, float32)


def full(shape: tuple[int, ...], value: float, *, device: str, dtype: dtype = float32) -> Tensor:
    """Of `shape`; what is only left behind in memory is kept short."""
    size = math.prod(shape)
    return Tensor([value] * (size if size < 1 << 22 else 1), shape, dtype, device)


def spoiled(data: list[Any], place: str, device: str) -> list[Any]:
    """`data`, wrong where FAULT says so: ``element``, ``nan``, ``zeros`` or ``last at PLACE [on DEVICE]``."""
    if not data:
        return data
    wrong = list(data)
    for what in [what for what, where in FAULTS if where in {place, f"{place} on {device}"}]:
        if what == "element":
            largest = max(range(len(wrong)), key=lambda index: magnitude(wrong[index]))
            wrong[largest] *= 1.25
        if what == "nan":
            wrong[0] = float("nan")
        if what == "zeros":
            wrong = [0.0] * len(wrong)
        if what == "last":
            wrong[-1] = 0.0
        if what == "shift":
            wrong = [wrong[-1], *wrong[:-1]]
    return wrong


def matmul(left: Tensor, right: Tensor) -> Tensor:
    misbehave("matmul")
    if left.dtype is bfloat16 and FAULT == "no bf16":
        raise RuntimeError("\"addmm_impl_cpu_\" not implemented for 'BFloat16'")
    (rows, _inner), (_, columns) = left.shape, right.shape
    columns_of = list(zip(*right.tolist(), strict=True))
    data = [sum(map(float.__mul__, row, column)) for row in left.tolist() for column in columns_of]
    kind = "" if left.dtype is float64 else f"{left.dtype.name} "
    tf32 = kind == "float32 " and left.where != "cpu" and backends.cuda.matmul.allow_tf32
    result = Tensor(
        spoiled(data, f"{'tf32' if tf32 else kind.strip()} matmul".strip(), left.where),
        (rows, columns),
        left.dtype,
        left.where,
    )
    result.parents = [
        (left, lambda up: _multiply(up, columns, right.t())),
        (right, lambda up: _of_right(left, up, columns)),
    ]
    return result


def _multiply(up: list[float], columns: int, other: Tensor) -> list[float]:
    rows = [up[start : start + columns] for start in range(0, len(up), columns)]
    others = list(zip(*other.tolist(), strict=True))
    return spoiled([sum(map(float.__mul__, row, column)) for row in rows for column in others], "matmul gradient", "")


def _of_right(left: Tensor, up: list[float], columns: int) -> list[float]:
    upstream = Tensor(up, (len(up) // columns, columns), float64)
    return _multiply(left.t().data, left.shape[0], upstream)


class _Cuda:
    def is_available(self) -> bool:
        misbehave("counting GPUs")
        return GPUS > 0

    def init(self) -> None:
        raise RuntimeError("Found no NVIDIA driver on your system.\nPlease check")

    def device_count(self) -> int:
        return GPUS

    def get_device_name(self, _index: int) -> str:
        return "Stand-in GPU"

    def get_device_capability(self, _device: str) -> tuple[int, int]:
        major, minor = os.environ.get("CAPABILITY", "9.0").split(".")
        return (int(major), int(minor))

    def set_device(self, _device: str | int) -> None:
        """Every device is always there."""

    def empty_cache(self) -> None:
        """Nothing is kept."""

    def synchronize(self) -> None:
        """Nothing runs on."""


cuda: Any = _Cuda()
backends = SimpleNamespace(
    cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)), cudnn=SimpleNamespace(allow_tf32=True)
)


def _has_kernel(operator: str, key: str) -> bool:
    return operator != "torchvision::nms" or f"no {key} kernel" != FAULT


def _dump(operator: str) -> str:
    name = operator.partition("::")[2]
    folders = {"CPU": "cpu", "CUDA": "cuda"} if FAULT != "shifted keys" else {"Undefined": "cpu", "CPU": "cuda"}
    lines = [f"{key}: registered at /b/torchvision/csrc/ops/{folder}/{name}_kernel.cpp:112 :: (Tensor _0)"
             for key, folder in folders.items()]  # fmt: skip
    return "\n".join([f"name: {operator}", "Meta: registered at /dev/null:184 :: (none) [ boxed ]", *lines])


_C = SimpleNamespace(_dispatch_has_kernel_for_dispatch_key=_has_kernel, _dispatch_dump=_dump)
if FAULT == "old torch":
    _C = SimpleNamespace()
ops = SimpleNamespace(torchvision=SimpleNamespace(nms=None, roi_align=None))

from torch import fft, linalg, nn, sparse  # noqa: E402  # they need all of the above
from torch._more import *  # noqa: E402, F403

__all__ = ["fft", "linalg", "nn", "sparse"]
