"""What one case of a part came to, and how it is told."""

from __future__ import annotations

import subprocess
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from tests.faults.room import Skipped

_SHORT = 110


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One case."""

    part: str
    case: str
    outcome: str
    """What is there in the end: ``old`` or ``new`` environment, ``whole`` for many of both, ``skipped``, or ``FAILED``."""
    told: str = ""
    """What envmedic said, why the case was skipped, or what did not hold."""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether something did not hold."""
        return self.outcome == "FAILED"


Work = Callable[[], tuple[str, str]]
"""Tries one case; returns the side of the environment and what envmedic said. Raises AssertionError, or Skipped."""
Case = tuple[str, Work]


def skipping(reason: Skipped) -> Work:
    """A case that cannot be tried."""

    def skip() -> tuple[str, str]:
        raise reason

    return skip


def attempt(part: str, case: str, work: Work) -> Tried:
    """Try one case; whatever it raises is what came of it."""
    started = time.monotonic()
    try:
        outcome, told = work()
    except Skipped as reason:
        outcome, told = "skipped", str(reason)
    except subprocess.CalledProcessError as error:
        outcome, told = "FAILED", f"{error}: {error.stderr!r}"
    except subprocess.TimeoutExpired as error:
        outcome, told = "FAILED", f"it hangs: {error}"
    except (AssertionError, OSError, ValueError, KeyError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome, told = "FAILED", f"{type(error).__name__} at {place.name}:{place.lineno}: {error}"
    return Tried(part=part, case=case, outcome=outcome, told=told, seconds=time.monotonic() - started)


def rows(tried: Iterable[Tried]) -> Iterator[str]:
    """A line for each case."""
    for item in tried:
        told = item.told if item.failed else item.told.splitlines()[0][:_SHORT] if item.told else ""
        yield f"{item.part:<12} {item.case:<58} {item.outcome:<8} {told}"


def summary(tried: Iterable[Tried]) -> Iterator[str]:
    """Counts of each part."""
    counts: dict[str, Counter[str]] = {}
    for item in tried:
        counts.setdefault(item.part, Counter())[item.outcome] += 1
    for part, found in counts.items():
        yield f"{part:<12} {sum(found.values()):>4} cases: " + ", ".join(
            f"{n} {name}" for name, n in found.most_common()
        )
