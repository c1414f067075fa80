"""LSTM and GRU (cuDNN's on GPUs) with gradients, against their equations.

What is used of torch under test: ``torch.nn.LSTM`` and ``GRU``; the references use ``@``, ``sigmoid``, ``tanh``, ``chunk`` and
``stack`` in fp64 on the CPU. Source of the equations: the documentation of ``torch.nn.LSTM`` and ``torch.nn.GRU``.
"""

from __future__ import annotations

import math

from envmedic_kernels.training.agreement import Part, check_of, sent_back

STEPS, BATCH, WIDTH, HIDDEN, LAYERS = 9, 5, 24, 32, 2
# cuDNN approximates sigmoid and tanh in fp32: 224 units on a healthy H200, where TF32 would give thousands
UNITS = {"fp64": 64.0, "fp32": 1024.0, "fp16": 16.0, "bf16": 16.0}


def _lstm_step(torch, gates, hidden_gates, _hidden, cell):
    i, f, g, o = (gates + hidden_gates).chunk(4, 1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def _gru_step(torch, gates, hidden_gates, hidden, cell):
    (ir, iz, inew), (hr, hz, hnew) = gates.chunk(3, 1), hidden_gates.chunk(3, 1)
    update = torch.sigmoid(iz + hz)
    new = torch.tanh(inew + torch.sigmoid(ir + hr) * hnew)
    return (1.0 - update) * new + update * hidden, cell


def _sequence(torch, step, x, weights, backwards):
    """The states of one direction of one layer."""
    of_input, of_hidden, input_bias, hidden_bias = weights
    hidden = cell = torch.zeros(x.shape[1], HIDDEN, dtype=torch.float64)
    states = [None] * len(x)
    for place in reversed(range(len(x))) if backwards else range(len(x)):
        gates, more = x[place] @ of_input.t() + input_bias, hidden @ of_hidden.t() + hidden_bias
        hidden, cell = step(torch, gates, more, hidden, cell)
        states[place] = hidden
    return torch.stack(states)


def _network(torch, step, x, weights):
    for layer in range(LAYERS):
        both = [_sequence(torch, step, x, weights[2 * layer + back], back) for back in (0, 1)]
        x = torch.cat(both, 2)
    return x


def parts(inputs):
    """Every result of the check."""
    torch, units = inputs.torch, UNITS[inputs.kind]
    for name, step in (("LSTM", _lstm_step), ("GRU", _gru_step)):
        module = getattr(torch.nn, name)(WIDTH, HIDDEN, LAYERS, bidirectional=True)
        module = module.to(inputs.dtype).to(inputs.context.device)
        exact = []
        for parameter in module.parameters():
            exact.append(inputs.exact(*parameter.shape, size=2.0 / math.sqrt(HIDDEN)))
            parameter.data.copy_(inputs.placed(exact[-1]))
            exact[-1].requires_grad_()
        x, xe = inputs.pair(STEPS, BATCH, WIDTH)
        wanted = _network(torch, step, xe, [exact[place : place + 4] for place in range(0, len(exact), 4)])
        result = module(x)[0]
        sent_back(result, wanted, inputs.exact(*wanted.shape))
        yield Part(name, result, wanted, units)
        yield Part(name + ", gradient of the input", x.grad, xe.grad, units)
        for (label, parameter), reference in zip(module.named_parameters(), exact):
            if "weight" in label:
                yield Part("%s, gradient of %s" % (name, label), parameter.grad, reference.grad, units)


check = check_of(parts)
