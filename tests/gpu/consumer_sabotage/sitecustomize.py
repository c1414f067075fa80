"""Breaks JAX, CuPy or Numba in the processes of the checks: WRONG names the modules whose inputs are altered on their way to the GPU.

``WRONG=jax.numpy,cupy PYTHONPATH=tests/gpu/consumer_sabotage python envmedic/kernels/driver.py --human --checks jax,cupy``
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any

_FUNCTIONS = {"jax.numpy": "asarray", "cupy": "array", "numba.cuda": "to_device"}
_IMPORT = builtins.__import__
_left = [name for name in os.environ.get("WRONG", "").split(",") if name]


def _spoiled(name: str, function: Any) -> Any:
    def altered(*arguments: Any, **more: Any) -> Any:
        if name == "numba.cuda":  # whose arrays on the GPU cannot be added to
            return function(arguments[0] + arguments[0].dtype.type(0.01), *arguments[1:], **more)
        return function(*arguments, **more) + 0.01

    return altered


def _watching(*arguments: Any, **more: Any) -> Any:
    found = _IMPORT(*arguments, **more)
    for name in list(_left):
        module = sys.modules.get(name)
        if hasattr(module, _FUNCTIONS[name]) and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            _left.remove(name)
            setattr(module, _FUNCTIONS[name], _spoiled(name, getattr(module, _FUNCTIONS[name])))
    return found


builtins.__import__ = _watching
