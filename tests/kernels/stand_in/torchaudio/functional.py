"""torchaudio.functional"""

from __future__ import annotations

import torch
from torch import Tensor


def lfilter(samples: Tensor, feedback: Tensor, forward: Tensor, *, clamp: bool) -> Tensor:
    """The recursive filter in direct form II, with its gradient by its impulse response."""
    assert not clamp
    torch.misbehave("lfilter")
    a, b = feedback.data, forward.data

    def run(values: list[float]) -> list[float]:
        state, output = [0.0] * (len(a) - 1), []
        for value in values:
            inner = value - sum(one * past for one, past in zip(a[1:], state, strict=True))
            output.append(sum(one * past for one, past in zip(b, [inner, *state], strict=True)))
            state = [inner, *state[:-1]]
        return output

    data = torch.spoiled(run(samples.data), "lfilter", samples.where)
    result = samples._like(data)
    result.parents = [(samples, lambda up: torch.spoiled(run(up[::-1])[::-1], "lfilter gradient", samples.where))]
    return result
