"""The smallest set of imports that ends Python: tried alone, together, in both directions, and with one left out.

Every attempt is a process of its own in the environment, which gets no byte code.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

from envmedic.model.checks import Check, Outcome
from envmedic.model.facts import ImportCrash

Names = tuple[str, ...]
Attempt = Callable[[Sequence[Names]], Sequence[Outcome]]
"""Imports each of the given sequences in a process of its own; one outcome each, in their order."""

MOST_NAMES = 8
MOST_PAIRS = 12
"""Pairs that are tried when the whole list crashes in neither direction: a third import can prevent a crash."""
LIMIT_S = 300.0
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
    alone = attempt([(name,) for name in chosen])
    for name, outcome in zip(chosen, alone, strict=True):
        if outcome.status == "crash":
            return _crash((name,), outcome, ())
    usable = tuple(name for name, outcome in zip(chosen, alone, strict=True) if outcome.status == "pass")
    for batch in _batches(usable):
        if clock() > end:
            return None
        for sequence, outcome in zip(batch, attempt(batch), strict=True):
            if failed(outcome):
                smallest, last = _reduced(sequence, outcome, attempt)
                return _crash(smallest, last, _working(smallest, attempt))
    return None


def failed(outcome: Outcome) -> bool:
    """Whether a sequence of names that can each be imported alone ended badly."""
    return outcome.status in {"crash", "fail"}


def _batches(names: Names) -> Iterator[list[Names]]:
    """What to try, most telling first: all in both directions, then pairs in both orders."""
    if len(names) < 2:  # noqa: PLR2004  # one name has no order
        return
    yield [names, names[::-1]]
    if len(names) > 2:  # noqa: PLR2004  # else both pairs were tried
        pairs = itertools.islice(itertools.combinations(names, 2), MOST_PAIRS)
        yield [order for one, other in pairs for order in ((one, other), (other, one))]


def _reduced(sequence: Names, outcome: Outcome, attempt: Attempt) -> tuple[Names, Outcome]:
    """Leave one out as long as what is left still ends badly."""
    while len(sequence) > 2:  # noqa: PLR2004  # each works alone
        shorter = [(*sequence[:index], *sequence[index + 1 :]) for index in range(len(sequence))]
        bad = ((names, found) for names, found in zip(shorter, attempt(shorter), strict=True) if failed(found))
        smaller = next(bad, None)
        if smaller is None:
            break
        sequence, outcome = smaller
    return sequence, outcome


def _working(sequence: Names, attempt: Attempt) -> Names:
    """Another order in which nothing happens, empty where there is none."""
    if len(sequence) > ORDERS_TRIED:
        return ()
    orders = [order for order in itertools.permutations(sequence) if order != sequence]
    return next((order for order, found in zip(orders, attempt(orders), strict=True) if found.status == "pass"), ())


def _crash(sequence: Names, outcome: Outcome, works: Names) -> ImportCrash:
    error = outcome.detail.strip() or outcome.reason
    return ImportCrash(sequence=sequence, signal=outcome.signal, error=error[-KEPT_ERROR:], works=works)
