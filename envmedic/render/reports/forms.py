"""The forms of a report by name. Pure."""

from __future__ import annotations

from collections.abc import Callable

from envmedic.model.answers.report import Report, ReportForm
from envmedic.render.reports.card import card
from envmedic.render.reports.markdown import markdown
from envmedic.render.reports.page import page

TEXTS: dict[ReportForm, Callable[[Report], str]] = {"markdown": markdown, "svg": card, "html": page}
