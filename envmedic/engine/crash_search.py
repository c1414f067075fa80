"""The smallest set of imports that ends Python: tried alone, together, in both directions, and with one left out.

Every attempt is a process of its own in the environment, which gets no byte code.
"""

from __future__ import annotations

import itertools
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
    chosen = tuple(dict.fromkeys(names))[:MOST_NAMES]
    if not chosen:
        return None
    bad = _first_bad(_whole(chosen), attempt)
    if bad is not None:
        usable, alone = _alone(chosen, attempt)
        if alone is not None:
            return alone
        bad = bad if usable == chosen else _first_bad(_whole(usable), attempt)
    if bad is None and clock() < end:
        bad = _first_bad(list(itertools.permutations(chosen[:PAIRED], 2)), attempt)
        bad = bad if bad is not None and bad[1].status == "crash" else None
    if bad is None:
        return None
    smallest, outcome = _reduced(*bad, attempt)
    return _crash(smallest, outcome, _working(smallest, attempt))


def _whole(names: Names) -> list[Names]:
    """All in both directions: in one of them each pair stands in the order that crashes."""
    return list(dict.fromkeys((names, names[::-1]))) if names else []


def _first_bad(sequences: Sequence[Names], attempt: Attempt) -> tuple[Names, Outcome] | None:
    outcomes = attempt(sequences) if sequences else ()
    return next(((names, found) for names, found in zip(sequences, outcomes, strict=True) if failed(found)), None)


def failed(outcome: Outcome) -> bool:
    """Whether a sequence ended badly."""
    return outcome.status in {"crash", "fail"}


def _alone(names: Names, attempt: Attempt) -> tuple[Names, ImportCrash | None]:
    """Those of `names` that can be imported alone, and the first that crashes alone."""
    outcomes = dict(zip(names, attempt([(name,) for name in names]), strict=True))
    crashing = next((name for name in names if outcomes[name].status == "crash"), None)
    usable = tuple(name for name in names if outcomes[name].status == "pass")
    return usable, None if crashing is None else _crash((crashing,), outcomes[crashing], ())


def _reduced(sequence: Names, outcome: Outcome, attempt: Attempt) -> tuple[Names, Outcome]:
    """Leave one out as long as what is left still ends badly."""
    while len(sequence) > 1:
        shorter = [(*sequence[:index], *sequence[index + 1 :]) for index in range(len(sequence))]
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
    error = outcome.detail.strip() or outcome.reason
    return ImportCrash(sequence=sequence, signal=outcome.signal, error=error[-KEPT_ERROR:], works=works)
