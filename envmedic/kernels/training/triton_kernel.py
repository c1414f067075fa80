"""Kernels that Triton compiles for the GPU present: a masked reduction in three precisions, and a product of blocks.

What is used of torch: what `agreement` names, ``torch.empty``, ``torch.cuda.set_device``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile

from envmedic_kernels.checks import compiled
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import NotApplicable
from envmedic_kernels.training.agreement import Part, judged

ROWS, COLUMNS, BLOCK, SIZE = 19, 1037, 256, 64


def check(context):
    """Both kernels, compiled anew."""
    import torch

    torch_support.capable(torch, context, (7, 0), "Triton")
    if importlib.util.find_spec("triton") is None:
        raise NotApplicable("Triton is not installed")
    compiled.require_compiler(context)
    torch.cuda.set_device(context.device)
    with tempfile.TemporaryDirectory(prefix="envmedic-") as folder:
        # what an earlier Triton compiled would hide that this one cannot
        os.environ["TRITON_CACHE_DIR"] = folder
        program = importlib.import_module("envmedic_kernels.training.triton_program")
        for kind in ("fp32", "fp16"):
            result = judged(context, kind, lambda inputs: _parts(inputs, program))
    return result


def _parts(inputs, program):
    torch, device = inputs.torch, inputs.context.device
    left, right = inputs.exact(ROWS, COLUMNS), inputs.exact(ROWS, COLUMNS)
    got = torch.full((ROWS,), float("nan"), dtype=torch.float32, device=device)
    program.row_products[(ROWS,)](inputs.placed(left), inputs.placed(right), got, COLUMNS, block=BLOCK)
    scale = (left * right).abs().sum(1)
    yield Part("row products", got, (left * right).sum(1), 16.0, scale, kind="fp32")
    if inputs.kind == "fp16":
        left, right = inputs.exact(SIZE, SIZE), inputs.exact(SIZE, SIZE)
        got = torch.full((SIZE, SIZE), float("nan"), dtype=torch.float32, device=device)
        program.block_product[(1,)](inputs.placed(left), inputs.placed(right), got, size=SIZE)
        yield Part("product of blocks", got, left @ right, 16.0, left.abs() @ right.abs(), kind="fp32")
