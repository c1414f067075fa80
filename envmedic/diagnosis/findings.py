"""Findings and the verdict.

The text of a log makes a hypothesis; the facts that a playbook names in `when` confirm it, refute it
or cannot tell. Without a log, what the facts alone confirm is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.roots import explained
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Facts
from envmedic.model.findings import Alternative, Diagnosis, Evidence, Finding, Rejected, Verdict
from envmedic.model.playbook import LoadedPlaybook, Playbook, Signature, TextMatch
from envmedic.playbook.conditions import Evaluation, evaluate
from envmedic.playbook.filling import fill

CERTAIN_ENOUGH = 0.5
"""Findings below this confidence leave the verdict `unknown`."""
FACTS_ALONE = 0.85
"""Confidence of a fault that facts show and no text names."""
DOUBT_LEFT_BY_FACTS = 0.25
"""What remains of a hypothesis' doubt once facts confirm it."""
TRUST_LEFT_BY_FACTS = 0.4
"""What remains of a hypothesis' confidence once facts refute it."""
_SHOWN_LINES = 5


def diagnose(
    matches: Iterable[TextMatch],
    facts: Facts | None,
    playbooks: Sequence[LoadedPlaybook],
    *,
    prefix: str | None,
    log: str | None,
) -> Diagnosis:
    """What is wrong, best finding first.

    `matches` are those of `playbook.match.scan`. `facts` of None means that only the text is judged,
    `log` of None that there is no text.
    """
    derived = derive(facts) if facts is not None else {}
    by_playbook: dict[str, list[TextMatch]] = {}
    for match in matches:
        by_playbook.setdefault(match.playbook, []).append(match)
    candidates = (_finding(loaded.playbook, by_playbook.get(loaded.playbook.id, []), derived) for loaded in playbooks)
    findings = _ranked([finding for finding in candidates if finding is not None])
    verdict, reason = _verdict(findings, facts, log)
    if verdict == "not-an-env-problem":
        findings = ()
    return Diagnosis(prefix=prefix, facts=facts, verdict=verdict, findings=findings, reason=reason, log=log)


def _finding(playbook: Playbook, matches: Sequence[TextMatch], derived: Derived) -> Finding | None:
    """The finding of `playbook`, None when neither text nor facts speak for it."""
    signatures = {signature.id: signature for signature in playbook.signatures}
    ordered = sorted(matches, key=lambda match: (-signatures[match.signature].confidence, match.line_number))
    best = ordered[0] if ordered else None
    values = _values(playbook, best, derived)
    signature = signatures[best.signature] if best is not None else None
    evaluation = _evaluation(playbook, signature, values)
    if best is None and evaluation.truth is not True:
        return None
    refuted = evaluation.truth is False
    return Finding(
        fault=playbook.fault,
        playbook=playbook.id,
        signature=signature.id if signature is not None else None,
        confidence=_confidence(signature, evaluation),
        confirmed=evaluation.truth,
        summary=_summary(playbook, signature, values),
        evidence=(*_text_evidence(ordered), *_fact_evidence(evaluation, known=bool(derived))),
        fix_kind=(signature.fix_kind if signature is not None else None) or playbook.fix_kind,
        groups=best.groups if best is not None else {},
        alternatives=tuple(_alternative(fill(text, values)) for text in playbook.alternatives),
        rejected=(_rejected(playbook, signature, evaluation),) if refuted and signature is not None else (),
    )


def _evaluation(playbook: Playbook, signature: Signature | None, values: Derived) -> Evaluation:
    """What the facts say. They neither confirm nor refute what is no fault of an environment."""
    if playbook.when is None or (signature is not None and signature.fix_kind == "not-an-env-problem"):
        return Evaluation(None, ())
    return evaluate(playbook.when, values)


def _values(playbook: Playbook, match: TextMatch | None, derived: Derived) -> Derived:
    """Facts, then the groups of the match, then the playbook's variables with both filled in."""
    values: Derived = {**derived, **(match.groups if match is not None else {})}
    return values | {name: fill(text, values) for name, text in playbook.vars.items()}


def _confidence(signature: Signature | None, evaluation: Evaluation) -> float:
    if signature is None:
        return FACTS_ALONE
    if evaluation.truth is True:
        return round(max(FACTS_ALONE, 1 - (1 - signature.confidence) * DOUBT_LEFT_BY_FACTS), 3)
    if evaluation.truth is False:
        return round(signature.confidence * TRUST_LEFT_BY_FACTS, 3)
    return signature.confidence


def _summary(playbook: Playbook, signature: Signature | None, values: Derived) -> str:
    text = signature.summary if signature is not None and signature.summary is not None else playbook.title
    return fill(text, values)


def _text_evidence(matches: Sequence[TextMatch]) -> list[Evidence]:
    lines: dict[int, Evidence] = {}
    for match in matches:
        times = f" ({match.count} lines like it)" if match.count > 1 else ""
        evidence = Evidence(kind="text", where=f"log:{match.line_number}", what=match.line + times)
        lines.setdefault(match.line_number, evidence)
    return list(lines.values())[:_SHOWN_LINES]


def _fact_evidence(evaluation: Evaluation, *, known: bool) -> list[Evidence]:
    """The comparisons that decided. Where no facts were observed at all, there is nothing to say."""
    if not known or evaluation.truth is None:
        return []
    return [
        Evidence(kind="fact", where=leaf.name, what=leaf.text, supports=evaluation.truth)
        for leaf in dict.fromkeys(evaluation.leaves)
    ]


def _alternative(text: str) -> Alternative:
    """The first sentence names the way, the rest says why it is not the first choice."""
    title, _, why_not = text.strip().partition(". ")
    return Alternative(title=title.rstrip("."), why_not=why_not.strip())


def _rejected(playbook: Playbook, signature: Signature, evaluation: Evaluation) -> Rejected:
    reasons = "; ".join(leaf.text for leaf in dict.fromkeys(evaluation.leaves))
    return Rejected(signature=signature.id, fault=playbook.fault, reason=f"facts refute it: {reasons}")


def _ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Refuted last, then roots before the symptoms that they explain, then by confidence.

    What was refuted is also listed in `rejected` of the best finding, where readers look first.
    """
    standing = [finding for finding in findings if finding.confirmed is not False]
    certain = frozenset(finding.fault for finding in standing if finding.confidence >= CERTAIN_ENOUGH)

    def rank(finding: Finding) -> tuple[bool, bool, bool, bool, float]:
        return (
            finding.confirmed is False,
            finding.confidence < CERTAIN_ENOUGH,
            finding.confirmed is not True,
            explained(finding.fault, certain),
            -finding.confidence,
        )

    ordered = sorted(findings, key=rank)
    refuted = tuple(rejected for finding in ordered[1:] for rejected in finding.rejected)
    if ordered and refuted:
        ordered[0] = msgspec.structs.replace(ordered[0], rejected=(*ordered[0].rejected, *refuted))
    return tuple(ordered)


def _verdict(findings: Sequence[Finding], facts: Facts | None, log: str | None) -> tuple[Verdict, str | None]:
    best = findings[0] if findings else None
    if best is not None and best.confidence >= CERTAIN_ENOUGH:
        if best.fix_kind == "not-an-env-problem":
            return "not-an-env-problem", best.summary
        host = best.fault == "gpu-host-fault" or best.fix_kind == "upgrade-driver"
        return ("host" if host else "env"), None
    return _undecided(best, facts, log)


def _undecided(best: Finding | None, facts: Facts | None, log: str | None) -> tuple[Verdict, str | None]:
    """The verdict where no finding is certain enough."""
    if best is not None:
        return "unknown", _doubt(best)
    if log is not None:
        facts_too = ", and the facts confirm no known fault" if facts is not None else ""
        return "unknown", f"no known signature matches the text{facts_too}"
    if facts is None or facts.environment is None:
        return "unknown", "there is neither an error text nor an environment to judge"
    interpreter = facts.environment.interpreter
    if not interpreter.starts:
        return "unknown", f"the environment's Python does not start: {interpreter.error or 'for no stated reason'}"
    return "healthy", None


def _doubt(best: Finding) -> str:
    if best.rejected:
        return f"the text speaks of {best.fault}, but {best.rejected[0].reason}"
    return f"the likeliest fault is {best.fault}, which the text alone does not establish"
