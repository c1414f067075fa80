"""What a run of checks still waits for, and about how long, by how long the same took before. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from envmedic.model.checks import Check, Outcome, Phase, name_of
from envmedic.model.events import Progress, Stage

STAGES: Mapping[Phase, Stage] = {"before": "reproduce", "after": "verify", "smoke": "smoke"}
SHOWN = 3
"""Names that are told; of the others their number."""
SIDE_BY_SIDE = 2
"""Checks of GPUs that run at a time, at the least."""


class Waiting:
    """Names of checks and imports without an outcome, in the order in which they begin."""

    def __init__(self, checks: Sequence[Check], earlier: Mapping[str, float], workers: int) -> None:
        imports = (f"import {name}" for check in checks if check.name == "import" for name in check.arguments)
        self._left = dict.fromkeys((*imports, *(check.name for check in checks if check.name != "import")))
        self._earlier = earlier
        self._workers = workers
        self._done = 0

    def heard(self, outcome: Outcome) -> None:
        """One of them has an outcome."""
        self._done += 1
        self._left.pop(key_of(outcome), None)

    def progress(self, phase: Phase) -> Progress:
        """How far they are. Imports begin in their order, so the first ones without an outcome are those that run."""
        imports = [name for name in self._left if name.startswith("import ")]
        others = [name for name in self._left if not name.startswith("import ")]
        running = [*imports[: self._workers], *others]
        more = len(self._left) - min(len(running), SHOWN)
        told = ", ".join(name.removeprefix("import ") for name in running[:SHOWN]) + (
            f" and {more} more" if more else ""
        )
        label = f"waits for {told}" if running else ""
        left = self._seconds(imports, others)
        return Progress(stage=STAGES[phase], unit="checks", done=self._done, label=label, left_s=left)

    def _seconds(self, imports: Iterable[str], others: Iterable[str]) -> float | None:
        """None unless all that is left is known: a part of it would be no estimate."""
        try:
            ours, rest = ([self._earlier[name] for name in names] for names in (imports, others))
        except KeyError:
            return None
        return round(max(sum(ours) / self._workers, sum(rest) / SIDE_BY_SIDE, *ours, *rest, 0.0), 1)


def longest_first(checks: Iterable[Check], earlier: Mapping[str, float]) -> list[Check]:
    """The checks, with the names of each import in the order in which they are best begun where some run side by side.

    Those that took longest begin first, since one that begins late is waited for alone; before them those of which no
    time is known. Without any, the order stays.
    """

    def seconds(name: str) -> float:
        return earlier.get(f"import {name}", math.inf)

    return [
        msgspec.structs.replace(check, arguments=tuple(sorted(check.arguments, key=seconds, reverse=True)))
        if check.name == "import"
        else check
        for check in checks
    ]


def key_of(outcome: Outcome) -> str:
    """The name under which an outcome's check is waited for."""
    return outcome.check if outcome.check.startswith("import ") else name_of(outcome.check)


def seconds_of(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """How long each name took, all its parts and devices together."""
    found: dict[str, float] = {}
    for outcome in outcomes:
        found[key_of(outcome)] = round(found.get(key_of(outcome), 0.0) + outcome.seconds, 2)
    return found
