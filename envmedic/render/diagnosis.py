"""A diagnosis as text."""

from __future__ import annotations

import shlex

from envmedic.model.findings import Diagnosis, Evidence, Finding
from envmedic.render.style import Style, Tone, plain, shortened

EVIDENCE_LENGTH = 240
VERDICTS = {
    "healthy": "no fault found in this environment",
    "env": "a fault of this environment",
    "host": "a fault of the host: no repair of an environment can help",
    "not-an-env-problem": "not an environment problem",
    "unknown": "no playbook of envmedic explains this",
}
CONFIRMED = {True: "confirmed by facts", False: "refuted by facts", None: "facts cannot tell"}


def diagnosis_lines(diagnosis: Diagnosis, style: Style) -> list[str]:
    """Verdict first, then each finding with its evidence."""
    tone: Tone = "good" if diagnosis.verdict == "healthy" else "warn" if diagnosis.verdict == "unknown" else "bad"
    lines = [f"{style('Verdict', 'bold')}  {style(diagnosis.verdict, tone)}: {VERDICTS[diagnosis.verdict]}"]
    if diagnosis.reason:
        lines.append(f"  {plain(diagnosis.reason)}")
    lines += [f"  {plain(text)}" for text in diagnosis.advice]
    for number, finding in enumerate(diagnosis.findings, start=1):
        lines += ["", *_finding_lines(number, finding, style)]
    dead = _dead_python(diagnosis)
    if dead:
        return [*lines, "", f"Its Python does not start: {plain(dead)}", "Nothing can be repaired before it does."]
    return lines + _next(diagnosis)


def _dead_python(diagnosis: Diagnosis) -> str | None:
    """Why the environment's Python does not start; None when it does, or was not looked at."""
    environment = diagnosis.facts.environment if diagnosis.facts else None
    if environment is None or environment.interpreter.starts or not diagnosis.findings:
        return None
    return environment.interpreter.error or "for no stated reason"


def _next(diagnosis: Diagnosis) -> list[str]:
    best = diagnosis.findings[0] if diagnosis.findings else None
    if best is not None and best.confirmed is False and diagnosis.prefix and diagnosis.log:
        return ["", f"Is {plain(diagnosis.prefix)} the environment that the program ran in? -p names another one"]
    if best is None or best.playbook is None or diagnosis.verdict != "env":
        return []
    target = ["-p", diagnosis.prefix] if diagnosis.prefix else []
    return ["", "Next: " + shlex.join(["envmedic", "plan", "--playbook", best.playbook, *target])]


def _finding_lines(number: int, finding: Finding, style: Style) -> list[str]:
    head = f"{number}. {style(finding.fault, 'accent')}  {plain(finding.summary)}"
    lines = [head, f"   {finding.confidence:.0%} sure, {CONFIRMED[finding.confirmed]}"]
    if finding.playbook:
        lines[-1] += f", playbook {finding.playbook}"
    lines += [f"   {_evidence_line(item, style)}" for item in finding.evidence]
    lines += [plain(f"   or: {item.title}. {item.why_not}".rstrip()) for item in finding.alternatives]
    lines += [plain(f"   rejected: {item.fault} ({item.signature}): {item.reason}") for item in finding.rejected]
    return lines


def _evidence_line(evidence: Evidence, style: Style) -> str:
    """Where and what; a fact whose sentence names it already is not named again."""
    mark = "+" if evidence.supports else "-"
    what = shortened(evidence.what, EVIDENCE_LENGTH)
    if evidence.what.startswith(f"{evidence.where} "):
        return f"{mark} {what}"
    return f"{mark} {style(plain(evidence.where), 'dim')}  {what}"
