"""Pairs and triples of faults that break different things, drawn by a seed."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

from .case import Case
from .faults import FAULTS, Fault
from .room import BASES, Base

# One in sixteen on real torch, whose imports take most of the time
ON_TORCH = 16
PINS: dict[Base, tuple[str, ...]] = {
    "torch": ("torch==2.5.1", "transformers==4.46.3", "numpy<3", "pillow"),
    "light": ("numpy==2.2.6", "pandas<3", "click", "pillow"),
    "plain": ("numpy==2.2.6", "transformers==4.46.3", "scipy==1.15.3", "pandas<3", "pillow"),
}


def draw(count: int, seed: int, *, light: bool = False) -> list[Case]:
    """Cases in which every fault has its turn before one comes again; half of them pairs, half triples.

    They are on torch and on many wheels without it, or `light` ones.
    """
    chance = random.Random(seed)
    used: Counter[str] = Counter()
    pools = {(name, size): _stackable(name, size) for name in BASES for size in (2, 3)}
    cases = []
    for number in range(count):
        name: Base = "light" if light else "torch" if number % ON_TORCH == 0 else "plain"
        pool = pools[name, 2 + (number // ON_TORCH if name == "torch" else number) % 2]
        drawn = chance.sample(pool, min(40, len(pool)))
        chosen = min(drawn, key=lambda faults: sum(used[fault.name] ** 2 for fault in faults))
        pool.remove(chosen)
        used.update(fault.name for fault in chosen)
        pins = tuple(chance.sample(PINS[name], 2)) if number % 3 == 2 else ()
        cases.append(Case(tuple(chance.sample(chosen, len(chosen))), pins, command=chance.random() < 0.25))
    return cases


def _stackable(name: Base, size: int) -> list[tuple[Fault, ...]]:
    """Sets of faults of one base of which no two break the same thing."""
    single = [fault for fault in FAULTS if fault.base == name and fault.touches]
    return [
        faults
        for faults in combinations(single, size)
        if sum(len(fault.touches) for fault in faults) == len(frozenset().union(*(fault.touches for fault in faults)))
    ]
