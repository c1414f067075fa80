"""A kernel in Triton: row sums of products, with a mask for the ends of rows. Imported only where Triton is there."""

import triton
import triton.language as tl


@triton.jit
def row_products(left, right, result, columns, block: tl.constexpr):
    """``result[row] = sum(left[row] * right[row])``."""
    row = tl.program_id(0)
    total = tl.zeros((block,), dtype=tl.float32)
    for start in range(0, columns, block):
        place = start + tl.arange(0, block)
        inside = place < columns
        a = tl.load(left + row * columns + place, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(right + row * columns + place, mask=inside, other=0.0).to(tl.float32)
        total += a * b
    tl.store(result + row, tl.sum(total, axis=0))


@triton.jit
def block_product(left, right, result, size: tl.constexpr):
    """The product of two square matrices, by the tensor cores."""
    line = tl.arange(0, size)
    place = line[:, None] * size + line[None, :]
    a, b = tl.load(left + place), tl.load(right + place)
    tl.store(result + place, tl.dot(a, b))
