"""Candidate causes with their evidence from text and facts, before ranking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from envmedic.analysis.text_statements import with_text
from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.jit_caches import cache_facts
from envmedic.model.facts import TextStatement
from envmedic.model.findings import FixKind
from envmedic.model.playbook import AdviseStep, Condition, LoadedPlaybook, Playbook, Signature, TextMatch
from envmedic.model.registries.faults import Fault
from envmedic.playbook.schema.conditions import Evaluation, evaluate, mentions, weighed
from envmedic.playbook.schema.template import fill, placeholders, sole_placeholder

CERTAIN_ENOUGH = 0.5
"""Findings below this confidence leave the verdict `unknown`."""
FACTS_ALONE = 0.85
"""Confidence of a fault that facts show and no text names."""
DOUBT_LEFT_BY_FACTS = 0.25
"""Factor on the doubt of a text match (1 - confidence) when facts confirm it."""
TRUST_LEFT_BY_FACTS = 0.4
"""Factor on the confidence of a text match when facts refute it."""
WORDS_ALONE = 0.05
"""Confidence of a signature whose words say nothing without facts: it gives no finding then."""
PASSING_GUESS = 0.45
"""Most confidence of what only the form of a sentence tells, where that is a warning or a tale."""
_LINES_OF_A_WARNING = 8
"""Length of a warning in lines; only its first line is marked as a warning."""
ONE_MESSAGE = 3
"""Distance in lines (or parts of a line) within which two matches belong to one message and its traceback."""
_RAISED = re.compile(r"(?<![\w-])[\w.]*(?:Error|Exception|BadZip[Ff]ile)(?=:|$)")
_TALE = re.compile(
    r"(?:^|[^\w'])(?:I(?:'(?:m|ve|d|ll))?|[Ww]e|[Mm]y|[Oo]ur) [a-z]|\bi (?:just|have|am|get|got|tried|try|want|need) "
    r"|[\u6211\u4f60]|\u5927\u5bb6|\u79c1[\u306e\u306f\u3082]"  # Chinese I, you and all of you; Japanese I
)
"""Words by which people tell of what they did; programs do not speak of themselves."""
_BEGINNING = 60
"""Characters of a line in which a message names its error, where it is no word of a tale."""
NO_FAULT: Final = "not-an-env-problem"
_FORM: Final = "form"
"""How the ids of signatures begin that match what a text says in any words (`playbook.matching.forms`)."""
_AS_STATED = Condition(fact="text.holds", operator="is", value=True)


@dataclass(frozen=True)
class Cause:
    """A playbook with the evidence for its fault."""

    playbook: Playbook
    signature: Signature | None
    """The match with the highest confidence; None when facts alone show the fault."""
    matches: tuple[TextMatch, ...]
    """Sorted by confidence, so those of `signature` come first."""
    evaluation: Evaluation
    """Result of the playbook's `when` on the facts."""
    values: Derived
    """Facts, groups of the match and the playbook's variables, for its texts."""

    @property
    def fix_kind(self) -> FixKind:
        """How to repair it: the signature's own way before the playbook's."""
        return (self.signature.fix_kind if self.signature is not None else None) or self.playbook.fix_kind

    @property
    def fault(self) -> Fault | None:
        """The class of the fault; None where no environment is at fault."""
        return None if self.fix_kind == NO_FAULT else self.playbook.fault

    @property
    def refuted(self) -> bool:
        """Whether the facts refute it."""
        # `truth` is None where a fact was not observed: that neither refutes nor confirms
        return self.evaluation.truth is False

    @property
    def confirmed(self) -> bool:
        """Whether the facts confirm it."""
        return self.evaluation.truth is True

    @cached_property
    def confidence(self) -> float:
        """0 to 1, from the confidence of the signature and the result of the facts."""
        if self.signature is None:
            return FACTS_ALONE
        stated = self.signature.confidence
        if self.by_form and (self.passing or self.told):
            # a guess about a line after which the program went on, or about what somebody says of it
            stated = min(stated, PASSING_GUESS)
        if self.confirmed:
            # at least as sure as the same facts without any text: a weak signature must not lower them
            return round(max(FACTS_ALONE, 1 - (1 - stated) * DOUBT_LEFT_BY_FACTS), 3)
        return round(stated * TRUST_LEFT_BY_FACTS, 3) if self.refuted else stated

    @property
    def by_facts(self) -> bool:
        """Whether its words say nothing by themselves."""
        return self.signature is not None and self.signature.confidence <= WORDS_ALONE

    @property
    def by_form(self) -> bool:
        """Whether only the form of a sentence tells of it, in words that no signature knows."""
        return self.signature is not None and is_form(self.signature.id)

    @property
    def certain(self) -> bool:
        """Whether it is sure enough for a verdict."""
        return self.confidence >= CERTAIN_ENOUGH

    @cached_property
    def _telling(self) -> tuple[TextMatch, ...]:
        """Matches about as good as the best one; weak ones do not show where the fault began."""
        known = {signature.id: signature.confidence for signature in self.playbook.signatures}
        if self.signature is None:
            return ()
        # where even the best signature is weak, the limit sinks to it: something must give the line
        least = min(CERTAIN_ENOUGH, self.signature.confidence)
        return tuple(match for match in self.matches if known[match.signature] >= least)

    @cached_property
    def line(self) -> tuple[int, int]:
        """First line of the text that shows it, and the part of that line; zeros without a match."""
        return min((_place(match) for match in self._telling), default=(0, 0))

    @cached_property
    def passing(self) -> bool:
        """Whether the text names it in warnings and information only, after which programs go on."""
        line, part = -_LINES_OF_A_WARNING, 0
        for match in sorted(self._telling, key=_place):
            if match.passing:
                line, part = _place(match)
            # a log in JSON has its text in parts of one line, so parts count as lines do
            elif max(match.line_number - line, match.part - part) > _LINES_OF_A_WARNING:
                return False
        return bool(self._telling)

    @cached_property
    def told(self) -> bool:
        """Whether only a person's own words name it, and no message of a program."""
        return bool(self._telling) and all(
            _TALE.search(match.line) and not _RAISED.search(match.line[:_BEGINNING]) for match in self._telling
        )

    @cached_property
    def raised(self) -> bool:
        """Whether the text names it in an error that Python raised, and not in a notice, warning or interruption."""
        return any(not match.passing and _RAISED.search(match.line) for match in self._telling)

    @cached_property
    def starts(self) -> frozenset[int]:
        """First lines of its messages, as far as they are known."""
        return frozenset(number for match in self.matches for number in (match.line_number, *match.later_lines))

    @cached_property
    def lines(self) -> frozenset[int]:
        """Lines of its messages; a wrapped one has up to three."""
        return frozenset(start + offset for start in self.starts for offset in range(ONE_MESSAGE))

    @property
    def summary(self) -> str:
        """The fault in one line."""
        own = self.signature.summary if self.signature is not None else None
        return fill(own if own is not None else self.playbook.title, self.values)

    @property
    def shell_line(self) -> str | None:
        """The line that mends it in the shell; None where it is mended elsewhere, or what the line names is not known."""
        return None if self.refuted else _shell_line(self.playbook, self.signature, self.values)

    @property
    def advice(self) -> tuple[str, ...]:
        """The line for the shell, and the texts of the playbook's `advise` steps."""
        line = self.shell_line
        first = (f"In the shell that starts the program: {line}",) if line is not None else ()
        steps = (step.text.strip() for step in self.playbook.steps if isinstance(step, AdviseStep))
        # advice that is one fact as a whole says nothing where the fact is not known
        known = (
            text for text in steps if (name := sole_placeholder(text)) is None or self.values.get(name) is not None
        )
        return first + tuple(fill(text, self.values) for text in known)


def _shell_line(playbook: Playbook, signature: Signature | None, values: Derived) -> str | None:
    own = signature.shell_line if signature is not None else None
    text = own if own is not None else playbook.shell_line
    if text is None or any(values.get(name) is None for name in placeholders(text)):
        return None
    return fill(text, values)


def is_form(signature: str) -> bool:
    """Whether the signature with this id matches a form of sentences, and not the words of a message."""
    return signature.startswith(_FORM)


def _place(match: TextMatch) -> tuple[int, int]:
    return match.line_number, match.part


def candidates(
    playbooks: Iterable[LoadedPlaybook],
    matches: Iterable[TextMatch],
    derived: Derived,
    *,
    here: bool = False,
    statements: Sequence[TextStatement] = (),
) -> tuple[Cause, ...]:
    """Every cause with support from matches or facts.

    Signatures of one playbook that rule a repair out are a separate cause. `here` says that the text was written on
    the host of the facts, which then can refute it; `statements` are those of the text, looked up.
    """
    by_playbook: dict[str, list[TextMatch]] = {}
    for match in matches:
        by_playbook.setdefault(match.playbook, []).append(match)
    found: list[Cause | None] = []
    for loaded in playbooks:
        for part in _parts(loaded.playbook, by_playbook.get(loaded.playbook.id, [])):
            cause = _candidate(loaded.playbook, part, derived, statements, here=here)
            # an uncertain guess that facts refute says nothing
            found.append(cause if cause is None or not cause.refuted or not _vague(cause) else None)
            # the environment may have the fault in another way than the text says
            if part and cause is not None and cause.refuted:
                found.append(_candidate(loaded.playbook, [], derived, statements, here=here))
    return tuple(cause for cause in found if cause is not None)


def _vague(cause: Cause) -> bool:
    """Whether only the form of a sentence tells of it, and that not for sure."""
    return cause.by_form and cause.signature is not None and cause.signature.confidence < CERTAIN_ENOUGH


def _parts(playbook: Playbook, matches: Sequence[TextMatch]) -> list[list[TextMatch]]:
    """Matches of the fault and, where there are any, matches that rule a repair out."""
    sure = {item.id: item.confidence for item in playbook.signatures}
    harmless = {item.id for item in playbook.signatures if (item.fix_kind or playbook.fix_kind) == NO_FAULT}
    others = [match for match in matches if match.signature in harmless]
    # one message, read as a fault and, more surely, as none
    ruled_out = {_place(match): sure[match.signature] for match in others}
    fault = [
        match
        for match in matches
        if match.signature not in harmless and sure[match.signature] > ruled_out.get(_place(match), 0)
    ]
    # the first group stays even when it is empty: facts alone can show the fault
    return [fault, others] if others else [fault]


def _candidate(
    playbook: Playbook,
    matches: Sequence[TextMatch],
    derived: Derived,
    statements: Sequence[TextStatement],
    *,
    here: bool,
) -> Cause | None:
    """The cause that `playbook` names, None when neither text nor facts speak for it."""
    signatures = {signature.id: signature for signature in playbook.signatures}
    worded = [match for match in matches if not is_form(match.signature)]
    matches = worded or matches
    # equally sure matches keep the order of the text: later errors tend to follow from the first
    ordered = sorted(matches, key=lambda match: (-signatures[match.signature].confidence, match.line_number))
    best = ordered[0] if ordered else None
    signature = signatures[best.signature] if best is not None else None
    values = _values(playbook, best, derived, statements)
    evaluation = _evaluation(playbook, signature, values, here=here)
    if best is None and evaluation.truth is not True:
        return None
    # facts that show who else is to blame count for a text alone, and only where they do show it
    if playbook.fault is None and playbook.when is not None and (best is None or evaluation.truth is not True):
        return None
    return Cause(playbook, signature, tuple(ordered), evaluation, values)


def _values(
    playbook: Playbook, match: TextMatch | None, derived: Derived, statements: Sequence[TextStatement]
) -> Derived:
    """Facts, groups of the match, and the playbook's variables, whose texts may name both."""
    groups = match.groups if match is not None else {}
    # a later mapping wins: the text of the case at hand is more specific than a fact of the same name
    cache = cache_facts(match.line, derived.get("shell.caches")) if match is not None else {}
    values: Derived = {**(with_text(groups, statements, derived) if derived else {}), **cache, **groups}
    return values | {name: fill(text, values) for name, text in playbook.vars.items()}


def _evaluation(playbook: Playbook, signature: Signature | None, values: Derived, *, here: bool) -> Evaluation:
    """The result of the facts; undecided for a cause that is no fault of an environment."""
    if playbook.when is None or (signature is not None and signature.fix_kind == NO_FAULT):
        return Evaluation(None, ())
    found = evaluate(playbook.when, values)
    if signature is None:
        return found
    if values.get("text.holds") is False and mentions(playbook.when, "text.holds"):
        # what the files say of the very statement goes before all that other facts could have to do with it
        stated = {name: value for name, value in values.items() if name.startswith("text.")}
        # a playbook without a fault says who else is to blame: there the other facts count too
        alone = found if playbook.fault is None else evaluate(playbook.when, stated)
        return alone if alone.truth is True else evaluate(_AS_STATED, stated)
    weighty = weighed(found, playbook.when, values, here=here)
    # the files of an environment say nothing of a file in a cache, nor of what a variable puts before its own
    outside = weighty.truth is False and _shell_line(playbook, signature, values) is not None
    return Evaluation(None, ()) if outside else weighty
