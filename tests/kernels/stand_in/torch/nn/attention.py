"""torch.nn.attention"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum

import torch

SDPBackend = Enum("SDPBackend", ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"])
CHOSEN = ["default"]


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend]) -> Iterator[None]:
    (backend,) = backends
    CHOSEN.append(backend.name.partition("_")[0].lower())
    yield
    CHOSEN.pop()


def _can(name: str) -> bool:
    return bool(f"{name} takes nothing" != torch.FAULT)


torch.backends.cuda.SDPAParams = lambda *operands: operands
torch.backends.cuda.can_use_flash_attention = lambda _parameters, _debug: _can("flash")
torch.backends.cuda.can_use_efficient_attention = lambda _parameters, _debug: _can("efficient")
torch.backends.cuda.can_use_cudnn_attention = lambda _parameters, _debug: _can("cudnn")
