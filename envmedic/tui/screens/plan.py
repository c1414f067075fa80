"""A plan, before anything is changed, and the way to its repair."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from envmedic.errors import EnvmedicError, PreflightError
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.plan import Plan, PlanAlternative
from envmedic.model.ports import ApplyOptions, Means
from envmedic.model.registries.modes import AllowName
from envmedic.render.pages.plan import alternative_item, no_plan_page, plan_page
from envmedic.render.pages.starting import protected_lines, protection
from envmedic.render.text import line, visible
from envmedic.tui.command_lines import apply_line, plan_line
from envmedic.tui.panels.choosing import ChoicePanel
from envmedic.tui.panels.starting import Start, StartPanel
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.session import AppState
from envmedic.tui.widgets.lines import LineView

if TYPE_CHECKING:
    from envmedic.api.repair import Prepared

BEST: Final = PlanAlternative(title="The best way", why_not="what envmedic takes by itself")


class PlanScreen(BaseScreen):
    """The plan that repairs one finding."""

    TITLE_TEXT = "Plan"
    HELP = (
        "What a repair would do: what is removed, installed and changed, the exact commands, and the checks that "
        "decide. Nothing has been changed. Enter asks for the go-ahead and repairs a copy of the environment; a chooses "
        "another way; y copies the command line that does the same."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "repair", "Repair"),
        Binding("a", "alternatives", "Other ways"),
        Binding("d", "detail", "Commands"),
        Binding("r", "again", "Plan again", show=False),
    ]
    DEFAULT_CSS = "PlanScreen #page { height: 1fr; padding: 0 1; }"

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding
        self._wish = self.session.wish(finding)
        self._prepared: Prepared | None = None
        self._means: Means | EnvmedicError | None = None
        self._ways: tuple[PlanAlternative, ...] = ()
        """Alternatives of the last plan that could be made."""
        self._used = False
        """Whether the plan was carried out, which works once."""
        self._allowed: tuple[AllowName, ...] = ()
        """Protections that the user has lifted here."""

    @property
    def _made(self) -> Plan | None:
        return self._prepared.plan if self._prepared is not None else None

    @property
    def _options(self) -> ApplyOptions:
        """The apply options, with the protections that were lifted here."""
        return _allowing(self.session.options, *self._allowed)

    def body(self) -> ComposeResult:
        """One page."""
        yield LineView([line("… making the plan", "dim")], id="page", about=self.HELP)

    def on_mount(self) -> None:
        """Make it; that changes nothing."""
        super().on_mount()
        self.query_one(LineView).focus()
        self.action_again()

    def on_screen_resume(self) -> None:
        """Make a used plan again, since its repair may have changed the environment."""
        super().on_screen_resume()
        repair = self.session.repair
        if self._used and (repair is None or not repair.running):
            self.action_again()

    def action_again(self) -> None:
        """Make the plan again."""
        self._prepared, self._means, self._used = None, None, False
        # the old plan is hidden at once: it must not be carried out while another is made
        self.query_one(LineView).show([line("… making the plan", "dim")], home=True)
        self._edges(self.session)
        self.envmedic.effects.plan(self._wish, self._planned, self._failed)

    def _planned(self, made: Prepared | Diagnosis) -> None:
        if not self.standing:
            return
        if isinstance(made, Diagnosis):
            self.query_one(LineView).show(no_plan_page(made), home=True)
            return
        self._prepared, self._ways = made, made.plan.alternatives
        self._edges(self.session)
        self._show(home=True)
        self._try(self._tried)

    def _try(self, then: Callable[[Means | EnvmedicError], None]) -> None:
        """Find out how it would be carried out."""
        if self._made is not None:
            self.envmedic.effects.means(self._made, self._options, then, then)

    def _tried(self, means: Means | EnvmedicError) -> None:
        self._means = means
        self._edges(self.session)
        self._show()

    def _show(self, *, home: bool = False) -> None:
        if self.standing and self._made is not None:
            self.query_one(LineView).show(
                plan_page(self._made, self._means, detail=self.envmedic.layout.commands), home=home
            )
            self.refresh_bindings()

    def _failed(self, error: EnvmedicError) -> None:
        if self.standing:
            more = (
                [line(""), line("a goes back to the best way, or takes another one.", "bold")] if self._wish.way else []
            )
            self.query_one(LineView).show([*no_plan_page(error), *more], home=True)

    def refresh_from(self, session: AppState) -> None:
        """The plan stands by itself."""

    def about(self, session: AppState) -> str:
        """For what, and where."""
        return visible(f"{self.finding.fault} in {session.chosen}")

    def line(self, session: AppState) -> str:
        """The command that carries out the plan; before it is made, the command that makes it."""
        if self._made is None:
            return plan_line(session, self._wish)
        return apply_line(replace(session, options=self._options), self._made, self._wish)

    def searched(self) -> Searchable | None:
        """The page."""
        return self.query_one(LineView)

    def action_detail(self) -> None:
        """Show the commands and the names of all checks, or fold them."""
        self.envmedic.keep(commands=not self.envmedic.layout.commands)
        self._show()

    def action_alternatives(self) -> None:
        """Choose another way; the plan for it is made in place."""
        # Offered only after another way was taken: the shown plan is the best one otherwise.
        best = (BEST,) if self._wish.way is not None else ()
        ways = sorted(self._ways, key=lambda item: not item.feasible)
        if not (best or ways):
            return
        panel: ChoicePanel[PlanAlternative] = ChoicePanel(
            "Other ways", (*best, *ways), alternative_item, _title, lambda item: item.feasible
        )
        self.app.push_screen(panel, self._other_way)

    def _other_way(self, chosen: PlanAlternative | None) -> None:
        if chosen is not None:
            self._wish = replace(self._wish, way=None if chosen == BEST else chosen.title)
            self.action_again()

    def action_repair(self) -> None:
        """Ask for the go-ahead."""
        repair = self.session.repair
        if repair is not None and repair.running:
            self.envmedic.show_running_repair()
        elif self._made is not None:
            self._ask(self._made)

    def _ask(self, plan: Plan) -> None:
        """Ask whether a protection is to be lifted, as long as there is one; then for the go-ahead."""
        name = protection(self._means)
        if name is None:
            panel = StartPanel(plan, self._means, self.session.host, asks=self.session.asks)
            self.app.push_screen(panel, self._start)
            return
        allowing = replace(self.session, options=_allowing(self._options, name))
        lines = protected_lines(cast("PreflightError", self._means), name, apply_line(allowing, plan, self._wish))
        self.envmedic.ask("Protected", lines, partial(self._lift, name))

    def _lift(self, name: AllowName, yes: bool) -> None:
        if yes:
            self._allowed = (*self._allowed, name)
            self._try(self._lifted)

    def _lifted(self, means: Means | EnvmedicError) -> None:
        self._tried(means)
        if self.is_current and self._made is not None:
            self._ask(self._made)

    def _start(self, start: Start | None) -> None:
        if start is None or self._prepared is None:
            return
        options = _allowing(self._options, *(("in-use",) if start.in_use else ()))
        options = replace(options, no_gpu=options.no_gpu or start.no_gpu)
        self.envmedic.update(replace(self.session, asks=start.asks))
        # Not used where another change is running: the plan stays ready.
        self._used = self.envmedic.repairs.start(self._prepared, self._wish, options, asks=start.asks)
        if self._used:
            self.envmedic.show_running_repair()


def _allowing(options: ApplyOptions, *names: AllowName) -> ApplyOptions:
    """`options` with protections lifted."""
    return replace(options, allow=tuple(dict.fromkeys((*options.allow, *names))))


def _title(item: PlanAlternative) -> str:
    return item.title
