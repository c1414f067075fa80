"""Functions on tensors."""

from torch.nn import functional

__all__ = ["functional"]
