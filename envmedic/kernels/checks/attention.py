"""Scaled dot product attention with its gradients, by each backend that says that it can, against fp64.

What is used of torch, and nothing else: ``torch.nn.functional.scaled_dot_product_attention``;
``torch.nn.attention.sdpa_kernel`` and ``SDPBackend`` (from 2.3 on), ``torch.backends.cuda.sdp_kernel`` before;
``torch.backends.cuda.SDPAParams`` and ``can_use_flash_attention, can_use_efficient_attention,
can_use_cudnn_attention`` where they exist (GPU only); ``torch.tensor(list, dtype=)``, ``torch.float32 / float16``; of a
tensor ``to(device)``, ``to(dtype)``, ``double()``, ``detach()``, ``cpu()``, ``tolist()``, ``device.type``,
``requires_grad_()``, ``grad``, and ``(y * upstream).sum().backward()``.
"""

from __future__ import annotations

import importlib
import random

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable, Result, same, within
from envmedic_kernels.references import exact, reference

SHAPES = {"cpu": (2, 9, 8), "gpu": (2, 96, 64)}
"""(heads, positions, width)"""
FIRST = (2, 0)
BACKENDS = {
    "math": ("MATH", (2, 0), None),
    "flash": ("FLASH_ATTENTION", (2, 0), "can_use_flash_attention"),
    "efficient": ("EFFICIENT_ATTENTION", (2, 0), "can_use_efficient_attention"),
    "cudnn": ("CUDNN_ATTENTION", (2, 5), "can_use_cudnn_attention"),
}
"""Our name → (its name in ``SDPBackend``, first torch, the function that tells whether it takes the inputs)."""
NOBODY = "No available kernel"
"""What torch says when the one backend that is allowed does not take the inputs."""
PARTS = ("result", "query gradient", "key gradient", "value gradient")


def default(context):
    """Attention by the backend that torch selects."""
    import torch

    torch_support.needs(torch, FIRST, "scaled_dot_product_attention")
    return _check(torch, context, lambda attend, *_: attend())


def by(name):
    """The check of one backend."""

    def check(context):
        import torch

        torch_support.needs(torch, BACKENDS[name][1], "attention by %s" % name)
        return _check(torch, context, lambda attend, *operands: only(torch, name, attend, operands))

    return check


def only(torch, name, attend, operands, rest=(None, 0.0, False)):
    """Attention with `name` as the one backend that torch may take; `rest` is mask, dropout and whether it is causal.

    Raises `NotApplicable` where the backend does not take such inputs.
    """
    claims = _claims(torch, name, operands, rest)
    if claims is False:
        raise NotApplicable("torch says that %s does not take such inputs on this GPU" % name)
    try:
        with _allowed(torch, name):
            return attend()
    except RuntimeError as error:
        if claims is None and NOBODY in str(error):
            raise NotApplicable("%s does not take such inputs on this GPU" % name) from error
        raise


def _claims(torch, name, operands, rest):
    """Whether torch says that the backend takes `operands`; None where it cannot be asked."""
    ask = getattr(torch.backends.cuda, BACKENDS[name][2] or "", None)
    if name == "math":
        return True
    if ask is None:
        return None
    try:
        parameters = torch.backends.cuda.SDPAParams(*operands, *rest)
    except TypeError:  # from 2.5 on with one more
        parameters = torch.backends.cuda.SDPAParams(*operands, *rest, False)
    return bool(ask(parameters, False))


def _allowed(torch, name):
    """The context in which `name` is the only backend."""
    if torch_support.release(torch) >= (2, 3):
        module = importlib.import_module("torch.nn.attention")
        return module.sdpa_kernel([getattr(module.SDPBackend, BACKENDS[name][0])])
    return torch.backends.cuda.sdp_kernel(
        enable_flash=name == "flash", enable_math=name == "math", enable_mem_efficient=name == "efficient"
    )


def _check(torch, context, through):
    """fp16 on GPUs, the type that all backends take, and fp32 on the CPU."""
    dense.prepare(torch, context)
    kind, dtype = ("fp16", torch.float16) if context.on_gpu else ("fp32", torch.float32)
    limit = 32.0 * reference.UNIT_ROUNDOFF[kind]
    worst = 0.0
    for seed in context.seeds():
        for part, error in _round(torch, context, through, seed, dtype):
            worst = max(worst, within("attention, %s, seed %d" % (part, seed), error, limit))
    return Result("seed %d" % context.seed, worst, limit)


def _round(torch, context, through, seed, dtype):
    """Errors of the result and of the gradients, relative to the largest element of each."""
    heads, positions, width = SHAPES["gpu" if context.on_gpu else "cpu"]
    generator = random.Random(seed)
    inputs = [torch.tensor([reference.uniform(generator, heads, positions, width)], dtype=torch.float32).to(dtype)
              for _ in range(4)]  # fmt: skip
    *operands, upstream = (tensor.to(context.device).detach() for tensor in inputs)
    for operand in operands:
        operand.requires_grad_()
    attend = torch.nn.functional.scaled_dot_product_attention
    result = through(lambda: attend(*operands), *operands)
    same("device of the result", result.device.type, context.device.partition(":")[0])
    (result * upstream).sum().backward()
    of_heads = zip(*(tensor.double().tolist()[0] for tensor in inputs))
    wanted = list(zip(*(exact.attention(*matrices) for matrices in of_heads)))
    for part, tensor, expected in zip(PARTS, (result, *(operand.grad for operand in operands)), wanted):
        got = tensor.detach().double().cpu().tolist()[0]
        yield part, reference.largest_error(got, list(expected), exact.largest(list(expected)))
