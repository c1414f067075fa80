"""Ranking of causes: roots before symptoms, fatal errors before warnings."""

from __future__ import annotations

from collections.abc import Sequence

from envmedic.diagnosis.candidates import Cause
from envmedic.model.registries.faults import FAULT_CLASSES, Fault

HARDLY_SURE = 0.6
"""Confidence below which a signature is generic, such as "some library lacks a symbol"."""
ONE_MESSAGE = 3
"""Distance in lines (or parts of a line) within which two matches belong to one message and its traceback."""

_Rank = tuple[bool, bool, bool, bool, bool, bool, float, tuple[int, int], float]


def explained(fault: Fault | None, present: frozenset[Fault]) -> bool:
    """Whether `fault` is a symptom of another fault that is present."""
    return any(fault in FAULT_CLASSES[other].symptoms for other in present if other != fault)


def _outdone(reading: Cause, other: Cause) -> bool:
    """Whether `reading` is a generic reading of a message that `other` reads more precisely."""
    if reading.signature is None or other.signature is None:
        return False
    if reading.confidence >= min(other.confidence, HARDLY_SURE):
        return False
    return all(abs(here - there) < ONE_MESSAGE for here, there in zip(reading.line, other.line, strict=True))


def ranked(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Causes, best first. `rank` has the criteria, the strongest one first."""
    sure = [cause for cause in causes if cause.fault is not None and cause.certain and not cause.refuted]

    def present(cause: Cause) -> frozenset[Fault]:
        return frozenset(other.fault for other in sure if other.fault is not None and not _outdone(other, cause))

    def rank(cause: Cause) -> _Rank:
        return (
            cause.refuted,
            cause.fault is None and cause.passing,  # a harmless warning explains no other message
            not cause.certain,
            not cause.confirmed,
            # roots go before symptoms, except a root that is only a generic reading of the same message
            explained(cause.fault, present(cause)),
            cause.passing,
            # rounded: below a tenth the order of the text tells more, since in chains of exceptions, build logs and
            # retries later errors follow from earlier ones
            -round(cause.confidence, 1),
            cause.line,
            -cause.confidence,
        )

    return tuple(sorted(causes, key=rank))


def chosen(causes: Sequence[Cause]) -> Cause | None:
    """The cause that decides the verdict, from the result of `ranked`; None without causes.

    What is no fault of an environment (out of memory, a warning, an interruption) decides only where no fault stands:
    a paste often has such lines before, between and after those of the fault that was asked about.
    """
    faults = [cause for cause in causes if cause.fault is not None]
    stated = next((cause for cause in causes if cause.fault is None), None)
    standing = next((cause for cause in faults if cause.certain and not cause.refuted), None)
    asked = standing or (faults[0] if faults else None)
    if asked is None or stated is None:
        return asked or stated
    if not stated.certain:
        return asked
    if asked.signature is None:
        # The user asked about the text, and a fault that facts alone show beside it does not explain it.
        return stated if stated.confidence >= asked.confidence else asked
    # Programs go on after a warning; an error that they raised later is what ended them.
    survived = standing is None or standing.passing
    ended = stated.raised and stated.line > asked.line
    # one message, read in two ways: what files confirm decides
    shown = stated.confirmed and not asked.confirmed and abs(stated.line[0] - asked.line[0]) < ONE_MESSAGE
    better_read = shown or (standing is None and stated.line == asked.line)
    return stated if (survived and ended) or better_read else asked
