"""Matrix products in fp32, TF32, fp16, bf16 and fp8 and convolutions in fp32, fp16 and bf16 against fp64 on the CPU.

What is used of torch, and nothing else: ``torch.tensor(nested_list, dtype=)``, ``torch.full`` (GPU only),
``torch.float32 / float64 / bfloat16 / float16``, ``torch.matmul``, ``torch.nn.functional.conv2d(x, w, b, stride=,
padding=)``; of a tensor ``to(device)``, ``to(dtype)``, ``double()``, ``abs()``, ``cpu()``, ``detach()``, ``tolist()``,
``shape``, ``dtype``, ``device.type``, ``requires_grad_()``, ``grad``, and ``(y * upstream).sum().backward()``;
``torch.backends.cuda.matmul.allow_tf32`` and ``torch.backends.cudnn.allow_tf32`` (set, GPU only),
``torch.cuda.get_device_capability``, ``torch.float8_e4m3fn``, ``torch._scaled_mm`` and ``t()`` (GPU only).

Errors are relative to the product of the absolute values (``|A| |B|``), for which rounding theory has
bounds (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1): summing K products in
fp32 errs by at most K u, with u = 2**-24. A result of zeros, a lost block or a swapped operand errs by
``1 / sqrt(K)`` and more, well above every tolerance here.
"""

from __future__ import annotations

import os
import random

from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable, Result, same, within
from envmedic_kernels.references import reference

ALGORITHM = 16.0
"""Factor for algorithms that transform their operands first (Winograd): their constants exceed those of plain sums."""
SPOTS = 8
"""Elements of the fp64 reference that plain Python computes again."""
MATMUL_SHAPES = {"cpu": ((48, 64, 32), (17, 33, 9)), "gpu": ((512, 1024, 640), (131, 77, 59))}
"""(rows, inner, columns): one that suits tiles and tensor cores and one that does not."""
CONV_SHAPES = {
    "cpu": ((2, 3, 4, 12, 1), (1, 2, 3, 9, 2)),
    "gpu": ((4, 16, 32, 28, 1), (2, 3, 8, 33, 2)),
}
"""(images, input channels, output channels, pixels a side, stride), with kernels of 3 x 3 and padding 1."""
FP8_SHAPE = (64, 256, 48)
"""Multiples of 16, as the hardware demands."""
FIRST_WITH_BF16 = 8
"""Major compute capability of the first GPUs with bf16 (Ampere)."""
WITHOUT_BF16 = ("bfloat16", "cublas_status_not_supported", "cudnn_status_not_supported")


_AS_IMPORTED = {}


def settings(torch):
    """The settings of precision as importing torch has left them, read before a check changes one."""
    if not _AS_IMPORTED:
        deterministic = getattr(torch, "are_deterministic_algorithms_enabled", None)
        _AS_IMPORTED["tf32 products"] = bool(torch.backends.cuda.matmul.allow_tf32)
        _AS_IMPORTED["deterministic"] = bool(deterministic and deterministic())
        _AS_IMPORTED["deterministic convolutions"] = bool(getattr(torch.backends.cudnn, "deterministic", False))
    return _AS_IMPORTED


def prepare(torch, context):
    """Switch TF32 off, and leave NaN in the GPU's freed memory, so that what no kernel wrote shows."""
    if not context.on_gpu:
        return
    settings(torch)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.full((1 << 22,), float("nan"), device=context.device)


def tolerance(kind, inner, algorithm=1.0):
    """Allowed error of a sum of `inner` products, relative to the sum of their absolute values.

    fp32: `algorithm` x inner x u. bf16 and fp16 add four roundings to them: the result, and the partial sums that
    cuBLAS may combine in reduced precision. TF32 rounds both operands, which comes to less than four roundings.
    Algorithms that transform fp16 operands round what they transform.
    """
    forced = os.environ.get("NVIDIA_TF32_OVERRIDE") == "1"
    summing = algorithm * inner * reference.UNIT_ROUNDOFF["fp32"]
    if forced:
        summing += 4 * reference.UNIT_ROUNDOFF["tf32"]
    roundings = 4 if algorithm == 1.0 or kind == "bf16" else ALGORITHM
    return summing if kind == "fp32" else summing + roundings * reference.UNIT_ROUNDOFF[kind]


def nearest(errors):
    """Of (error, tolerance) pairs the one that comes nearest to its tolerance."""
    return max(errors, key=lambda pair: pair[0] / pair[1])


def _dtype(torch, kind):
    return getattr(torch, {"bf16": "bfloat16", "fp16": "float16"}.get(kind, "float32"))


def _listed(tensor):
    return tensor.detach().double().cpu().tolist()


def _placed(tensor, context, dtype, shape):
    """Check where and as what a result came back."""
    same("device of the result", tensor.device.type, context.device.partition(":")[0])
    same("dtype of the result", str(tensor.dtype), str(dtype))
    same("shape of the result", list(tensor.shape), list(shape))


def product_error(torch, context, kind, seed, shape):
    """The largest error of a product on the device, relative to that of the absolute values."""
    rows, inner, columns = shape
    generator, dtype = random.Random(seed), _dtype(torch, kind)
    left = torch.tensor(reference.uniform(generator, rows, inner), dtype=torch.float32).to(dtype)
    right = torch.tensor(reference.uniform(generator, inner, columns), dtype=torch.float32).to(dtype)
    got = torch.matmul(left.to(context.device), right.to(context.device))
    _placed(got, context, dtype, (rows, columns))
    expected = torch.matmul(left.double(), right.double()).tolist()
    scale = torch.matmul(left.double().abs(), right.double().abs()).tolist()
    exact_left, exact_right = left.double().tolist(), right.double().tolist()
    for _ in range(SPOTS):
        i, j = generator.randrange(rows), generator.randrange(columns)
        spot = reference.product_element(exact_left, exact_right, i, j)
        within("the fp64 reference itself", reference.largest_error([expected[i][j]], [spot], [scale[i][j]]), 1e-12)
    return reference.largest_error(_listed(got), expected, scale)


def matmul(context, kind):
    """Matrix products of random matrices in `kind`: ``fp32``, ``tf32``, ``fp16`` or ``bf16``."""
    import torch

    prepare(torch, context)
    if kind == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
    errors = []
    for shape in MATMUL_SHAPES["gpu" if context.on_gpu else "cpu"]:
        limit = tolerance(kind, shape[1])
        for seed in context.seeds():
            error = product_error(torch, context, kind, seed, shape)
            errors.append((within("matmul %s %s seed %d" % (kind, shape, seed), error, limit), limit))
    return Result("seed %d" % context.seed, *nearest(errors))


class Convolution:
    """Random operands of a convolution, and the gradient that is sent back through it."""

    def __init__(self, torch, seed, shape, dtype):
        images, inputs, outputs, side, self.stride = shape
        self.torch, self.generator = torch, random.Random(seed)
        out_side = (side - 1) // self.stride + 1
        self.out_shape = (images, outputs, out_side, out_side)
        self.inner = {"forward": inputs * 9 + 1, "input": outputs * 9, "weight": images * out_side * out_side}
        shapes = ((images, inputs, side, side), (outputs, inputs, 3, 3), (outputs,), self.out_shape)
        random_lists = [reference.uniform(self.generator, *each) for each in shapes]
        self.operands = [torch.tensor(each, dtype=torch.float32).to(dtype) for each in random_lists]

    def run(self, device, change, backward):
        """Result and, with `backward`, gradients of input and weight; `change` is applied to every operand."""
        x, weight, bias, upstream = (change(operand).to(device).detach() for operand in self.operands)
        if backward:
            x.requires_grad_()
            weight.requires_grad_()
        y = self.torch.nn.functional.conv2d(x, weight, bias, stride=self.stride, padding=1)
        if not backward:
            return {"forward": y}
        (y * upstream).sum().backward()  # y.backward(upstream) imports sympy in torch 2.5: 2 s
        return {"forward": y, "input": x.grad, "weight": weight.grad}

    def check_reference(self, expected, scale):
        """Compare a few elements of the fp64 reference with plain Python."""
        x, weight, bias, _ = (operand.double().tolist() for operand in self.operands)
        for _ in range(SPOTS):
            place = tuple(self.generator.randrange(length) for length in self.out_shape)
            spot = reference.convolution_element(x, weight, bias, self.stride, 1, place)
            values = [nested[place[0]][place[1]][place[2]][place[3]] for nested in (expected, scale)]
            within("the fp64 reference itself", reference.largest_error([values[0]], [spot], [values[1]]), 1e-12)


def _conv_round(torch, context, kind, seed, shape):
    """Errors of the result and of the gradients, each with its tolerance."""
    dtype = _dtype(torch, kind)
    case = Convolution(torch, seed, shape, dtype)
    backward = kind == "fp32"
    got = case.run(context.device, lambda operand: operand, backward)
    _placed(got["forward"], context, dtype, case.out_shape)
    expected = case.run("cpu", lambda operand: operand.double(), backward)
    scale = case.run("cpu", lambda operand: operand.double().abs(), backward)
    case.check_reference(_listed(expected["forward"]), _listed(scale["forward"]))
    errors = []
    for part in got:
        error = reference.largest_error(_listed(got[part]), _listed(expected[part]), _listed(scale[part]))
        errors.append((part, error, tolerance(kind, case.inner[part], ALGORITHM)))
    return errors


def conv(context, kind):
    """Two-dimensional convolutions in `kind`; with the gradients of input and weight in fp32."""
    import torch

    prepare(torch, context)
    errors = []
    for shape in CONV_SHAPES["gpu" if context.on_gpu else "cpu"]:
        for seed in context.seeds():
            for part, error, limit in _conv_round(torch, context, kind, seed, shape):
                within("conv %s %s %s seed %d" % (kind, part, shape, seed), error, limit)
                errors.append((error, limit))
    return Result("seed %d" % context.seed, *nearest(errors))


def bf16(check, context):
    """Run `check` in bf16; a device without it makes it not applicable, which a newer one never is."""
    try:
        return check(context, "bf16")
    except RuntimeError as error:
        words = str(error).lower()
        if _lacks_bf16(context) and any(word in words for word in WITHOUT_BF16):
            raise NotApplicable("no bf16 here: %s" % str(error).splitlines()[0]) from error
        raise


def _lacks_bf16(context):
    """Whether a device may do without bf16: GPUs before compute capability 8.0, CPUs under torch before 1.12."""
    import torch

    if context.on_gpu:
        return torch.cuda.get_device_capability(context.device)[0] < FIRST_WITH_BF16
    return torch_support.release(torch) < (1, 12)


def tf32(check, context):
    """Run `check` with TF32 allowed, on GPUs that have it."""
    import torch

    torch_support.capable(torch, context, (8, 0), "TF32")
    return check(context, "tf32")


def fp8(context):
    """Matrix products of fp8 numbers (e4m3) with results in bf16, on GPUs that have them."""
    import torch

    torch_support.needs(torch, (2, 1), "fp8 matrix product")
    torch_support.capable(torch, context, (8, 9), "fp8")
    prepare(torch, context)
    limit = tolerance("bf16", FP8_SHAPE[1])
    worst = 0.0
    for seed in context.seeds():
        worst = max(worst, within("matmul fp8 %s seed %d" % (FP8_SHAPE, seed), _fp8_round(torch, context, seed), limit))
    return Result("seed %d" % context.seed, worst, limit)


def _fp8_round(torch, context, seed):
    rows, inner, columns = FP8_SHAPE
    generator = random.Random(seed)
    shapes = ((rows, inner), (columns, inner))
    lists = [reference.uniform(generator, *shape) for shape in shapes]
    left, right = (torch.tensor(each, dtype=torch.float32).to(torch.float8_e4m3fn) for each in lists)
    one = torch.tensor(1.0, dtype=torch.float32).to(context.device)
    got = torch._scaled_mm(
        left.to(context.device), right.to(context.device).t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
    )
    if isinstance(got, tuple):  # before 2.5, with the largest magnitude of the result
        got = got[0]
    _placed(got, context, torch.bfloat16, (rows, columns))
    exact = [each.to(torch.float32).double() for each in (left, right)]
    expected = torch.matmul(exact[0], exact[1].t()).tolist()
    scale = torch.matmul(exact[0].abs(), exact[1].abs().t()).tolist()
    return reference.largest_error(_listed(got), expected, scale)
