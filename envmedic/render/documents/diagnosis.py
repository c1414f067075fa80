"""A diagnosis: its verdict and its findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from envmedic.model.findings import Diagnosis, Evidence, Finding, Obstacle
from envmedic.render.text import Line, Tone, joined, line, part, shortened

EVIDENCE_LENGTH = 240
VERDICTS = {
    "healthy": "no fault found in this environment",
    "env": "a fault of this environment",
    "host": "a fault of the host: no repair of an environment can help",
    "shell": "a variable or a cache of the shell, to be mended there",
    "not-an-env-problem": "not an environment problem",
    "unknown": "no playbook of envmedic explains this",
}
_SHOWN_CHARACTERS = 120
_CONFIRMED = {True: "confirmed by facts", False: "refuted by facts", None: "facts cannot tell"}
_MARKED: dict[str, tuple[str, Tone]] = {
    "healthy": ("✓ no fault found", "good"),
    "host": ("! fault of the host", "bad"),
    "shell": ("! variable of the shell", "bad"),
    "not-an-env-problem": ("· not the environment", "dim"),
    "unknown": ("? nothing sure", "warn"),
}


def diagnosis_lines(diagnosis: Diagnosis, repair: str = "") -> list[Line]:
    """Verdict first, then each finding with its evidence, then the command that goes on: `repair`, else a plan."""
    tone: Tone = "good" if diagnosis.verdict == "healthy" else "warn" if diagnosis.verdict == "unknown" else "bad"
    lines = [
        joined(part("Verdict", "bold"), "  ", part(diagnosis.verdict, tone), f": {VERDICTS[diagnosis.verdict]}"),
        *([line(f"  {diagnosis.reason}")] if diagnosis.reason else []),
        *(line(f"  {text}") for text in diagnosis.origin),
        *(line(f"  {text}") for text in diagnosis.advice),
        *(
            line(f"  besides, no fault: {item.reason} ({item.text.strip()[:_SHOWN_CHARACTERS]})")
            for item in diagnosis.also
        ),
        *_coverage(diagnosis),
        *(line(f"  the project differs: {text}", "warn") for text in diagnosis.differs),
    ]
    for number, finding in enumerate(diagnosis.findings, start=1):
        lines += [line(""), *_finding_lines(number, finding)]
    environment = diagnosis.facts.environment if diagnosis.facts else None
    # every repair is proven by checks that the environment's own Python runs
    python = environment.interpreter if environment is not None else None
    if python is not None and diagnosis.findings and not python.starts and python.replacement is None:
        reason = python.error or "for no stated reason"
        return [
            *lines,
            line(""),
            line(f"Its Python does not start: {reason}"),
            line("Nothing can be repaired before it does."),
        ]
    in_the_way = obstacle_lines(diagnosis.obstacles)
    return [*lines, *([line("")] if in_the_way else []), *in_the_way, *_next(diagnosis, repair)]


def obstacle_lines(obstacles: Iterable[Obstacle]) -> list[Line]:
    """What is in the way of a repair, with what to do about it."""
    return [row for item in obstacles for row in (line(f"! {item.text}", "warn"), line(f"  {item.hint}"))]


def _coverage(diagnosis: Diagnosis) -> list[Line]:
    """What a clean bill of health rests on, and what it says nothing about."""
    if diagnosis.verdict != "healthy":
        return []
    return [
        line(f"  looked at: {'; '.join(diagnosis.examined)}"),
        line(f"  not looked at: {'; '.join(diagnosis.unexamined)}"),
    ]


def _next(diagnosis: Diagnosis, repair: str) -> list[Line]:
    """The next command, or the question whether this is the right environment."""
    best = diagnosis.findings[0] if diagnosis.findings else None
    # facts refute what the text says: most likely the text is from another environment
    if best is not None and best.confirmed is False and diagnosis.prefix and diagnosis.log:
        question = f"Is {diagnosis.prefix} the environment that the program ran in? -p names another one"
        return [line(""), line(question)]
    if best is None or best.playbook is None or diagnosis.verdict != "env":
        return []
    # a plan of advice alone would only repeat what stands above
    if best.advice and not best.latent:
        return []
    target = ["-p", diagnosis.prefix] if diagnosis.prefix else []
    plan = shlex.join(["envmedic", "plan", "--playbook", best.playbook, *target])
    return [line(""), line(f"Next: {repair or plan}")]


def _finding_lines(number: int, finding: Finding) -> list[Line]:
    playbook = f", playbook {finding.playbook}" if finding.playbook else ""
    return [
        joined(f"{number}. ", part(finding.fault, "accent"), f"  {finding.summary}"),
        line(f"   {certainty(finding)}{playbook}"),
        *(evidence_line(item, "   ", EVIDENCE_LENGTH) for item in finding.evidence),
        *(line(f"   {text}") for text in finding.advice),
        *(line(f"   from it follows: {item.fault}  {item.summary}") for item in finding.consequences),
        *(line(f"   or: {item.title}. {item.why_not}".rstrip()) for item in finding.alternatives),
        *(line(f"   rejected: {item.fault} ({item.signature}): {item.reason}") for item in finding.rejected),
    ]


def certainty(finding: Finding) -> str:
    """The confidence of a finding, and whether facts confirm it."""
    return f"{finding.confidence:.0%} sure, {_CONFIRMED[finding.confirmed]}"


def evidence_line(evidence: Evidence, indent: str, length: int | None = None) -> Line:
    """Source and content, cut to `length` characters. Of a fact, whose name only authors of playbooks know, the content."""
    mark = part(f"{indent}+ ", "good") if evidence.supports else part(f"{indent}- ", "bad")
    what = evidence.what if length is None else shortened(evidence.what, length)
    if evidence.kind == "fact":
        return joined(mark, what)
    return joined(mark, part(f"{evidence.where}  ", "dim"), what)


def verdict_of(diagnosis: Diagnosis) -> tuple[str, Tone]:
    """The verdict in a few words with a mark; of faults the first."""
    if diagnosis.verdict != "env":
        return _MARKED[diagnosis.verdict]
    first, *others = diagnosis.findings
    more = f" +{len(others)}" if others else ""
    if first.latent:  # the list begins with what a program has failed by
        return f"! {first.fault}{more}", "warn"
    return (f"✗ {first.fault}{more}", "bad") if first.confirmed else (f"? {first.fault}{more}", "warn")
