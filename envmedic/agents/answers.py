"""Answers of the server: the parts of envmedic's documents that an agent decides by. Pure.

The whole documents have thousands of lines of facts, which would fill an agent's context; `envmedic … --json` has them.
"""

from __future__ import annotations

from typing_extensions import TypedDict

from envmedic.errors import EnvmedicError
from envmedic.model.answers.compatibility import Compatibility
from envmedic.model.answers.guard import Guard
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.plan import Change, Plan
from envmedic.model.record import Record
from envmedic.render.documents.diagnosis import headline, sureness
from envmedic.render.documents.errors import error_lines
from envmedic.render.documents.plan import plan_lines
from envmedic.render.text import bare, shortened

MOST_FINDINGS = 3
MOST_EVIDENCE = 3
MOST_CHANGES = 40
MOST_LINES = 60
LONGEST_LINE = 300


class FindingAnswer(TypedDict):
    """A fault, with what speaks for it."""

    fault: str
    summary: str
    certainty: str
    evidence: list[str]
    playbook: str | None
    advice: list[str]


class DiagnosisAnswer(TypedDict):
    """What is wrong, best finding first."""

    verdict: str
    meaning: str
    reason: str | None
    findings: list[FindingAnswer]
    advice: list[str]
    repairable: bool


class PlanAnswer(TypedDict):
    """An exact repair that was not carried out."""

    plan: str
    text: str
    changes: list[str]
    download_bytes: int
    obstacles: list[str]


class RecordAnswer(TypedDict):
    """What a transaction did."""

    transaction: str
    outcome: str
    environment: str
    gpu: str
    changes: list[str]
    left: list[str]
    error: str | None
    notes: list[str]


class CheckAnswer(TypedDict):
    """Whether requirements would work, and what they would change."""

    verdict: str
    summary: str
    changes: list[str]
    breaks: list[str]
    reasons: list[str]


class GuardAnswer(TypedDict):
    """What an installer's command would do."""

    verdict: str
    summary: str
    changes: list[str]
    harms: list[str]


def of_diagnosis(found: Diagnosis) -> DiagnosisAnswer:
    """The verdict with its best findings."""
    best = found.findings[0] if found.findings else None
    return {
        "verdict": found.verdict,
        "meaning": headline(found)[2],
        "reason": found.reason,
        "findings": [_finding(item) for item in found.findings[:MOST_FINDINGS]],
        "advice": [*found.advice, *(item.text for item in found.obstacles)],
        "repairable": found.verdict == "env" and best is not None and best.playbook is not None,
    }


def _finding(item: Finding) -> FindingAnswer:
    supporting = [one for one in item.evidence if one.supports]
    return {
        "fault": item.fault,
        "summary": item.summary,
        "certainty": sureness(item),
        "evidence": [shortened(one.told, LONGEST_LINE) for one in supporting[:MOST_EVIDENCE]],
        "playbook": item.playbook,
        "advice": list(item.advice),
    }


def of_plan(made: Plan) -> PlanAnswer:
    """The id by which `apply` knows the plan, with everything that it would do."""
    return {
        "plan": made.id[:12],
        "text": plan_text(made),
        "changes": _changes(made.changes),
        "download_bytes": made.download_bytes,
        "obstacles": [f"{item.text} ({item.hint})" for item in made.obstacles],
    }


def plan_text(made: Plan) -> str:
    """The plan as people read it, without the ways that were not chosen."""
    lines = [shortened(bare(row), LONGEST_LINE) for row in plan_lines(made, alternatives=False)]
    more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *more])


def of_record(record: Record) -> RecordAnswer:
    """The end of a transaction."""
    return {
        "transaction": record.transaction,
        "outcome": record.outcome or record.state,
        "environment": record.environment,
        "gpu": record.gpu + (f" ({record.gpu_reason})" if record.gpu_reason else ""),
        "changes": _changes(record.plan.changes) if record.environment != "unchanged" else [],
        "left": [item.summary for item in record.left],
        "error": record.error,
        "notes": list(record.notes),
    }


def of_check(found: Compatibility) -> CheckAnswer:
    """The answer with its reasons."""
    return {
        "verdict": found.verdict,
        "summary": found.summary,
        "changes": _changes(found.changes),
        "breaks": list(found.breaks),
        "reasons": [shortened(item.text, LONGEST_LINE) for item in found.considerations],
    }


def of_guard(found: Guard) -> GuardAnswer:
    """The answer with the harms."""
    return {
        "verdict": found.verdict,
        "summary": found.summary,
        "changes": _changes(found.changes),
        "harms": [item.text for item in found.harms],
    }


def of_error(error: EnvmedicError) -> str:
    """What happened, the cause, what to do, and that the environment is unchanged."""
    return "\n".join(bare(row) for row in error_lines(error))


def _changes(changes: tuple[Change, ...]) -> list[str]:
    rows = [f"{item.name} {item.before or '-'} -> {item.after or '-'}" for item in changes]
    more = [f"and {len(rows) - MOST_CHANGES} more"] if len(rows) > MOST_CHANGES else []
    return [*rows[:MOST_CHANGES], *more]
