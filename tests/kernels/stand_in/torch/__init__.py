"""What the checks use of torch, on nested lists; the variable FAULT names what is wrong with it.

``GPUS`` devices named "Stand-in GPU" can be had. On them and on the CPU the same code computes.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

FAULT = os.environ.get("FAULT", "")
GPUS = int(os.environ.get("GPUS", "0"))
__version__ = os.environ.get("TORCH", "2.5.1+cu124")
version = SimpleNamespace(cuda=os.environ.get("CUDA_BUILD") or None)


def misbehave(place: str) -> None:
    """Carry out a FAULT such as ``segfault at matmul``."""
    what, _, where = FAULT.partition(" at ")
    if where != place:
        return
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


float64 = dtype("float64", float)
float32 = dtype("float32", _to_single)
bfloat16 = dtype("bfloat16", _to_bfloat16)
int64 = dtype("int64", int)


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
        return self._like([abs(value) for value in self.data])

    def requires_grad_(self) -> Tensor:
        return self

    def tolist(self) -> Any:
        nested: list[Any] = list(self.data)
        for length in reversed(self.shape[1:]):
            nested = [nested[start : start + length] for start in range(0, len(nested), length)] if length else []
        return nested

    def __mul__(self, other: Tensor) -> Tensor:
        result = self._like([a * b for a, b in zip(self.data, other.data, strict=True)])
        result.parents = [(self, lambda up: [a * b for a, b in zip(up, other.data, strict=True)])]
        return result

    def sum(self) -> Tensor:
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


def full(_shape: tuple[int, ...], value: float, *, device: str) -> Tensor:
    return Tensor([value], (1,), float32, device)


def spoiled(data: list[float], place: str, device: str) -> list[float]:
    """`data`, wrong where FAULT says so: ``element``, ``nan``, ``zeros`` or ``half at PLACE [on DEVICE]``."""
    what, _, where = FAULT.partition(" at ")
    if where not in {place, f"{place} on {device}"} or not data:
        return data
    wrong = list(data)
    if what == "element":
        largest = max(range(len(wrong)), key=lambda index: abs(wrong[index]))
        wrong[largest] *= 1.25
    if what == "nan":
        wrong[0] = float("nan")
    if what == "zeros":
        wrong = [0.0] * len(wrong)
    if what == "last":
        wrong[-1] = 0.0
    return wrong


def matmul(left: Tensor, right: Tensor) -> Tensor:
    misbehave("matmul")
    if left.dtype is bfloat16 and FAULT == "no bf16":
        raise RuntimeError("\"addmm_impl_cpu_\" not implemented for 'BFloat16'")
    (rows, _inner), (_, columns) = left.shape, right.shape
    columns_of = list(zip(*right.tolist(), strict=True))
    data = [sum(map(float.__mul__, row, column)) for row in left.tolist() for column in columns_of]
    kind = "" if left.dtype is float64 else f"{left.dtype.name} "
    return Tensor(spoiled(data, f"{kind}matmul", left.where), (rows, columns), left.dtype, left.where)


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
        return (9, 0)


cuda = _Cuda()
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

from torch import nn  # noqa: E402  # it needs all of the above

__all__ = ["nn"]
