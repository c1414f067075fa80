# ruff: noqa: ANN001, N999, PTH123
"""The dispatcher: operators, their kernels by dispatch key, and the loading of operator libraries."""

import json
import os

from torch import _abi

_BACKENDS = ("CPU", "CUDA", "Meta")
_schemas = {}
_kernels = {}


def _dispatch_key_name(number):
    """Name of the dispatch key with this number in this release; markers have none."""
    name = _abi.DISPATCH_KEYS[number] if number < len(_abi.DISPATCH_KEYS) else ""
    return "Undefined" if not name or name.startswith(("StartOf", "EndOf")) else name


def _define(qualified, schema):
    _schemas[qualified] = schema


def _register(qualified, number, kernel, source):
    _kernels.setdefault(qualified, {})[_dispatch_key_name(number)] = (kernel, source)


def _require(qualified):
    if qualified not in _schemas:
        raise RuntimeError(f"operator {qualified} does not exist")


def _dispatch_has_kernel_for_dispatch_key(qualified, key):
    """Whether an operator, which must exist, has a kernel under `key`."""
    _require(qualified)
    return key in _kernels.get(qualified, {})


def _dispatch_dump(qualified):
    """An operator's kernels, one line each."""
    _require(qualified)
    lines = [f"name: {qualified}", f"schema: {_schemas[qualified]}"]
    for key, (_, source) in _kernels.get(qualified, {}).items():
        lines.append(f"{key}: registered at {source} :: {_schemas[qualified].partition('(')[1]} [ boxed unboxed ]")
    return "\n".join(lines) + "\n"


def _call(qualified, arguments):
    """Run the kernel for these arguments: the gradient's when one is asked for, else the CPU's."""
    gradient = any(getattr(argument, "requires_grad", False) for argument in arguments)
    kernels = _kernels.get(qualified, {})
    for key in ("AutogradCPU", "CPU") if gradient else ("CPU",):
        if key in kernels:
            return kernels[key][0](*arguments)
    available = ", ".join(kernels)
    raise NotImplementedError(
        f"Could not run '{qualified}' with arguments from the 'CPU' backend. "
        f"'{qualified}' is only available for these backends: [{available}]."
    )


def _load_library(path):
    """Load an operator library: bind its symbols, then register its kernels under the numbers it was built with."""
    path = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            header, _, code = file.read().partition("\n")
    except FileNotFoundError:
        raise OSError(f"{path}: cannot open shared object file: No such file or directory") from None
    built = json.loads(header)
    for symbol in built["needs"]:
        if symbol not in _abi.EXPORTS:
            raise OSError(f"{path}: undefined symbol: {symbol}")
    names = {"__file__": path, "__name__": "torch_operator_library"}
    exec(compile("\n" + code, path, "exec"), names)  # line numbers count the header
    for qualified, schema in built["schemas"].items():
        _define(qualified, schema)
    for qualified, number, function, source in built["kernels"]:
        _register(qualified, number, names[function], source)
