"""A finding as a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from envmedic.model.answers.explanation import Explanation
from envmedic.model.findings import Alternative, Evidence, Finding
from envmedic.render.diagnosis import CONFIRMED
from envmedic.render.explanation import UNWRAPPED, explanation_lines
from envmedic.tui.text import COLOURED, Line, TextPart, Tone, end, line, marked, padded, rendered, visible
from envmedic.tui.views.findings import finding_item

AROUND = 2
"""Lines shown before and after one that matches."""
_WHERE = re.compile(r":(?P<line>\d+)$")


def line_number(evidence: Evidence) -> int | None:
    """The line of the text that it was seen in, from 1; None for a fact."""
    found = _WHERE.search(evidence.where) if evidence.kind == "text" else None
    return int(found["line"]) if found else None


def finding_page(finding: Finding, excerpt: Mapping[int, str], page: Explanation | None) -> list[Line]:
    """What is wrong, what says so, what was considered besides, and the page on it in plain words.

    `excerpt` has lines of the text by number, as far as they are at hand.
    """
    texts = [item for item in finding.evidence if item.kind == "text"]
    facts = [item for item in finding.evidence if item.kind == "fact"]
    return [
        line(finding.summary, "bold"),
        _head(finding),
        *_part("In the text", _passages(texts, excerpt, finding)),
        *_part("Facts", [_fact(item) for item in facts]),
        *_part("Other ways to repair it", (line(_titled(item.title, item.why_not)) for item in finding.alternatives)),
        *_part(
            "Considered and rejected", (_rejected(item.fault, item.signature, item.reason) for item in finding.rejected)
        ),
        *_page(page),
    ]


def _head(finding: Finding) -> Line:
    tone: Tone = "bad" if finding.confirmed else "dim" if finding.confirmed is False else "warn"
    playbook = f", playbook {finding.playbook}" if finding.playbook else ", no playbook repairs it"
    sure = f"  {finding.confidence:.0%} sure, {CONFIRMED[finding.confirmed]}{playbook}"
    return (TextPart(finding.fault, tone), TextPart(sure))


def _part(title: str, lines: Iterable[Line]) -> list[Line]:
    shown = list(lines)
    return [line(""), line(title, "accent"), *shown] if shown else []


def _passages(texts: Sequence[Evidence], excerpt: Mapping[int, str], finding: Finding) -> list[Line]:
    """The lines that match, marked, each with those around it."""
    hits = {number: item for item in texts if (number := line_number(item)) is not None}
    wanted = sorted({at for number in hits for at in range(number - AROUND, number + AROUND + 1)})
    lines: list[Line] = []
    before = None
    cells = len(str(max(wanted, default=1)))
    for number in wanted:
        if number in hits or number in excerpt:
            if before is not None and number > before + 1:
                lines.append(line("  ⋮", "dim"))
            lines.append(_numbered(number, excerpt.get(number), hits.get(number), finding, cells))
            before = number
    return lines + [_fact(item) for item in texts if line_number(item) is None]


def _numbered(number: int, text: str | None, hit: Evidence | None, finding: Finding, cells: int) -> Line:
    label = padded(str(number), cells)
    if hit is None:
        return (TextPart(f"  {label}  ", "dim"), TextPart(visible(text or ""), "dim"))
    what = visible(text if text is not None else hit.what)
    shown: Line = (TextPart(what, "bold"),)
    for group in sorted(finding.groups.values(), key=len, reverse=True)[:1]:
        shown = marked(shown, visible(group))
    return (TextPart(f"> {label}  ", "accent"), *shown)


def _fact(evidence: Evidence) -> Line:
    mark = TextPart("  + ", "good") if evidence.supports else TextPart("  - ", "bad")
    if evidence.what.startswith(f"{evidence.where} "):
        return (mark, TextPart(visible(evidence.what)))
    return (mark, TextPart(f"{visible(evidence.where)}  ", "dim"), TextPart(visible(evidence.what)))


def _titled(title: str, why_not: str) -> str:
    return f"  - {title}. {why_not}".rstrip()


def _rejected(fault: str, signature: str, reason: str) -> Line:
    return (TextPart("  - "), TextPart(fault, "bold"), TextPart(f" ({signature}): {visible(reason)}"))


def _page(page: Explanation | None) -> list[Line]:
    if page is None:
        return []
    return [line(""), *rendered(explanation_lines(page, COLOURED, width=UNWRAPPED))]


def instead_item(item: Finding | Alternative, cells: int) -> list[Line]:
    """Another finding, or another way to repair this one, which envmedic does not take."""
    if isinstance(item, Finding):
        return finding_item(item, cells)
    return [
        (TextPart("✗ ", "bad"), TextPart(end(visible(item.title), cells - 2), "dim")),
        (TextPart("  " + end(visible(item.why_not), cells - 2), "dim"),),
    ]


def instead_key(item: Finding | Alternative) -> str:
    """What tells it from the others."""
    return f"{item.fault}/{item.playbook}/{item.signature}" if isinstance(item, Finding) else item.title
