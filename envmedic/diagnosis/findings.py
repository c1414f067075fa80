"""Findings and the verdict of a diagnosis.

The text of a log gives hypotheses. The facts in a playbook's `when` confirm a hypothesis, refute it or leave it
undecided. Without a log, facts alone give findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from envmedic.diagnosis.build_reason import by_first_error
from envmedic.diagnosis.candidates import CERTAIN_ENOUGH, NO_FAULT, Cause, candidates
from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.roots import chosen, ranked, without_guesses
from envmedic.diagnosis.sentences import fact_sentence
from envmedic.model.facts import Facts
from envmedic.model.findings import (
    Alternative,
    Aside,
    Diagnosis,
    Evidence,
    Finding,
    Rejected,
    Verdict,
    of_host,
    of_shell,
)
from envmedic.model.playbook import (
    AdviseStep,
    FactValue,
    Failures,
    LoadedPlaybook,
    Playbook,
    ReadText,
    TextMatch,
    TextOrigin,
)
from envmedic.model.registries.faults import Fault
from envmedic.model.vocabulary.names import fact_source
from envmedic.playbook.schema.conditions import Evaluation, Leaf, Values
from envmedic.playbook.schema.template import fill, placeholders

_SHOWN_LINES = 5
_WEAK = {
    "host": " on this host; the text may be of another",
    "metadata": " (by metadata, which leave many conflicts unstated)",
}
"""What is said of facts that speak against a text and cannot refute it, by what they rest on."""


def diagnose(
    text: ReadText,
    facts: Facts | None,
    playbooks: Sequence[LoadedPlaybook],
    *,
    prefix: str | None,
    log: str | None,
    here: bool = False,
) -> Diagnosis:
    """The diagnosis, best finding first.

    `text` comes from `playbook.matching.match.read_text`. Without `facts` only the text counts; `log` is None without one. `here` says that the text was written on the host of `facts`.
    """
    derived = _derived(facts)
    statements = facts.statements if facts is not None else ()
    found = candidates(playbooks, text.matches, derived, here=here, statements=statements)
    causes = by_first_error(ranked(without_guesses(found), _names(facts)))
    best = chosen(causes, text.failures)
    latent = _latent(facts, causes, text.failures)
    quiet = log is not None and all(cause.fault is None for cause in causes) and _quiet(text.failures, causes)
    if quiet and best is not None and facts is not None:
        # what is known to do no harm is named, and the environment is judged as without a text
        verdict, reason = _undecided(None, facts, None, text.failures)
        reason = f"the text tells of no failure: {best.summary}" if verdict == "healthy" else reason
        best = None
    elif quiet and best is None and facts is None:
        # as with a harmless line, which may stand in any log
        verdict, reason = (
            NO_FAULT,
            "no line of the text tells of a failure; if a program fails, its whole text is needed",
        )
    else:
        verdict, reason = _verdict(best, causes, facts, log, text.failures)
    if verdict == "healthy" and any(item.confidence >= CERTAIN_ENOUGH for item in latent):
        verdict = "env"
    advised = best is not None and verdict in {"host", "shell", NO_FAULT}
    return Diagnosis(
        prefix=prefix,
        facts=facts,
        verdict=verdict,
        findings=()
        if verdict == NO_FAULT
        else _below_roots(_in_order(_findings(causes, known=bool(derived)), latent), facts),
        reason=reason,
        origin=_origin(text.origin, facts),
        also=tuple(_asides(causes, best)),
        advice=_advice(best, reason) if best is not None and advised else (),
        log=log,
        importing=text.failures.importing,
        examined=_examined(facts),
        unexamined=_unexamined(facts),
    )


def _origin(origin: TextOrigin, facts: Facts | None) -> tuple[str, ...]:
    """What the user has to know of a text that was written elsewhere, as far as its paths tell."""
    if origin.system is not None:
        return (
            f"{origin.path} is a path of {origin.system}, and envmedic repairs environments on Linux, WSL among them",
        )
    environment = facts.environment if facts is not None else None
    if environment is None or not origin.prefixes or {environment.prefix, environment.real_prefix} & {*origin.prefixes}:
        return ()
    return (
        f"the error was raised in {origin.prefixes[-1]}, and {environment.prefix} was examined: -p names another one",
    )


def _advice(best: Cause, reason: str | None) -> tuple[str, ...]:
    """The advice of the deciding cause; only the line for the shell where the reason is one of its variables."""
    if reason is not None and reason == best.values.get("shell.gpus-hidden"):
        return (f"In the shell that starts the program: {best.values.get('shell.gpus-line')}",)
    return best.advice


def _quiet(failures: Failures, causes: Sequence[Cause]) -> bool:
    """Whether no line of the text tells of a failure, except in known warnings, after which programs go on."""
    known = {match.line_number for cause in causes for match in cause.matches if match.passing}
    return failures.whole and failures.failing | failures.warned <= known


def _latent(facts: Facts | None, causes: Sequence[Cause], failures: Failures) -> tuple[Finding, ...]:
    """The findings of `latent`, except those whose playbook is among the causes."""
    if facts is None or facts.environment is None:
        return ()
    from envmedic.diagnosis import latent  # late, as in `_derived`

    known = {cause.playbook.id for cause in causes if cause.confirmed}
    return tuple(item for item in latent.find(facts, failures.sources) if item.playbook not in known)


def _in_order(told: tuple[Finding, ...], latent: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """What the text tells before what facts show of something else, and after a changed file that its error names."""
    if not latent or (told and told[0].confirmed):
        return (*told, *latent)
    named = tuple(item for item in latent if item.named)
    return (*named, *told, *(item for item in latent if item not in named))


def _below_roots(found: tuple[Finding, ...], facts: Facts | None) -> tuple[Finding, ...]:
    if facts is None or not found[1:]:
        return found
    from envmedic.diagnosis import consequences  # late, as in `_derived`

    return consequences.below_roots(found, facts.environment)


def _examined(facts: Facts | None) -> tuple[str, ...]:
    if facts is None or facts.environment is None:
        return ()
    from envmedic.diagnosis import coverage

    return coverage.examined(facts.environment)


def _unexamined(facts: Facts | None) -> tuple[str, ...]:
    if facts is None or facts.environment is None:
        return ()
    from envmedic.diagnosis import coverage

    return coverage.unexamined(facts.environment)


def _names(facts: Facts | None) -> frozenset[str]:
    """What is installed, by the names of distributions and of what each of them alone lets import."""
    if facts is None or facts.environment is None:
        return frozenset()
    items = facts.environment.distributions
    owners = Counter(name.lower() for item in items for name in {item.name, *item.import_names})
    return frozenset(name for name, count in owners.items() if count == 1)


def _derived(facts: Facts | None) -> Derived:
    if facts is None:
        return {}
    # here and not at the top: it loads all areas and the compatibility tables, which a text alone does not need
    from envmedic.diagnosis.vocabulary import derive

    return derive(facts)


def _findings(causes: Sequence[Cause], *, known: bool) -> tuple[Finding, ...]:
    """The faults among the causes; the first finding also lists every refuted one, where readers look first."""
    found = [_finding(cause, cause.fault, known=known) for cause in causes if cause.fault is not None]
    refuted = tuple(rejected for finding in found[1:] for rejected in finding.rejected)
    if found and refuted:
        found[0] = msgspec.structs.replace(found[0], rejected=(*found[0].rejected, *refuted))
    return tuple(found)


def _finding(cause: Cause, fault: Fault, *, known: bool) -> Finding:
    return Finding(
        fault=fault,
        playbook=cause.playbook.id,
        signature=cause.signature.id if cause.signature is not None else None,
        confidence=cause.confidence,
        confirmed=cause.evaluation.truth,
        summary=cause.summary,
        evidence=(*_text_evidence(cause.matches), *_fact_evidence(cause.evaluation, cause.values, known=known)),
        fix_kind=cause.fix_kind,
        groups=cause.matches[0].groups if cause.matches else {},
        alternatives=alternatives(cause.playbook, cause.values),
        rejected=_rejected(cause, fault),
        advice=cause.advice if all(isinstance(step, AdviseStep) for step in cause.playbook.steps) else (),
    )


def _text_evidence(matches: Sequence[TextMatch]) -> list[Evidence]:
    lines: dict[int, Evidence] = {}
    # several signatures can match one line; matches are sorted by confidence, so the first is the best
    for match in matches:
        times = f" ({match.count} lines like it)" if match.count > 1 else ""
        evidence = Evidence(kind="text", where=f"log:{match.line_number}", what=match.line + times)
        lines.setdefault(match.line_number, evidence)
    return list(lines.values())[:_SHOWN_LINES]


def _fact_evidence(evaluation: Evaluation, values: Values, *, known: bool) -> list[Evidence]:
    """The comparisons that decided, and those that speak against a text without refuting it."""
    if not known:
        return []
    leaves = dict.fromkeys(evaluation.leaves)  # branches of a condition may repeat a comparison
    if evaluation.truth is not None:
        return [_fact_seen(item, values, supports=evaluation.truth) for item in leaves]
    return [
        _fact_seen(item, values, supports=False, remark=_WEAK[source])
        for item in leaves
        if item.truth is not None and (source := fact_source(item.name)) in _WEAK
    ]


def _fact_seen(leaf: Leaf, values: Values, *, supports: bool, remark: str = "") -> Evidence:
    told = fact_sentence(leaf.name, values)
    sentence = told and told + remark
    return Evidence(kind="fact", where=leaf.name, what=leaf.text + remark, sentence=sentence, supports=supports)


def alternatives(playbook: Playbook, values: Mapping[str, FactValue]) -> tuple[Alternative, ...]:
    """Return the playbook's other ways, without those that name what is not known here."""
    return tuple(
        _alternative(fill(text, values))
        for text in playbook.alternatives
        if all(values.get(name) is not None for name in placeholders(text))
    )


def _alternative(text: str) -> Alternative:
    """An alternative from its text: the first sentence is the title, the rest says why it is not the first choice."""
    title, _, why_not = text.strip().partition(". ")
    return Alternative(title=title.rstrip("."), why_not=why_not.strip())


def _asides(causes: Sequence[Cause], best: Cause | None) -> Iterator[Aside]:
    """What else the text says that is no fault."""
    for cause in causes:
        if cause.fault is None and cause is not best and cause.matches:
            yield Aside(text=cause.matches[0].line, reason=cause.summary)


def _rejected(cause: Cause, fault: Fault) -> tuple[Rejected, ...]:
    if not cause.refuted or cause.signature is None:
        return ()
    return (Rejected(signature=cause.signature.id, fault=fault, reason=f"facts refute it: {_observations(cause)}"),)


def _observations(cause: Cause) -> str:
    leaves = dict.fromkeys(cause.evaluation.leaves)
    return "; ".join(dict.fromkeys(fact_sentence(leaf.name, cause.values) or leaf.text for leaf in leaves))


def _verdict(
    best: Cause | None, causes: Sequence[Cause], facts: Facts | None, log: str | None, failures: Failures
) -> tuple[Verdict, str | None]:
    if best is None or not best.certain:
        return _undecided(best, facts, log, failures)
    if best.fault is None:
        # the text is no fault of the environment, which may have one all the same
        shown = next((cause for cause in causes if cause.confirmed and cause.fault is not None), None)
        besides = f"; besides, the facts show {shown.fault}: {shown.summary}" if shown is not None else ""
        return NO_FAULT, best.summary + besides
    if of_shell(best.fault) or best.shell_line is not None:
        return "shell", None
    if not of_host(best.fault, best.fix_kind):
        return "env", None
    hidden = best.values.get("shell.gpus-hidden") if best.values.get("host.gpus-hidden") else None
    # the driver lists GPUs, and the variable leaves none of them: the host itself is sound
    return ("host", None) if hidden is None else ("shell", str(hidden))


def _undecided(
    best: Cause | None, facts: Facts | None, log: str | None, failures: Failures
) -> tuple[Verdict, str | None]:
    """The verdict without a certain cause. Only facts without any text can give `healthy`."""
    if best is not None:
        return "unknown", _doubt(best)
    if log is not None:
        facts_too = ", and the facts confirm no known fault" if facts is not None else ""
        what = "the text" if failures.message is None else f"its last error ({failures.message})"
        return "unknown", f"no known signature matches {what}{facts_too}"
    if facts is None or facts.environment is None:
        return "unknown", "there is neither an error text nor an environment to judge"
    # no fault found means little where the interpreter does not start: that alone is not healthy
    interpreter = facts.environment.interpreter
    if not interpreter.starts:
        return "unknown", f"the environment's Python does not start: {interpreter.error or 'for no stated reason'}"
    return "healthy", None


def _doubt(best: Cause) -> str:
    if best.fault is None:
        return f"perhaps no environment is at fault: {best.summary}"
    if best.refuted:
        return f"the text speaks of {best.fault}, but facts refute it: {_observations(best)}"
    return f"the likeliest fault is {best.fault} ({best.summary}), which the text alone does not establish"
