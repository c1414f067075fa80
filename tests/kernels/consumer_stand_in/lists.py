"""What the stand-ins compute with: nested lists in plain Python, and the fault that FAULT asks for."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

FAULT = os.environ.get("FAULT", "")
"""``wrong``, ``nan``, ``crash``, ``hang`` or ``cpu`` (it goes on without the GPU), and the part after ``at``."""


def result(name: str, nested: list[Any]) -> list[Any]:
    """The result of a function, spoiled where the fault is at it."""
    kind, _, place = FAULT.partition(" at ")
    if place != name:
        return nested
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "hang":
        time.sleep(600)
    spoiled = nested
    while isinstance(spoiled[-1], list):
        spoiled = spoiled[-1]
    spoiled[-1] = float("nan") if kind == "nan" else spoiled[-1] + 1
    return nested


def product(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
    """A product of matrices."""
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True)] for row in left
    ]


def moved(image: list[list[float]], kernel: list[list[float]]) -> list[list[float]]:
    """A correlation without padding."""
    size = len(image) - len(kernel) + 1
    span = range(len(kernel))
    return [
        [sum(image[r + i][c + j] * kernel[i][j] for i in span for j in span) for c in range(size)] for r in range(size)
    ]
