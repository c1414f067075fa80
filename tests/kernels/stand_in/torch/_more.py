"""Functions of torch that one check each uses: of complex numbers, of networks, of fp8, on streams, and compiled."""

from __future__ import annotations

import cmath
import contextlib
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

__all__ = [
    "_scaled_mm", "abs", "add", "compile", "complex", "exp", "log", "mul", "mv", "prod", "sin", "softmax", "sparse_coo_tensor",
    "sparse_csr_tensor", "sqrt", "tan", "tanh", "view_as_real",
]  # fmt: skip


def complex(real: Tensor, imaginary: Tensor) -> Tensor:  # noqa: A001
    pairs = zip(real.data, imaginary.data, strict=True)
    data: list[Any] = [a + 1j * b for a, b in pairs]
    return Tensor(data, real.shape, torch.complex64, real.where)


def view_as_real(tensor: Tensor) -> Tensor:
    data = [part for value in tensor.data for part in (value.real, value.imag)]
    return Tensor(data, (*tensor.shape, 2), torch.float32, tensor.where)


def _of_complex(name: str, function: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    def call(tensor: Tensor) -> Tensor:
        torch.misbehave(f"complex {name}")
        data = torch.spoiled([function(value) for value in tensor.data], f"complex {name}", tensor.where)
        kind = torch.float32 if name == "abs" else tensor.dtype
        return Tensor(data, tensor.shape, kind, tensor.where)

    return call


_magnitude = abs
abs = _of_complex("abs", _magnitude)  # noqa: A001
sqrt = _of_complex("sqrt", cmath.sqrt)
exp = _of_complex("exp", cmath.exp)
tan = _of_complex("tan", cmath.tan)
log = _of_complex("log", cmath.log)


def prod(tensor: Tensor) -> Tensor:
    """As a tensor of one element, which is what lists of it hold."""
    total: Any = 1
    for value in tensor.data:
        total *= value
    return Tensor(torch.spoiled([total], "complex prod", tensor.where), (1,), tensor.dtype, tensor.where)


def _create_jit_fn(code: str) -> Callable[[Tensor, Tensor], Tensor]:
    assert "x * x - y" in code

    def call(x: Tensor, y: Tensor) -> Tensor:
        torch.misbehave("jiterator")
        data = [a * a - b for a, b in zip(x.data, y.data, strict=True)]
        return x._like(torch.spoiled(data, "jiterator", x.where))

    return call


def sin(x: Tensor) -> Tensor:
    return x._like([math.sin(value) for value in x.data])


def compile(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:  # noqa: A001
    def call(x: Tensor) -> Tensor:
        torch.misbehave("compiled")
        result = function(x)
        result.data = torch.spoiled(result.data, "compiled", x.where)
        return result

    return call


def tanh(x: Tensor) -> Tensor:
    values = [math.tanh(value) for value in x.data]
    result = x._like(values)
    result.parents = [
        (
            x,
            lambda up: torch.spoiled(
                [u * (1 - v * v) for u, v in zip(up, values, strict=True)], "tanh gradient", x.where
            ),
        )
    ]
    return result


def softmax(x: Tensor, _dimension: int) -> Tensor:
    torch.misbehave("softmax")
    rows = [_softmax(row) for row in x.tolist()]
    result = x._like([value for row in rows for value in row])

    def gradient(up: list[float]) -> list[float]:
        columns, found = x.shape[1], []
        for start, row in zip(range(0, len(up), columns), rows, strict=True):
            ups = up[start : start + columns]
            mean = sum(map(float.__mul__, ups, row))
            found += [value * (one - mean) for value, one in zip(row, ups, strict=True)]
        return found

    result.parents = [(x, gradient)]
    return result


def _softmax(row: list[float]) -> list[float]:
    powers = [math.exp(value) for value in row]
    return [power / sum(powers) for power in powers]


def sparse_coo_tensor(places: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    """As the dense matrix that it stands for."""
    rows, columns = places.tolist()
    return _scattered(rows, columns, values, size)


def sparse_csr_tensor(starts: Tensor, columns: Tensor, values: Tensor, *, size: tuple[int, int]) -> Tensor:
    """The same; products with it are not of dense matrices in fp32."""
    bounds = starts.data
    rows = [row for row in range(size[0]) for _ in range(int(bounds[row + 1] - bounds[row]))]
    return _scattered(rows, [int(column) for column in columns.data], values, size)


def mv(matrix: Tensor, vector: Tensor) -> Tensor:
    product = torch.matmul(
        matrix.double(), Tensor(vector.data, (*vector.shape, 1), vector.dtype, vector.where).double()
    )
    data = torch.spoiled(product.data, "sparse vector product", vector.where)
    return Tensor(data, (matrix.shape[0],), vector.dtype, vector.where)


def _scattered(rows: list[int], columns: list[int], values: Tensor, size: tuple[int, int]) -> Tensor:
    data = [0.0] * (size[0] * size[1])
    for row, column, value in zip(rows, columns, values.data, strict=True):
        data[row * size[1] + column] += value
    return Tensor(data, size, values.dtype, values.where)


def _scaled_mm(left: Tensor, right: Tensor, *, scale_a: Tensor, scale_b: Tensor, out_dtype: Any) -> Tensor:
    torch.misbehave("fp8")
    assert scale_a.data == scale_b.data == [1.0]
    product = torch.matmul(left.double(), right.double())
    return Tensor(torch.spoiled(product.data, "fp8", left.where), product.shape, out_dtype, left.where)


_RECORDED: list[list[Callable[[], None]]] = []


def _now_or_later(work: Callable[[], None]) -> None:
    """Work is done, or recorded while a graph is captured."""
    (_RECORDED[-1].append if _RECORDED else lambda work: work())(work)


def mul(x: Tensor, number: float, *, out: Tensor) -> None:
    def work() -> None:
        torch.misbehave("mul")
        out.data[:] = torch.spoiled([value * number for value in x.data], "mul", x.where)

    _now_or_later(work)


def add(x: Tensor, number: float, *, out: Tensor) -> None:
    def work() -> None:
        side = ("early", "add") in torch.FAULTS  # as if the other stream had not been waited for
        out.data[:] = [number if side else value + number for value in x.data]

    _now_or_later(work)


class Stream:
    """All streams are one."""

    def wait_stream(self, _other: Stream) -> None:
        torch.misbehave("wait_stream")


class CUDAGraph:
    """What was called while it was captured."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []

    def replay(self) -> None:
        torch.misbehave("replay")
        for work in self.work[: 1 if ("half", "replay") in torch.FAULTS else None]:
            work()


@contextlib.contextmanager
def _graph(captured: CUDAGraph) -> Iterator[None]:
    _RECORDED.append(captured.work)
    yield
    _RECORDED.pop()


torch.cuda.Stream = Stream
torch.cuda.current_stream = Stream
torch.cuda.stream = contextlib.nullcontext
torch.cuda.CUDAGraph = CUDAGraph
torch.cuda.graph = _graph
torch.cuda.jiterator = SimpleNamespace(_create_jit_fn=_create_jit_fn)
