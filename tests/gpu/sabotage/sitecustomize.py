"""Breaks functions of the real torch in the processes under test: on PYTHONPATH, Python imports it at its start.

``ENVMEDIC_SABOTAGE`` is a list ``KIND TARGET;…`` of full names such as ``torch.fft.fft``:

- ``wrong``: the function computes, and then one element of its result (or of what it wrote) is changed; one that has
  no result is not called.
- ``gradient``: its result is right, and the gradient that is sent back through it is not.
- ``missing``: torch's own dispatcher is asked for an operator that has no kernel for the device.
- ``fault``: the GPU itself is given an index out of bounds.
- ``crash``: the process reads address 0.
- ``hang``: on a GPU a kernel that does not end, and on the CPU a sleep.

``ENVMEDIC_SABOTAGE_ON`` is ``cuda``: only calls with a tensor on a GPU, or none, are broken; ``cuda:1``: only those with
a tensor on that GPU; or ``cpu``: calls with fp64 tensors are spared, since references use them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import sys
import time
from typing import Any

ON = os.environ.get("ENVMEDIC_SABOTAGE_ON", "cuda")
FAULTS = [tuple(part.split(" ", 1)) for part in os.environ.get("ENVMEDIC_SABOTAGE", "").split(";") if part]
MODULES = ("torch", "torchvision", "torchaudio")
PROBES = ("envmedic_probe", "envmedic_probe_cuda")
"""Namespaces of operators that the check of extensions compiles."""


class Finder:
    """Breaks what is asked for as soon as its package has been imported."""

    def find_spec(self, name: str, *_where: Any) -> Any:
        """The package's own spec, with a loader that goes on to `spoil` it."""
        if name not in MODULES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            spoil(name)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def spoil(package: str) -> None:
    """Replace the functions of `package` that are to be broken, where this release has them."""
    for kind, target in FAULTS:
        if target.partition(".")[0] != package:
            continue
        holder, name = find(target)
        if holder is not None:
            setattr(holder, name, broken(kind, getattr(holder, name)))


def find(target: str) -> tuple[Any, str]:
    """What holds the function, and the function's own name; None where there is no such thing."""
    *path, name = target.split(".")
    holder = importlib.import_module(path[0])
    for number, part in enumerate(path[1:], 2):
        if not hasattr(holder, part):
            try:
                importlib.import_module(".".join(path[:number]))
            except ImportError:
                return None, name
        holder = getattr(holder, part)
    return (holder, name) if hasattr(holder, name) else (None, name)


def broken(kind: str, function: Any) -> Any:
    """`function`, broken; what it returns is broken in its place where that is a function itself."""

    @functools.wraps(function, updated=())
    def call(*arguments: Any, **named: Any) -> Any:
        tensors = [item for item in (*arguments, *named.values()) if hasattr(item, "is_cuda")]
        if not concerns(tensors):
            return function(*arguments, **named)
        if kind == "wrong" and not tensors and getattr(function, "__name__", "") == "replay":
            return None
        if kind in ("wrong", "gradient") or (callable_later(function) and not tensors):
            result = function(*arguments, **named)
            return finish(kind, result, named.get("out"), arguments)
        return misbehave(kind, tensors)

    return call


def callable_later(function: Any) -> bool:
    """Whether a function makes another one, which is what is to be broken."""
    return getattr(function, "__name__", "") in ("compile", "_create_jit_fn", "load_library")


def finish(kind: str, result: Any, out: Any, arguments: Any) -> Any:
    """The result of a function, with its fault."""
    import torch

    if callable(result) and not hasattr(result, "is_cuda"):
        return broken(kind, result)
    if out is None and not hasattr(result, "is_cuda") and not isinstance(result, tuple):
        spoil_probes(kind)
        out = next((item for item in arguments if hasattr(item, "is_cuda")), None)
        if result is None and out is None:
            return None
    if kind == "gradient":
        if result.requires_grad:
            result.register_hook(lambda gradient: gradient * 1.25)
        return result
    tensor = out if out is not None else result[0] if isinstance(result, tuple) else result
    if out is not None or (arguments and tensor is arguments[0]):
        with torch.no_grad():
            change(torch, tensor)
        return result
    changed = tensor.clone()
    with torch.no_grad():
        change(torch, changed)
    return (changed, *result[1:]) if isinstance(result, tuple) else changed


def change(torch: Any, tensor: Any) -> None:
    """Make the last element another one."""
    if not tensor.numel():
        return
    last = tensor.detach().reshape(-1)[-1:]
    wrong = (
        (last.to(torch.int64) + 1).to(last.dtype)
        if not (last.is_floating_point() or last.is_complex())
        else last + 1000
    )
    place = tuple(size - 1 for size in tensor.shape)
    tensor.detach()[place or ...] = wrong.reshape(())


def spoil_probes(kind: str) -> None:
    """Break the operators that the check of extensions has just loaded."""
    import torch

    for name in PROBES:
        namespace = getattr(torch.ops, name)
        if hasattr(namespace, "twice") and not hasattr(namespace.twice, "__wrapped__"):
            namespace.twice = broken(kind, namespace.twice)


def concerns(tensors: Any) -> bool:
    """Whether a call with such tensors is to be broken."""
    if ON == "cuda":
        return not tensors or any(item.is_cuda for item in tensors)
    if ON.startswith("cuda:"):
        return any(str(item.device) == ON for item in tensors)
    return (
        not any(str(item.dtype) == "torch.float64" for item in tensors)
        or os.environ.get("ENVMEDIC_SABOTAGE_FP64") == "1"
    )


def misbehave(kind: str, tensors: Any) -> Any:
    """Fail in the way that `kind` names."""
    import torch

    if kind == "crash":
        ctypes.string_at(0)
    if kind == "hang":
        if ON.startswith("cuda") and torch.cuda.is_available():
            device = ON if ":" in ON else None
            with torch.cuda.device(device):
                torch.cuda._sleep(1 << 60)
                torch.cuda.synchronize()
        time.sleep(3600)
    if kind == "fault":
        torch.ones(1, device=ON)[torch.full((1,), 1 << 20, dtype=torch.int64, device=ON)].cpu()
    library = torch.library.Library("envmedic_absent", "DEF")
    library.define("absent(Tensor x) -> Tensor")
    return torch.ops.envmedic_absent.absent(tensors[0] if tensors else torch.ones(1, device=ON))


if FAULTS:
    sys.meta_path.insert(0, Finder())
