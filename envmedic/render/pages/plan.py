"""A plan as a page, in the words of ``envmedic plan``."""

from __future__ import annotations

from envmedic.errors import EnvmedicError
from envmedic.model.findings import Diagnosis
from envmedic.model.plan import Plan, PlanAlternative
from envmedic.model.ports import Means
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.documents.plan import plan_lines
from envmedic.render.pages.error import error_page
from envmedic.render.pages.finding import way_item
from envmedic.render.pages.starting import means_lines
from envmedic.render.text import Line, TextPart, line, part

SHOWN_WAYS = 4
UNTOUCHED = "Nothing has been changed yet."


def plan_page(plan: Plan, means: Means | EnvmedicError | None = None, *, detail: bool = False) -> list[Line]:
    """The plan, how it would be carried out here, and that nothing is done yet; `detail` has the commands."""
    return [
        line(UNTOUCHED, "good"),
        line(""),
        *plan_lines(plan, alternatives=False, detail=detail, unfolds="d shows the commands"),
        line(""),
        line("How, on this machine", "bold"),
        *means_lines(means),
        *_others(plan),
    ]


def _others(plan: Plan) -> list[Line]:
    """The best few other ways; the panel behind a key lists all."""
    if not plan.alternatives:
        return []
    ways = sorted(plan.alternatives, key=lambda item: not item.feasible)
    lines = [line(""), (TextPart("Other ways", "bold"), TextPart("  a shows all, and takes another", "dim"))]
    for item in ways[:SHOWN_WAYS]:
        mark = TextPart("  - ") if item.feasible else TextPart("  ✗ ", "bad")
        lines.append((mark, part(item.title), part(f": {item.why_not}", "dim")))
    more = len(ways) - SHOWN_WAYS
    return lines + ([line(f"  and {more} more", "dim")] if more > 0 else [])


def no_plan_page(reason: EnvmedicError | Diagnosis) -> list[Line]:
    """The reason why there is no plan."""
    if isinstance(reason, Diagnosis):
        return [line("There is nothing to repair.", "good"), line(""), *diagnosis_lines(reason)]
    return [line("There is no plan for this. Nothing has been changed.", "bold"), line(""), *error_page(reason)]


def alternative_item(item: PlanAlternative, cells: int) -> list[Line]:
    """Two lines: the alternative, and why it was not chosen; one that is not feasible is marked."""
    return way_item(item.title, item.why_not, cells, feasible=item.feasible)
