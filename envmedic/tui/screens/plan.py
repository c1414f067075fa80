"""A plan, before anything is changed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from envmedic.errors import EnvmedicError
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.plan import Plan
from envmedic.tui.command_lines import apply_line, plan_line
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.session import Session
from envmedic.tui.text import line, visible
from envmedic.tui.views.plan import no_plan_page, plan_page
from envmedic.tui.widgets.lines import LineView


class PlanScreen(BaseScreen):
    """The plan that repairs one finding."""

    TITLE_TEXT = "Plan"
    HELP = (
        "What a repair would do: what is removed, installed and changed, the exact commands, and the checks that "
        "decide. Nothing has been changed. y copies the command line that carries it out."
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "again", "Plan again", show=False)]
    DEFAULT_CSS = "PlanScreen #page { height: 1fr; padding: 0 1; }"

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding
        self._wish = self.session.wish(finding)
        self._made: Plan | None = None

    def body(self) -> ComposeResult:
        """One page."""
        yield LineView([line("… making the plan", "dim")], id="page", about=self.HELP)

    def on_mount(self) -> None:
        """Make it; that changes nothing."""
        super().on_mount()
        self.query_one(LineView).focus()
        self.action_again()

    def action_again(self) -> None:
        """Make the plan anew."""
        self._made = None
        self.envmedic.effects.plan(self._wish, self._planned, self._failed)

    def _planned(self, made: Plan | Diagnosis) -> None:
        self._made = made if isinstance(made, Plan) else None
        if self.is_mounted:
            self._edges(self.session)
            page = plan_page(made) if isinstance(made, Plan) else no_plan_page(made)
            self.query_one(LineView).show(page, home=True)

    def _failed(self, error: EnvmedicError) -> None:
        if self.is_mounted:
            self.query_one(LineView).show(no_plan_page(error), home=True)

    def refresh_from(self, session: Session) -> None:
        """The plan stands by itself."""

    def about(self, session: Session) -> str:
        """For what, and where."""
        return visible(f"{self.finding.fault} in {session.chosen}")

    def line(self, session: Session) -> str:
        """What carries it out; until there is one, what makes it."""
        if self._made is None:
            return plan_line(session, self._wish)
        return apply_line(session, self._made, self._wish)

    def searched(self) -> Searchable | None:
        """The page."""
        return self.query_one(LineView)
