"""Steps of optimizers, automatic mixed precision and gradient scaling, against their formulas.

What is used of torch under test: ``torch.optim.SGD`` and ``AdamW`` (with ``foreach``, on GPUs ``fused`` too),
``torch.nn.utils.clip_grad_norm_``, ``torch.autocast``, ``torch.cuda.amp.GradScaler`` or ``torch.amp.GradScaler`` (GPU only).
Sources: the pseudocode in the documentation of ``torch.optim.SGD`` and ``torch.optim.AdamW``.
"""

from __future__ import annotations

import importlib

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import Disagreement, NotApplicable, Result, same, within
from envmedic_kernels.training.agreement import ROUNDOFF, Inputs, Part, judged

RATE, DECAY, MOMENTUM, BETAS, EPSILON = 0.05, 0.01, 0.9, (0.9, 0.99), 1e-8
SHAPES = ((33, 65), (129,), (7, 5, 3), (1,))
UNITS = 64.0
SCALE = 1024.0
AMPERE = (8, 0)
"""The first compute capability with bf16."""


def _descent(exact, gradients):
    """SGD with Nesterov's momentum and weight decay."""
    speed = None
    for gradient in gradients:
        decayed = gradient + DECAY * exact
        speed = decayed.clone() if speed is None else MOMENTUM * speed + decayed
        exact = exact - RATE * (decayed + MOMENTUM * speed)
    return exact


def _adam(exact, gradients):
    """AdamW."""
    first = second = exact * 0.0
    for step, gradient in enumerate(gradients, 1):
        exact = exact * (1.0 - RATE * DECAY)
        first = BETAS[0] * first + (1.0 - BETAS[0]) * gradient
        second = BETAS[1] * second + (1.0 - BETAS[1]) * gradient**2
        corrected = first / (1.0 - BETAS[0] ** step), second / (1.0 - BETAS[1] ** step)
        exact = exact - RATE * corrected[0] / (corrected[1] ** 0.5 + EPSILON)
    return exact


def _optimizers(inputs):
    torch = inputs.torch
    adam = {"lr": RATE, "betas": BETAS, "eps": EPSILON, "weight_decay": DECAY}
    descent = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY, "nesterov": True}
    kinds = [("SGD", torch.optim.SGD, descent, _descent, {}), ("AdamW", torch.optim.AdamW, adam, _adam, {})]
    if torch_support.release(torch) >= (1, 12):
        kinds += [(kind[0] + ", foreach", *kind[1:4], {"foreach": True}) for kind in kinds[:2]]
    if inputs.context.on_gpu and torch_support.release(torch) >= (2, 1):
        kinds.append(("AdamW, fused", torch.optim.AdamW, adam, _adam, {"fused": True}))
    for name, optimizer, settings, formula, more in kinds:
        starts = [inputs.exact(*shape) for shape in SHAPES]
        gradients = [[inputs.exact(*shape) for shape in SHAPES] for _ in range(3)]
        parameters = [inputs.placed(start).requires_grad_() for start in starts]
        steps = optimizer(parameters, **settings, **more)
        for of_step in gradients:
            for parameter, gradient in zip(parameters, of_step):
                parameter.grad = inputs.placed(gradient)
            steps.step()
        for place, parameter in enumerate(parameters):
            wanted = formula(starts[place], [of_step[place] for of_step in gradients])
            # by the size of what is added up: a single parameter can end near zero
            yield Part("%s, parameter %d" % (name, place), parameter, wanted, UNITS, scale=1.0)
    yield from _clipped(inputs)


def _clipped(inputs):
    gradients = [inputs.exact(*shape) for shape in SHAPES]
    parameters = [inputs.placed(gradient * 0.0).requires_grad_() for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = inputs.placed(gradient)
    norm = sum((gradient**2).sum() for gradient in gradients) ** 0.5
    got = inputs.torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    yield Part("norm of the gradients", got, norm, UNITS)
    yield Part("clipped gradient", parameters[0].grad, gradients[0] / (norm + 1e-6), UNITS)


def optimizers(context):
    """Three steps of each optimizer, in fp32."""
    return judged(context, "fp32", _optimizers)


def mixed(context, kind):
    """Autocast runs products in 16 bits and sums in fp32; a scaler skips a step with infinite gradients."""
    import torch

    torch_support.needs(torch, (1, 10), "torch.autocast")
    if context.on_gpu and kind == "bf16" and torch.cuda.get_device_capability(context.device) < AMPERE:
        raise NotApplicable("no bf16 before compute capability 8.0")
    dense.prepare(torch, context)
    errors = []
    for seed in context.seeds():
        errors += _autocast(torch, context, kind, seed)
        if context.on_gpu and kind == "fp16":
            _scaled(torch, Inputs(torch, context, "fp32", seed))
    return Result("seed %d" % context.seed, *dense.nearest(errors))


def _autocast(torch, context, kind, seed):
    """A linear layer and a loss under autocast: the layer in `kind`, the loss in fp32, gradients in fp32."""
    inputs, narrow = Inputs(torch, context, "fp32", seed), Inputs(torch, context, kind, seed)
    exact, weights = narrow.exact(48, 96), narrow.exact(64, 96)
    x, weight = (inputs.placed(each).requires_grad_() for each in (exact, weights))
    with torch.autocast(context.device.partition(":")[0], dtype=narrow.dtype):
        product = torch.nn.functional.linear(x, weight)
        loss = torch.nn.functional.cross_entropy(product, torch.arange(48).to(context.device))
    same("dtype of a product under autocast", str(product.dtype), str(narrow.dtype))
    same("dtype of a loss under autocast", str(loss.dtype), "torch.float32")
    loss.backward()
    same("dtype of a gradient under autocast", str(weight.grad.dtype), "torch.float32")
    right = [each.clone().requires_grad_() for each in (exact, weights)]
    scores = right[0] @ right[1].t()
    logs = scores - scores.detach().amax(1, keepdim=True)
    logs = logs - logs.exp().sum(1, keepdim=True).log()
    wanted = -logs[torch.arange(48), torch.arange(48)].mean()
    wanted.backward()
    limit = 8.0 * ROUNDOFF[kind]
    parts = [
        Part("product under autocast", product, scores, 8.0),
        Part("loss under autocast", loss, wanted, 8.0),
        Part("gradient under autocast", weight.grad, right[1].grad, 8.0),
    ]
    return [(within("%s %s, seed %d" % (part.what, kind, seed), part.error(), limit), limit) for part in parts]


def _scaled(torch, inputs):
    """A step with scaled gradients is the step without; one with an infinite gradient is left out, and halves the scale."""
    start, gradient = inputs.exact(65, 33), inputs.exact(65, 33)
    parameter = inputs.placed(start).requires_grad_()
    scaler = _scaler(torch)
    steps = torch.optim.SGD([parameter], lr=RATE)
    scaler.scale((parameter * inputs.placed(gradient)).sum()).backward()
    scaled = Part("scaled gradient", parameter.grad, gradient * SCALE, 0)
    within(scaled.what, scaled.error(), 0.0)
    scaler.step(steps)
    scaler.update()
    part = Part("step with a scaled gradient", parameter, start - RATE * gradient, 8.0)
    within(part.what, part.error(), part.units * ROUNDOFF["fp32"])
    before = parameter.detach().clone()
    parameter.grad = None
    scaler.scale((parameter * float("inf")).sum()).backward()
    scaler.step(steps)
    scaler.update()
    if not bool((parameter.detach() == before).all()):
        raise Disagreement("a step with infinite gradients was not left out")
    same("scale after an infinite gradient", scaler.get_scale(), SCALE / 2)


def _scaler(torch):
    if torch_support.release(torch) >= (2, 3):
        return importlib.import_module("torch.amp").GradScaler("cuda", init_scale=SCALE)
    return torch.cuda.amp.GradScaler(init_scale=SCALE)
