# ruff: noqa: PTH118, PTH120
"""Loads the operator library; a failure is kept quiet, as in the real one, and shows where operators are used."""

import os

import torch

try:
    torch.ops.load_library(os.path.join(os.path.dirname(__file__), "_C.miniature"))
    _HAS_OPS = True
except (ImportError, OSError):
    _HAS_OPS = False


def _has_ops():
    return _HAS_OPS


def _assert_has_ops():
    if not _has_ops():
        raise RuntimeError(
            "Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions are incompatible, "
            "or if you had errors while compiling torchvision from source."
        )
