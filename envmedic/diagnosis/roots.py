"""The order of causes: roots above their symptoms, what stopped the program above what it only warned of."""

from __future__ import annotations

from collections.abc import Sequence

from envmedic.diagnosis.candidates import Cause
from envmedic.model.registries.faults import FAULT_CLASSES, Fault

HARDLY_SURE = 0.6
"""Readings below this confidence are of a general kind: some library lacks something."""
ONE_MESSAGE = 3
"""A message and the lines of the traceback that name its place take up to so many lines."""

_Rank = tuple[bool, bool, bool, bool, bool, bool, float, tuple[int, int], float]


def explained(fault: Fault | None, present: frozenset[Fault]) -> bool:
    """Whether another fault that is present brings `fault` about."""
    return any(fault in FAULT_CLASSES[other].symptoms for other in present if other != fault)


def _outdone(reading: Cause, other: Cause) -> bool:
    """Whether `reading` is a general one of a message that `other` knows better."""
    if reading.signature is None or other.signature is None:
        return False
    if reading.confidence >= min(other.confidence, HARDLY_SURE):
        return False
    return all(abs(here - there) < ONE_MESSAGE for here, there in zip(reading.line, other.line, strict=True))


def ranked(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Best first.

    Refuted ones come last, and after the others those that are not sure enough for a verdict. What facts confirm goes
    before what the text alone says; roots before the symptoms that they explain, unless they are only a more
    general reading of the same message; what stopped the program before what it passed by with a
    warning. Among those equally sure, the first in the text goes first: in chains of exceptions, build
    logs and retries, later errors follow from earlier ones.
    """
    sure = [cause for cause in causes if cause.fault is not None and cause.certain and not cause.refuted]

    def present(cause: Cause) -> frozenset[Fault]:
        return frozenset(other.fault for other in sure if other.fault is not None and not _outdone(other, cause))

    def rank(cause: Cause) -> _Rank:
        return (
            cause.refuted,
            cause.fault is None and cause.passing,  # what is harmless explains nothing else
            not cause.certain,
            not cause.confirmed,
            explained(cause.fault, present(cause)),
            cause.passing,
            -round(cause.confidence, 1),
            cause.line,
            -cause.confidence,
        )

    return tuple(sorted(causes, key=rank))


def chosen(causes: Sequence[Cause]) -> Cause | None:
    """The cause that makes the verdict, of `causes` as `ranked`; None when there is none.

    A text that surely speaks of something else is not explained by what the facts show besides.
    """
    best = causes[0] if causes else None
    if best is None or best.signature is not None:
        return best
    stated = next((cause for cause in causes if cause.signature is not None), best)
    return stated if stated.fault is None and stated.confidence > best.confidence else best
