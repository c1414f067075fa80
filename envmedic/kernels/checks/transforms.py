"""Fourier transforms (cuFFT on GPUs) and complex functions (compiled by NVRTC on GPUs) against fp64.

What is used of torch, and nothing else: the module ``torch.fft`` with ``fft, rfft, irfft``;
``torch.tensor(list, dtype=)``, ``torch.float32``, ``torch.complex``, ``torch.view_as_real``,
``torch.abs, sqrt, exp, tan, log, prod``; of a tensor ``to(device)``, ``double()``, ``cpu()``, ``tolist()``,
``device.type``; ``torch.cuda.jiterator._create_jit_fn`` (GPU only).

torch compiles the complex functions for the GPU present when they are first called (from 1.12 on), and keeps what it
compiled in the user's cache; the variable that turns this off is set, so that NVRTC is called each time.
"""

from __future__ import annotations

import cmath
import importlib
import math
import os
import random

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import Result, same, within
from envmedic_kernels.references import exact, reference

LENGTHS = {"cpu": (16, 45), "gpu": (64, 90, 101)}
"""Lengths of the transforms: a power of two, a product of small primes, a prime."""
BATCH = 3
FUNCTIONS = {"abs": abs, "sqrt": cmath.sqrt, "exp": cmath.exp, "tan": cmath.tan, "log": cmath.log}
COMPILED = "template <typename T> T envmedic_probe(T x, T y) { return x * x - y; }"
FACTOR = 64.0
"""Units of roundoff that a function of the GPU's mathematical library may be off, with those of its argument."""


def _complex(torch, numbers, device):
    real = torch.tensor([number.real for number in numbers], dtype=torch.float32)
    imaginary = torch.tensor([number.imag for number in numbers], dtype=torch.float32)
    return torch.complex(real.to(device), imaginary.to(device))


def _listed(torch, tensor):
    return torch.view_as_real(tensor).double().cpu().tolist()


def fft(context):
    """Transforms of complex numbers and of real ones, and back.

    Relative to the sum of the absolute values, an FFT errs by at most a small multiple of log2(n) roundings; a lost
    element is off by 1 / n.
    """
    import torch

    module = importlib.import_module("torch.fft")
    dense.prepare(torch, context)
    errors = []
    for length in LENGTHS["gpu" if context.on_gpu else "cpu"]:
        limit = 16.0 * math.log2(length) * reference.UNIT_ROUNDOFF["fp32"]
        for seed in context.seeds():
            for part, error in _fft_round(torch, module, context, seed, length):
                what = "fft of %d, %s, seed %d" % (length, part, seed)
                errors.append((within(what, error, limit), limit))
    return Result("seed %d" % context.seed, *dense.nearest(errors))


def _fft_round(torch, module, context, seed, length):
    generator = random.Random(seed)
    numbers = [complex(*pair) for pair in reference.uniform(generator, length, 2)]
    got = module.fft(_complex(torch, numbers, context.device))
    same("device of the transform", got.device.type, context.device.partition(":")[0])
    scale = sum(abs(number) for number in numbers)
    error = reference.largest_error(_listed(torch, got), exact.parts(exact.fourier(numbers)), scale)
    yield "forward", error
    real = reference.uniform(generator, length)
    scale = sum(abs(number) for number in real)
    half = module.rfft(torch.tensor(real, dtype=torch.float32).to(context.device))
    wanted = exact.parts(exact.fourier(real)[: length // 2 + 1])
    yield "of real numbers", reference.largest_error(_listed(torch, half), wanted, scale)
    back = module.irfft(half, n=length).double().cpu().tolist()
    yield "there and back", reference.largest_error(back, real, scale)


def complex_kernels(context):
    """Functions of complex numbers: those of `FUNCTIONS`, and a product of all of them."""
    import torch

    os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
    dense.prepare(torch, context)
    limit = FACTOR * reference.UNIT_ROUNDOFF["fp32"]
    worst = 0.0
    for seed in context.seeds():
        pairs = reference.uniform(random.Random(seed), 200, 2)
        numbers = [complex(0.5 + real / 4, imaginary) for real, imaginary in pairs]
        tensor = _complex(torch, numbers, context.device)
        for name, function in FUNCTIONS.items():
            error = _function_error(torch, getattr(torch, name)(tensor), [function(number) for number in numbers])
            worst = max(worst, within("complex %s, seed %d" % (name, seed), error, limit))
        # Of magnitude one, so that the product keeps its magnitude.
        few = [number / abs(number) for number in numbers[:16]]
        error = _function_error(torch, torch.prod(_complex(torch, few, context.device)), _multiplied(few))
        worst = max(worst, within("complex prod, seed %d" % seed, error, limit))
    return Result("seed %d" % context.seed, worst, limit)


def _multiplied(numbers):
    total = complex(1)
    for number in numbers:
        total *= number
    return [total]


def _function_error(torch, tensor, wanted):
    """Largest error relative to the magnitude of each element."""
    if all(isinstance(number, float) for number in wanted):
        return reference.largest_error(tensor.double().cpu().tolist(), wanted, wanted)
    got = reference.flat(_listed(torch, tensor))
    differences = [abs(complex(*pair) - number) for pair, number in zip(zip(got[::2], got[1::2]), wanted)]
    sizes = [abs(number) for number in wanted]
    # zip would silently compare the shorter list only
    if len(got) != 2 * len(wanted):
        return math.inf
    return reference.largest_error(differences, [0.0] * len(sizes), sizes)


def jiterator(context):
    """A function of our own, compiled by NVRTC for the GPU present."""
    import torch

    torch_support.needs(torch, (1, 11), "torch.cuda.jiterator")
    os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
    dense.prepare(torch, context)
    function = torch.cuda.jiterator._create_jit_fn(COMPILED)
    limit = FACTOR * reference.UNIT_ROUNDOFF["fp32"]
    worst = 0.0
    for seed in context.seeds():
        generator = random.Random(seed)
        x, y = reference.uniform(generator, 1000), reference.uniform(generator, 1000)
        tensors = [torch.tensor(each, dtype=torch.float32).to(context.device) for each in (x, y)]
        got = function(*tensors).double().cpu().tolist()
        wanted = [a * a - b for a, b in zip(x, y)]
        sizes = [a * a + abs(b) for a, b in zip(x, y)]
        worst = max(worst, within("jiterator, seed %d" % seed, reference.largest_error(got, wanted, sizes), limit))
    return Result("seed %d" % context.seed, worst, limit)
