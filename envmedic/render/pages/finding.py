"""A finding as a page, and findings as items of a list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from envmedic.model.answers.explanation import Explanation
from envmedic.model.facts import Environment
from envmedic.model.findings import Alternative, Evidence, Finding
from envmedic.render.cells import end, marked, padded
from envmedic.render.documents.diagnosis import evidence_line, mark_of, seen_facts, sureness
from envmedic.render.documents.disagreement import disagreement_lines
from envmedic.render.documents.explanation import UNWRAPPED, explanation_lines
from envmedic.render.text import Line, TextPart, joined, line, part, section, visible

AROUND = 2
"""Lines shown before and after one that matches."""
_WHERE = re.compile(r":(?P<line>\d+)$")


def finding_item(finding: Finding, cells: int) -> list[Line]:
    """Two lines: the fault and how sure it is, and its summary."""
    mark, tone = mark_of(finding)
    head = f"{mark} {finding.fault}  "
    sure = end(sureness(finding), max(cells - len(head), 4))
    return [
        (TextPart(head, tone), TextPart(sure, "dim")),
        (TextPart("  " + end(visible(finding.summary), max(cells - 2, 4))),),
    ]


def instead_item(item: Finding | Alternative, cells: int) -> list[Line]:
    """Another finding, or another way to repair this one, which envmedic does not take."""
    if isinstance(item, Finding):
        return finding_item(item, cells)
    return way_item(item.title, item.why_not, cells, feasible=False)


def way_item(title: str, why_not: str, cells: int, *, feasible: bool) -> list[Line]:
    """Two lines: another way, and why it was not chosen; one that is not feasible is marked."""
    return [
        (
            TextPart("  ") if feasible else TextPart("✗ ", "bad"),
            TextPart(end(visible(title), cells - 2), "bold" if feasible else "dim"),
        ),
        (TextPart("  " + end(visible(why_not), cells - 2), "dim"),),
    ]


def instead_key(item: Finding | Alternative) -> str:
    """A name that no other item of the list has."""
    return f"{item.fault}/{item.playbook}/{item.signature}" if isinstance(item, Finding) else item.title


def line_number(evidence: Evidence) -> int | None:
    """The line of the text that the evidence is from, from 1; None for a fact."""
    found = _WHERE.search(evidence.where) if evidence.kind == "text" else None
    return int(found["line"]) if found else None


def finding_page(
    finding: Finding, excerpt: Mapping[int, str], page: Explanation | None, environment: Environment | None
) -> list[Line]:
    """The fault in plain words, who disagrees with whom, the evidence, rejected causes, and the whole page on it.

    `excerpt` has the known lines of the text by number, `environment` the facts that a picture is made of.
    """
    texts = [item for item in finding.evidence if item.kind == "text"]
    facts = [evidence_line(item, "  ") for item in seen_facts(finding)]
    follows = [joined("  - ", part(item.fault, "bold"), f"  {item.summary}") for item in finding.consequences]
    ways = [line(f"  - {item.title}. {item.why_not}".rstrip()) for item in finding.alternatives]
    rejected = [
        joined("  - ", part(item.fault, "bold"), f" ({item.signature}): {item.reason}") for item in finding.rejected
    ]
    playbook = f", playbook {finding.playbook}" if finding.playbook else ", no playbook repairs it"
    return [
        line(finding.summary, "bold"),
        joined(part(finding.fault, mark_of(finding)[1]), f"  {sureness(finding)}{playbook}"),
        *([line(""), line(page.what)] if page is not None else []),
        *section("Who disagrees", [(TextPart("  "), *row) for row in disagreement_lines(environment)], "accent"),
        *section("In the text", _passages(texts, excerpt, finding), "accent"),
        *section("Facts", facts, "accent"),
        *section("What follows from it", follows, "accent"),
        *section("Other ways to repair it", ways, "accent"),
        *section("Considered and rejected", rejected, "accent"),
        *([line(""), *_rest_of(page)] if page is not None else []),
    ]


def _rest_of(page: Explanation) -> list[Line]:
    """The page without what stands above it."""
    return explanation_lines(replace(page, what="", alternatives=()), width=UNWRAPPED)


def _passages(texts: Sequence[Evidence], excerpt: Mapping[int, str], finding: Finding) -> list[Line]:
    """The lines that match, marked, each with those around it."""
    hits = {number: item for item in texts if (number := line_number(item)) is not None}
    wanted = sorted({at for number in hits for at in range(number - AROUND, number + AROUND + 1)})
    lines: list[Line] = []
    before = None
    cells = len(str(max(wanted, default=1)))
    for number in wanted:
        # the excerpt arrives after the first drawing, and ends where the text ends
        if number in hits or number in excerpt:
            if before is not None and number > before + 1:
                lines.append(line("  ⋮", "dim"))
            lines.append(_numbered(padded(str(number), cells), excerpt.get(number), hits.get(number), finding))
            before = number
    return lines + [evidence_line(item, "  ") for item in texts if line_number(item) is None]


def _numbered(label: str, text: str | None, hit: Evidence | None, finding: Finding) -> Line:
    if hit is None:
        return (TextPart(f"  {label}  ", "dim"), part(text or "", "dim"))
    shown = line(text if text is not None else hit.what, "bold")
    # the longest group, such as a symbol, identifies the fault best
    for group in sorted(finding.groups.values(), key=len, reverse=True)[:1]:
        shown = marked(shown, visible(group))
    return (TextPart(f"> {label}  ", "accent"), *shown)
