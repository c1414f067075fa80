"""A miniature of PyTorch: pure Python on the CPU, for envmedic's demo and tests. Not PyTorch.

It has what is around the kernels of a real wheel (build facts, exported symbols, dispatch keys,
operator libraries that load only into the release they were built for) and just enough arithmetic
to run envmedic's checks.
"""

from torch import _C, cuda, library, nn
from torch._ops import ops
from torch._tensor import Tensor, bfloat16, device, dtype, float32, float64, int64, matmul, tensor, zeros
from torch.version import __version__

__all__ = [
    "_C",
    "Tensor",
    "__version__",
    "bfloat16",
    "cuda",
    "device",
    "dtype",
    "float32",
    "float64",
    "int64",
    "library",
    "matmul",
    "nn",
    "ops",
    "tensor",
    "zeros",
]
