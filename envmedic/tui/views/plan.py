"""A plan as a page, in the words of ``envmedic plan``."""

from __future__ import annotations

from envmedic.cli.render.diagnosis import diagnosis_lines
from envmedic.cli.render.plan import plan_lines
from envmedic.errors import EnvmedicError
from envmedic.model.findings import Diagnosis
from envmedic.model.plan import Plan
from envmedic.tui.text import COLOURED, Line, line, rendered
from envmedic.tui.views.errors import error_view

UNTOUCHED = "Nothing has been changed yet."


def plan_page(plan: Plan) -> list[Line]:
    """All that it will do, and that nothing is done."""
    return [line(UNTOUCHED, "good"), line(""), *rendered(plan_lines(plan, COLOURED))]


def no_plan_page(reason: EnvmedicError | Diagnosis) -> list[Line]:
    """Why there is none."""
    if isinstance(reason, Diagnosis):
        return [line("There is nothing to repair.", "good"), line(""), *rendered(diagnosis_lines(reason, COLOURED))]
    return [line("There is no plan for this. Nothing has been changed.", "bold"), line(""), *error_view(reason)]
