"""Causes that text or facts speak for, before they are ranked and told as findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from envmedic.diagnosis.derived import Derived
from envmedic.model.findings import FixKind
from envmedic.model.playbook import AdviseStep, LoadedPlaybook, Playbook, Signature, TextMatch
from envmedic.model.registries.faults import Fault
from envmedic.playbook.schema.conditions import Evaluation, evaluate
from envmedic.playbook.schema.template import fill

CERTAIN_ENOUGH = 0.5
"""Findings below this confidence leave the verdict `unknown`."""
FACTS_ALONE = 0.85
"""Confidence of a fault that facts show and no text names."""
DOUBT_LEFT_BY_FACTS = 0.25
"""What remains of a hypothesis' doubt once facts confirm it."""
TRUST_LEFT_BY_FACTS = 0.4
"""What remains of a hypothesis' confidence once facts refute it."""
_LINES_OF_A_WARNING = 8
"""A warning goes on for a few lines, of which only the first says that it is one."""
NO_FAULT: Final = "not-an-env-problem"


@dataclass(frozen=True)
class Cause:
    """A cause: a playbook with what speaks for it."""

    playbook: Playbook
    signature: Signature | None
    """The surest one that matched; None when facts alone show the fault."""
    matches: tuple[TextMatch, ...]
    """Those of the signature first."""
    evaluation: Evaluation
    """What the facts say."""
    values: Derived
    """Facts, groups of the match and the playbook's variables, for its texts."""

    @property
    def fix_kind(self) -> FixKind:
        """What mends it."""
        return (self.signature.fix_kind if self.signature is not None else None) or self.playbook.fix_kind

    @property
    def fault(self) -> Fault | None:
        """The class of the fault; None where no environment is at fault."""
        return None if self.fix_kind == NO_FAULT else self.playbook.fault

    @property
    def refuted(self) -> bool:
        """Whether the facts speak against it."""
        return self.evaluation.truth is False

    @property
    def confirmed(self) -> bool:
        """Whether the facts speak for it."""
        return self.evaluation.truth is True

    @cached_property
    def confidence(self) -> float:
        """0 to 1, from the text and what facts make of it."""
        if self.signature is None:
            return FACTS_ALONE
        stated = self.signature.confidence
        if self.confirmed:
            return round(max(FACTS_ALONE, 1 - (1 - stated) * DOUBT_LEFT_BY_FACTS), 3)
        return round(stated * TRUST_LEFT_BY_FACTS, 3) if self.refuted else stated

    @property
    def certain(self) -> bool:
        """Whether it is sure enough for a verdict."""
        return self.confidence >= CERTAIN_ENOUGH

    @cached_property
    def _telling(self) -> tuple[TextMatch, ...]:
        """Matches that are worth about as much as the best one: weak ones tell nothing of where it began."""
        known = {signature.id: signature.confidence for signature in self.playbook.signatures}
        if self.signature is None:
            return ()
        least = min(CERTAIN_ENOUGH, self.signature.confidence)
        return tuple(match for match in self.matches if known[match.signature] >= least)

    @cached_property
    def line(self) -> tuple[int, int]:
        """Where the text first speaks of it, 0 where it does not: the line, and the part of the line."""
        return min((_place(match) for match in self._telling), default=(0, 0))

    @cached_property
    def passing(self) -> bool:
        """Whether the text names it in lines after which programs go on: warnings and information."""
        line, part = -_LINES_OF_A_WARNING, 0
        for match in sorted(self._telling, key=_place):
            if match.passing:
                line, part = _place(match)
            elif max(match.line_number - line, match.part - part) > _LINES_OF_A_WARNING:
                return False
        return bool(self._telling)

    @property
    def summary(self) -> str:
        """What is wrong, in one line."""
        own = self.signature.summary if self.signature is not None else None
        return fill(own if own is not None else self.playbook.title, self.values)

    @property
    def advice(self) -> tuple[str, ...]:
        """What the playbook's steps tell people to do."""
        return tuple(fill(step.text, self.values) for step in self.playbook.steps if isinstance(step, AdviseStep))


def _place(match: TextMatch) -> tuple[int, int]:
    return match.line_number, match.part


def candidates(
    playbooks: Iterable[LoadedPlaybook], matches: Iterable[TextMatch], derived: Derived
) -> tuple[Cause, ...]:
    """Every cause that matches or facts speak for.

    Signatures of one playbook that rule a repair out are a cause of their own.
    """
    by_playbook: dict[str, list[TextMatch]] = {}
    for match in matches:
        by_playbook.setdefault(match.playbook, []).append(match)
    found = (
        _candidate(loaded.playbook, part, derived)
        for loaded in playbooks
        for part in _parts(loaded.playbook, by_playbook.get(loaded.playbook.id, []))
    )
    return tuple(candidate for candidate in found if candidate is not None)


def _parts(playbook: Playbook, matches: Sequence[TextMatch]) -> list[list[TextMatch]]:
    """Matches of the fault, which may be none where facts show it, and those that rule a repair out."""
    harmless = {item.id for item in playbook.signatures if (item.fix_kind or playbook.fix_kind) == NO_FAULT}
    fault = [match for match in matches if match.signature not in harmless]
    others = [match for match in matches if match.signature in harmless]
    return [fault, others] if others else [fault]


def _candidate(playbook: Playbook, matches: Sequence[TextMatch], derived: Derived) -> Cause | None:
    """The cause that `playbook` names, None when neither text nor facts speak for it."""
    signatures = {signature.id: signature for signature in playbook.signatures}
    ordered = sorted(matches, key=lambda match: (-signatures[match.signature].confidence, match.line_number))
    best = ordered[0] if ordered else None
    signature = signatures[best.signature] if best is not None else None
    values = _values(playbook, best, derived)
    evaluation = _evaluation(playbook, signature, values)
    if best is None and evaluation.truth is not True:
        return None
    return Cause(playbook, signature, tuple(ordered), evaluation, values)


def _values(playbook: Playbook, match: TextMatch | None, derived: Derived) -> Derived:
    """Facts, then the groups of the match, then the playbook's variables with both filled in."""
    values: Derived = {**derived, **(match.groups if match is not None else {})}
    return values | {name: fill(text, values) for name, text in playbook.vars.items()}


def _evaluation(playbook: Playbook, signature: Signature | None, values: Derived) -> Evaluation:
    """What the facts say. They neither confirm nor refute what is no fault of an environment."""
    if playbook.when is None or (signature is not None and signature.fix_kind == NO_FAULT):
        return Evaluation(None, ())
    return evaluate(playbook.when, values)
