"""Findings as items of a list."""

from __future__ import annotations

from envmedic.model.findings import Diagnosis, Finding
from envmedic.render.diagnosis import CONFIRMED, VERDICTS
from envmedic.tui.session import AppState
from envmedic.tui.text import Line, TextPart, Tone, end, line, visible
from envmedic.tui.views.environments import verdict_of

_MARKS = {True: "✗", False: "-", None: "?"}


def finding_item(finding: Finding, cells: int) -> list[Line]:
    """Two lines: the fault and how sure it is, and what is wrong."""
    sure = f"{finding.confidence:.0%} sure, {CONFIRMED[finding.confirmed]}"
    tone: Tone = "dim" if finding.confirmed is False else "bad" if finding.confirmed else "warn"
    head = f"{_MARKS[finding.confirmed]} {finding.fault}  "
    return [
        (TextPart(head, tone), TextPart(end(sure, max(cells - len(head), 4)), "dim")),
        (TextPart("  " + end(visible(finding.summary), max(cells - 2, 4))),),
    ]


def verdict_lines(session: AppState) -> list[Line]:
    """What is known of what is at hand: by what, the verdict, and the reason."""
    diagnosis = session.diagnosis
    lines = [*_repair(session), *_source(session)]
    if diagnosis is None:
        current = session.current
        waiting = current is not None and current.phase in {"waiting", "reading"}
        return [*lines, line("… waiting for the facts", "dim")] if waiting or session.searching else lines
    word, tone = verdict_of(diagnosis)
    told = "" if diagnosis.verdict == "healthy" else f"  {VERDICTS[diagnosis.verdict]}"  # its word says it already
    lines.append((TextPart(word, tone), TextPart(told)))
    return lines + [line(text) for text in _reasons(diagnosis)]


def _repair(session: AppState) -> list[Line]:
    """That a repair runs, wherever one is on the screens meanwhile."""
    repair = session.repair
    if repair is None or not repair.running:
        return []
    if repair.asked is not None:
        return [line("? the repair waits for your answer: g", "warn")]
    return [line("▸ a repair runs: g shows it", "accent")]


def _source(session: AppState) -> list[Line]:
    source = session.source
    if source is None:
        return []
    told = {"paste": "by the pasted text", "log": f"by {source.name}", "command": f"by running {source.name}"}
    joined = source.joined is not None and source.prefix == session.chosen
    return [line(f"{told[source.kind]}, {'with the facts' if joined else 'alone so far'}", "dim")]


def _reasons(diagnosis: Diagnosis) -> list[str]:
    return [*([diagnosis.reason] if diagnosis.reason else []), *diagnosis.advice]
