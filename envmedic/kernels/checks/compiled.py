"""A function compiled by torch.compile: through Triton on GPUs, through the C++ compiler on the CPU.

What is used of torch, and nothing else: ``torch.compile`` (from 2.0 on), ``torch.tensor(list, dtype=)``,
``torch.float32``, ``torch.sin``; of a tensor ``to(device)``, ``sum(1)``, ``double()``, ``cpu()``, ``tolist()``,
``device.type``.
"""

from __future__ import annotations

import importlib.util
import math
import os
import random
import shutil
import sys
import tempfile

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable, Result, same, within
from envmedic_kernels.references import reference

FIRST = {(3, 11): (2, 1), (3, 12): (2, 4), (3, 13): (2, 6), (3, 14): (2, 10)}
"""Python → the first torch whose torch.compile runs on it."""
SHAPE = (37, 129)
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Set to an empty directory, so that something is compiled each time."""


def compiled(context):
    """Sums of ``sin(x) * x + 1`` over rows: element by element and a reduction, in one kernel."""
    import torch

    _applicable(torch, context)
    dense.prepare(torch, context)
    with tempfile.TemporaryDirectory(prefix="envmedic-") as folder:
        # with the user's cache, a kernel compiled by an earlier torch could hide that no compiler works
        for name in CACHES:
            os.environ[name] = folder
        function = torch.compile(lambda x: (torch.sin(x) * x + 1.0).sum(1))
        limit = SHAPE[1] * reference.UNIT_ROUNDOFF["fp32"]
        worst = 0.0
        for seed in context.seeds():
            rows = reference.uniform(random.Random(seed), *SHAPE)
            got = _called(function, torch.tensor(rows, dtype=torch.float32).to(context.device))
            same("device of the result", got.device.type, context.device.partition(":")[0])
            wanted = [math.fsum(math.sin(x) * x + 1.0 for x in row) for row in rows]
            error = reference.largest_error(got.double().cpu().tolist(), wanted, wanted)
            worst = max(worst, within("compiled function, seed %d" % seed, error, limit))
    return Result("seed %d" % context.seed, worst, limit)


def _called(function, x):
    """``function(x)``. Raises `NotApplicable` where it lacks what torch demands on new Pythons only."""
    try:
        return function(x)
    except Exception as error:
        if "No module named 'setuptools'" in str(error) and importlib.util.find_spec("setuptools") is None:
            raise NotApplicable("setuptools, which this torch.compile needs, is not installed") from error
        raise


def _applicable(torch, context):
    """Raise `NotApplicable` where nothing can be compiled, whatever the state of torch."""
    torch_support.needs(torch, (2, 0), "torch.compile")
    first = next((value for python, value in sorted(FIRST.items(), reverse=True) if sys.version_info >= python), (2, 0))
    torch_support.needs(torch, first, "torch.compile for Python %d.%d" % tuple(sys.version_info[:2]))
    if context.on_gpu:
        torch_support.capable(torch, context, (7, 0), "Triton")
        if importlib.util.find_spec("triton") is None:
            raise NotApplicable("Triton is not installed")
    require_compiler(context)


def require_compiler(context):
    """Raise `NotApplicable` where there is no compiler: Triton builds its launchers in C, torch.compile the CPU's code in C++."""
    names = [os.environ.get("CC")] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    names = names if context.on_gpu else [os.environ.get("CXX") or "c++", "g++"]
    if not any(shutil.which(name.split()[0]) for name in names):
        raise NotApplicable("there is no compiler (%s), which torch.compile needs" % names[0])
