"""Breaks JAX or CuPy in the processes of the checks: WRONG names the modules whose inputs are altered on their way to the GPU.

``WRONG=jax.numpy,cupy PYTHONPATH=tests/gpu/consumer_sabotage python envmedic/kernels/driver.py --human --checks jax,cupy``
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any

_FUNCTIONS = {"jax.numpy": "asarray", "cupy": "array"}
_IMPORT = builtins.__import__
_left = [name for name in os.environ.get("WRONG", "").split(",") if name]


def _spoiled(function: Any) -> Any:
    def altered(*arguments: Any, **more: Any) -> Any:
        return function(*arguments, **more) + 0.01

    return altered


def _watching(*arguments: Any, **more: Any) -> Any:
    found = _IMPORT(*arguments, **more)
    for name in list(_left):
        module = sys.modules.get(name)
        if hasattr(module, _FUNCTIONS[name]) and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            _left.remove(name)
            setattr(module, _FUNCTIONS[name], _spoiled(getattr(module, _FUNCTIONS[name])))
    return found


builtins.__import__ = _watching
