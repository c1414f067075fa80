"""Interleaved samples: each round takes one of every measure, so that a noisy minute hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Samples = Mapping[str, tuple[float, ...]]
"""Seconds of each measure, in the order of the rounds."""


@dataclass(frozen=True)
class Ratio:
    """How one measure relates to another."""

    value: float
    """Of the medians."""
    low: float
    """Least and greatest of the single rounds."""
    high: float


def rounds(measures: Mapping[str, Callable[[int], float]], count: int) -> Samples:
    """Take `count` samples of each measure, after a round that warms caches and is left out.

    Each function gets the number of its round, 0 being the warming one, and returns seconds.
    """
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(count + 1):
        for name, measure in measures.items():
            seconds = measure(number)
            if number:
                taken[name].append(seconds)
    return {name: tuple(values) for name, values in taken.items()}


def ratio(samples: Samples, name: str, base: str) -> Ratio:
    """`name` over `base`."""
    single = [one / other for one, other in zip(samples[name], samples[base], strict=True)]
    return Ratio(median(samples[name]) / median(samples[base]), min(single), max(single))
