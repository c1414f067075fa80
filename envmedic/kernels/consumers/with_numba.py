"""Numba: NVVM compiles a kernel for a GPU, and a kernel on each GPU agrees with its formula."""

from __future__ import annotations

import os

from envmedic_kernels.consumers import common
from envmedic_kernels.harness.outcome import NotApplicable, Result, same, within
from envmedic_kernels.references import reference

COUNT = 1000


def compiles(_context):
    """A kernel is compiled for a GPU, for which none is needed: NVVM and libdevice are found."""
    common.needs("numba")
    from numba import cuda, float32, int32

    if not hasattr(cuda, "compile_ptx"):
        raise NotApplicable("this Numba compiles nothing for GPUs without one")
    text, _ = cuda.compile_ptx(_scale(cuda), (float32[:], float32[:], float32, int32), cc=(8, 0))
    same("target in what NVVM compiled", "sm_80" in text or "compute_80" in text, True)
    return Result(_release())


def _scale(cuda):
    """The kernel, which takes `cuda` from its surroundings: compiled code imports nothing."""

    def scale(numbers, out, factor, count):
        place = cuda.grid(1)
        if place < count:
            out[place] = factor * numbers[place] + 1

    return scale


def _release():
    import numba

    return "numba %s" % numba.__version__


def compute(context):
    """A loop that is compiled for the CPU, or a kernel for a GPU."""
    common.needs("numba")
    common.alone(context)
    os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
    import numba
    import numpy as np

    worst = 0.0
    for seed in context.seeds():
        numbers = (common.Product(seed).left[0] * (COUNT // common.SIZE + 1))[:COUNT]
        given = np.array(numbers, dtype="float32")
        out = _on_gpu(given) if context.on_gpu else numba.njit(lambda values: 3 * values + 1)(given)
        wanted = [3.0 * number + 1.0 for number in numbers]
        error = reference.largest_error(out.tolist(), wanted, 4.0)
        worst = max(worst, within("a kernel of Numba", error, common.SINGLE))
    return Result("%s, seed %d" % (_release(), context.seed), worst, common.SINGLE)


def _on_gpu(given):
    import numpy as np
    from numba import cuda

    placed, out = cuda.to_device(given), cuda.device_array_like(given)
    cuda.jit(_scale(cuda))[COUNT // 256 + 1, 256](placed, out, np.float32(3), np.int32(COUNT))
    return out.copy_to_host()
