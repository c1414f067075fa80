# ruff: noqa: ANN001, ANN204, FBT002
"""Dense tensors over flat arrays, with reverse-mode gradients for what envmedic's checks differentiate."""

import itertools
import operator
import struct
from array import array


class dtype:  # noqa: N801  # torch's name
    """An element type: how its numbers are stored and rounded."""

    def __init__(self, name, code, to_bf16=False):
        self.name, self.code, self.to_bf16 = name, code, to_bf16

    def __repr__(self):
        return f"torch.{self.name}"

    def store(self, numbers):
        """A flat array of `numbers`, rounded to this type."""
        stored = array(self.code, numbers)
        return array("f", map(_to_bf16, stored)) if self.to_bf16 else stored


def _to_bf16(number):
    """Round to the nearest number with 8 bits of fraction, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    if bits & 0x7F800000 != 0x7F800000:
        bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


float32 = dtype("float32", "f")
float64 = dtype("float64", "d")
bfloat16 = dtype("bfloat16", "f", to_bf16=True)
int64 = dtype("int64", "q")


class device:  # noqa: N801  # torch's name
    """Where a tensor lies; here always the CPU."""

    def __init__(self, name):
        self.type = str(name).partition(":")[0]
        if self.type != "cpu":
            raise RuntimeError(f"this miniature of torch has no {self.type} backend")

    def __repr__(self):
        return f"device(type='{self.type}')"


class Tensor:
    """A dense tensor; `inputs` are (tensor, function from the gradient of this one to that of it)."""

    def __init__(self, data, shape, kind, inputs=()):
        self.data = kind.store(data)
        self.shape, self.dtype, self.device = tuple(shape), kind, device("cpu")
        self.inputs = [pair for pair in inputs if pair[0].requires_grad]
        self.requires_grad, self.grad = bool(self.inputs), None

    def __repr__(self):
        return f"tensor({self.tolist()}, dtype={self.dtype})"

    def __mul__(self, other):
        if self.shape != other.shape:
            raise RuntimeError(f"shapes {self.shape} and {other.shape} do not match")
        inputs = [
            (self, lambda grad: list(map(operator.mul, grad, other.data))),
            (other, lambda grad: list(map(operator.mul, grad, self.data))),
        ]
        return Tensor(map(operator.mul, self.data, other.data), self.shape, self.dtype, inputs)

    def sum(self):
        """Sum of all elements."""
        return Tensor([sum(self.data)], (), self.dtype, [(self, lambda grad: [grad[0]] * len(self.data))])

    def abs(self):
        """Absolute values."""
        return Tensor(map(abs, self.data), self.shape, self.dtype)

    def to(self, target):
        """Convert to a dtype, or stay on the CPU."""
        if not isinstance(target, dtype):
            device(target)
            return self
        return self if target is self.dtype else Tensor(self.data, self.shape, target)

    def double(self):
        """Convert to float64."""
        return self.to(float64)

    def cpu(self):
        """Itself."""
        return self

    def detach(self):
        """The same numbers without their history."""
        return Tensor(self.data, self.shape, self.dtype)

    def requires_grad_(self):
        """Ask for the gradient of this tensor."""
        self.requires_grad = True
        return self

    def tolist(self):
        """Nested lists, or a number where there are no dimensions."""
        if not self.shape:
            return self.data[0]
        nested = list(self.data)
        for length in reversed(self.shape[1:]):
            nested = [nested[start : start + length] for start in range(0, len(nested), length)] if nested else []
        return nested

    def backward(self):
        """Leave the gradient of this number in every leaf that asked for it."""
        gradients = {id(self): [1.0]}
        for node in reversed(_history(self)):
            gradient = gradients.pop(id(node))
            if not node.inputs:
                node.grad = Tensor(gradient, node.shape, node.dtype)
            for source, function in node.inputs:
                part = function(gradient)
                known = gradients.get(id(source))
                gradients[id(source)] = part if known is None else list(map(operator.add, known, part))


def _history(root):
    """Every tensor that `root` was computed from, each after its own inputs."""
    order, seen = [], set()

    def visit(node):
        if id(node) not in seen:
            seen.add(id(node))
            for source, _ in node.inputs:
                visit(source)
            order.append(node)

    visit(root)
    return order


def tensor(nested, dtype=float32):
    """A tensor of nested lists."""
    shape, level = [], [nested]
    while level and isinstance(level[0], (list, tuple)):
        shape.append(len(level[0]))
        if any(len(row) != shape[-1] for row in level):
            raise ValueError(f"expected sequences of length {shape[-1]} at dimension {len(shape)}")
        level = list(itertools.chain.from_iterable(level))
    return Tensor(level, shape, dtype)


def zeros(shape, dtype=float32):
    """A tensor of zeros."""
    count = 1
    for length in shape:
        count *= length
    return Tensor([0] * count, shape, dtype)


def matmul(left, right):
    """The product of two matrices, summed in double precision."""
    (rows, inner), (also, columns) = left.shape, right.shape
    if inner != also:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and {also}x{columns})")
    by_column = [right.data[column::columns] for column in range(columns)]
    by_row = [left.data[row * inner : (row + 1) * inner] for row in range(rows)]
    products = (sum(map(operator.mul, row, column)) for row in by_row for column in by_column)
    return Tensor(products, (rows, columns), left.dtype)
