"""A finding: what it is, what says so, and the way to its repair."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from envmedic.model.answers.explanation import Explanation
from envmedic.model.findings import Alternative, Finding
from envmedic.render.pages.finding import AROUND, finding_page, instead_item, instead_key, line_number
from envmedic.render.text import visible
from envmedic.tui.command_lines import plan_line
from envmedic.tui.panels.choosing import ChoicePanel
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.session import AppState
from envmedic.tui.widgets.lines import LineView


class FindingScreen(BaseScreen):
    """One finding of the current diagnosis."""

    TITLE_TEXT = "Finding"
    HELP = (
        "What is wrong. Lines of the text that match are marked with >, facts that confirm with +, facts against it "
        "with -. Enter goes to the plan of its repair, which changes nothing yet; a shows what else it may be."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "plan", "Plan"),
        Binding("p", "plan", "Plan", show=False),
        Binding("a", "alternatives", "Other findings"),
    ]
    DEFAULT_CSS = "FindingScreen #page { height: 1fr; padding: 0 1; }"

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding
        self._excerpt: dict[int, str] = {}
        self._page: Explanation | None = None

    def body(self) -> ComposeResult:
        """One page."""
        yield LineView(id="page", about=self.HELP)

    def on_mount(self) -> None:
        """Fetch the lines around each match, and the page on the fault."""
        super().on_mount()
        numbers = filter(None, map(line_number, self.finding.evidence))
        effects = self.envmedic.effects
        effects.excerpt({at for number in numbers for at in range(number - AROUND, number + AROUND + 1)}, self._quoted)
        # A finding without a playbook has the page of its class of fault.
        effects.explain(self.finding.playbook or self.finding.fault, self._explained)
        self.query_one(LineView).focus()

    def _quoted(self, excerpt: dict[int, str]) -> None:
        self._excerpt = excerpt
        self._show()

    def _explained(self, page: Explanation) -> None:
        self._page = page
        self._show()

    def _show(self) -> None:
        if self.standing:
            facts = self.session.diagnosis.facts if self.session.diagnosis is not None else None
            known = facts or (self.session.current.facts if self.session.current is not None else None)
            environment = known.environment if known is not None else None
            self.query_one(LineView).show(finding_page(self.finding, self._excerpt, self._page, environment))

    def refresh_from(self, session: AppState) -> None:
        """The page is about the finding, whatever else changes."""
        del session
        self._show()

    def about(self, session: AppState) -> str:
        """The fault and the environment."""
        return visible(f"{self.finding.fault} in {session.chosen}" if session.chosen else self.finding.fault)

    def line(self, session: AppState) -> str:
        """The command that makes the plan."""
        return plan_line(session, session.wish(self.finding)) if self.finding.playbook and session.chosen else ""

    def searched(self) -> Searchable | None:
        """The page."""
        return self.query_one(LineView)

    def action_plan(self) -> None:
        """Go on to the plan."""
        self.envmedic.open_plan(self.finding)

    def action_alternatives(self) -> None:
        """Offer the other findings, to read instead of this one, and list other ways to repair it."""
        others = [item for item in self.session.findings if item != self.finding]
        panel: ChoicePanel[Finding | Alternative] = ChoicePanel(
            "Instead", (*others, *self.finding.alternatives), instead_item, instead_key, _can
        )
        self.app.push_screen(panel, self._instead)

    def _instead(self, chosen: Finding | Alternative | None) -> None:
        if isinstance(chosen, Finding):
            # replaced, not pushed: Escape goes home from each finding
            self.app.switch_screen(FindingScreen(chosen))


def _can(item: Finding | Alternative) -> bool:
    return isinstance(item, Finding)
