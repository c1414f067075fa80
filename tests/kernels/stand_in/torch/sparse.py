"""torch.sparse"""

from __future__ import annotations

import torch
from torch import Tensor


def mm(left: Tensor, right: Tensor) -> Tensor:
    torch.misbehave("sparse product")
    product = torch.matmul(left.double(), right.double())
    return Tensor(torch.spoiled(product.data, "sparse product", left.where), product.shape, right.dtype, right.where)
