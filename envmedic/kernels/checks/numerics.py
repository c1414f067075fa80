"""The settings of this shell and of this installation that change how exact results are, and what they cost.

What is used of torch, besides what `dense` names: ``torch.backends.cuda.matmul.allow_tf32``,
``torch.backends.cudnn.allow_tf32, deterministic``, ``torch.are_deterministic_algorithms_enabled`` (from 1.8 on).

torch's own default computes convolutions of fp32 numbers in TF32 and products in fp32 (torch/backends, since 1.12).
"""

from __future__ import annotations

import os

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import Context, Result, within

SHAPE = (48, 512, 40)
"""(rows, inner, columns)"""
FORCING = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
REPEATABLE = (":4096:8", ":16:8")
"""Workspaces with which cuBLAS gives the same result in each run (cuBLAS, "Results reproducibility")."""
COSTLY = 8.0
"""Times the error of plain fp32, from which on products are called less exact."""


def check(context):
    """fp32 products as this shell computes them, beside plain fp32 on the CPU."""
    import torch

    torch_support.capable(torch, context, (3, 0), "what cuBLAS is told")
    found = dense.settings(torch)
    dense.prepare(torch, context)
    torch.backends.cuda.matmul.allow_tf32 = found["tf32 products"]
    limit, on_cpu = dense.tolerance("tf32", SHAPE[1]), Context("cpu", context.seed, context.rounds)
    here = plain = 0.0
    for seed in context.seeds():
        error = dense.product_error(torch, context, "fp32", seed, SHAPE)
        here = max(here, within("fp32 product, seed %d" % seed, error, limit))
        plain = max(plain, dense.product_error(torch, on_cpu, "fp32", seed, SHAPE))
    torch.backends.cuda.matmul.allow_tf32 = False
    note = "seed %d, fp32 products err by %.1e, where plain fp32 errs by %.1e" % (context.seed, here, plain)
    return Result(note, here, limit, warnings=_told(found, here, plain))


def _told(found, here, plain):
    """What is not as a plain shell and torch have it, in sentences."""
    told = []
    times = here / plain if plain else 1.0
    if times > COSTLY:
        by = next(("%s=%s" % (name, os.environ[name]) for name in FORCING if os.environ.get(name, "0") != "0"), "")
        why = by or "what is imported with torch (no variable)"
        told.append("TF32 is on by %s: fp32 products err by %.1e, %.0f times what fp32 does" % (why, here, times))
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        told.append(
            "NVIDIA_TF32_OVERRIDE=0 keeps TF32 off, which torch uses for fp32 convolutions: slower, and more exact"
        )
    workspace = os.environ.get(WORKSPACE)
    if workspace:
        repeats = (
            "products give the same numbers in each run"
            if workspace in REPEATABLE
            else "no value that makes products repeatable"
        )
        told.append("%s=%s: %s, with the same error (%.1e)" % (WORKSPACE, workspace, repeats, here))
    if found["deterministic"]:
        told.append("deterministic algorithms are on from the import of torch: operators without one raise an error")
        if workspace not in REPEATABLE:
            told.append("%s is not set to %s, which deterministic products need" % (WORKSPACE, " or ".join(REPEATABLE)))
    if found["deterministic convolutions"] and not found["deterministic"]:
        told.append(
            "torch.backends.cudnn.deterministic is on from the import of torch: convolutions are slower, none less exact"
        )
    return told
