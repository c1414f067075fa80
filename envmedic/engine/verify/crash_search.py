"""Search for the smallest set of imports that crashes Python: alone, together, in both orders, with one left out.

Every attempt is a process of its own in the environment and writes no byte code there.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Sequence

from envmedic.model.checks import Check, Outcome
from envmedic.model.facts import ImportCrash

Names = tuple[str, ...]
Attempt = Callable[[Sequence[Names]], Sequence[Outcome]]
"""Imports each of the given sequences in a process of its own; one outcome each, in their order."""

MOST_NAMES = 6
PAIRED = 3
"""Names, from the first on, that are tried in pairs when the whole list crashes in neither direction: a third import
can prevent a crash."""
LIMIT_S = 60.0
"""After which nothing new is tried."""
ORDERS_TRIED = 3
"""Larger sets are not put into other orders."""
KEPT_ERROR = 2000
_IMPORTING = re.compile(r"^importing (\S+)$", re.MULTILINE)
"""What the processes print before each import (``kernels/harness/sequence.py``)."""


def checks_of(sequences: Sequence[Names], *, timeout_s: float = 120.0) -> tuple[Check, ...]:
    """The checks that import each of `sequences` once."""
    return tuple(
        Check(name="import-sequence", arguments=(*names, "runs=1"), timeout_s=timeout_s) for names in sequences
    )


def find(names: Sequence[str], attempt: Attempt, *, clock: Callable[[], float] = time.monotonic) -> ImportCrash | None:
    """The smallest crashing set among `names`, None where none was found in time.

    Names that cannot be imported at all are left out: what they lack is another fault.
    """
    end = clock() + LIMIT_S
    # Each attempt imports torch anew, which takes seconds: hence few names, and a limit on the whole search.
    chosen = tuple(dict.fromkeys(names))[:MOST_NAMES]
    if not chosen:
        return None
    left, alone = chosen, _Alone(attempt)
    bad = _first_bad_way(left, attempt)
    while bad is not None:
        reached = _reached(*bad)
        crashing = alone.crashing(reached)
        if crashing is not None:
            return crashing
        # Names that fail alone cannot be part of a clash; without them the others are tried again.
        left = tuple(name for name in left if name not in reached or alone.usable(name))
        if all(map(alone.usable, reached)):
            bad = (reached, bad[1])
            break
        bad = _first_bad_way(left, attempt) if clock() < end else None
    # The whole list may pass because a third import loads the right library first: try pairs of the likeliest names.
    if bad is None and clock() < end:
        bad = _first_bad(list(itertools.permutations(chosen[:PAIRED], 2)), attempt)
        bad = bad if bad is not None and bad[1].status == "crash" else None
    if bad is None:
        return None
    smallest, outcome = _reduced(*bad, attempt, alone)
    return _crash(smallest, outcome, _working(smallest, attempt))


def _first_bad_way(names: Names, attempt: Attempt) -> tuple[Names, Outcome] | None:
    """All in both directions: in one of them each pair stands in the order that crashes.

    One after the other: names stand in the order in which they disturb each other most, and the first crash ends it.
    """
    ways = dict.fromkeys((names, names[::-1])) if names else ()
    return next((bad for way in ways if (bad := _first_bad([way], attempt)) is not None), None)


def _reached(names: Names, outcome: Outcome) -> Names:
    """Those of `names` that were imported until it ended badly; what comes after them has no part in it."""
    told = [name for name in _IMPORTING.findall(outcome.detail) if name in names]
    return names[: names.index(told[-1]) + 1] if told else names


def _first_bad(sequences: Sequence[Names], attempt: Attempt) -> tuple[Names, Outcome] | None:
    outcomes = attempt(sequences) if sequences else ()
    return next(((names, found) for names, found in zip(sequences, outcomes, strict=True) if failed(found)), None)


def failed(outcome: Outcome) -> bool:
    """Whether a sequence ended badly."""
    return outcome.status in {"crash", "fail"}


class _Alone:
    """What comes of names that are imported alone; each is tried once."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._outcomes: dict[str, Outcome] = {}

    def crashing(self, names: Names) -> ImportCrash | None:
        """The first of `names` that crashes alone; those that were not tried yet are."""
        new = [name for name in names if name not in self._outcomes]
        self._outcomes |= zip(new, self._attempt([(name,) for name in new]) if new else (), strict=True)
        found = next((name for name in names if self._outcomes[name].status == "crash"), None)
        return None if found is None else _crash((found,), self._outcomes[found], ())

    def usable(self, name: str) -> bool:
        """Whether it is known that the import of `name` alone ends well."""
        return name in self._outcomes and self._outcomes[name].status == "pass"


def _reduced(sequence: Names, outcome: Outcome, attempt: Attempt, alone: _Alone) -> tuple[Names, Outcome]:
    """Leave one out as long as what is left still ends badly."""
    while len(sequence) > 1:
        every = [(*sequence[:index], *sequence[index + 1 :]) for index in range(len(sequence))]
        shorter = [names for names in every if len(names) > 1 or not alone.usable(names[0])]
        smaller = _first_bad(shorter, attempt)
        if smaller is None:
            break
        sequence, outcome = smaller
    return sequence, outcome


def _working(sequence: Names, attempt: Attempt) -> Names:
    """Another order in which nothing happens, empty where there is none."""
    if not 1 < len(sequence) <= ORDERS_TRIED:
        return ()
    orders = [order for order in itertools.permutations(sequence) if order != sequence]
    return next((order for order, found in zip(orders, attempt(orders), strict=True) if found.status == "pass"), ())


def _crash(sequence: Names, outcome: Outcome, works: Names) -> ImportCrash:
    error = outcome.detail.strip() or outcome.reason  # the traceback of faulthandler stands at the end of the detail
    return ImportCrash(sequence=sequence, signal=outcome.signal, error=error[-KEPT_ERROR:], works=works)
