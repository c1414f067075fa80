"""The first screen: environments, the host, the chosen environment with its findings, and the given text."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList

from envmedic.model.findings import Finding
from envmedic.render.pages.cards import host_card
from envmedic.render.pages.finding import finding_item
from envmedic.tui.command_lines import diagnose_line
from envmedic.tui.messages import TextGiven
from envmedic.tui.preferences import NARROWEST, WIDEST
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.screens.environment_list import REST, EnvironmentList
from envmedic.tui.screens.home_lines import (
    environment_card,
    environment_line,
    host_line,
    no_findings,
    verdict_lines,
)
from envmedic.tui.session import AppState
from envmedic.tui.widgets.choices import ChoiceList
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.parts import part
from envmedic.tui.widgets.paste import PasteBox

HOST = "This machine: GPUs, driver, toolkits, and the variables that matter."
HIGH: Final = 36
"""Screen height, in rows, from which the whole card of the host fits."""
WIDE: Final = 120
"""Screen width, in cells, from which the list stands beside what is found."""
NOTHING: Final = "No environment was found here. e names one by its directory; a pasted error text is matched alone."
PARTS: Final = ("environments", "findings", "paste")
"""What the numbers go to."""
CHOSEN = "The chosen environment, and its torch family: version, variant and owner."


class FindingList(ChoiceList[Finding]):
    """Findings, best first."""

    HELP = (
        "What is wrong, the likeliest first: with a text at hand what it tells, judged by the facts of the chosen "
        "environment; without one what the facts alone show. ✗ is confirmed by facts, ? cannot be told by them, "
        "- is refuted; ! is there, and nothing is known to fail by it yet. Enter opens one."
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Open finding")]


class HomeScreen(BaseScreen):
    """The first screen."""

    HELP = "Choose an environment, paste an error text, and open what is found."
    VERTICAL_BREAKPOINTS = [(0, "-low"), (HIGH, "-high")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave_text", "Forget text", show=False),
        Binding("o", "app.open_log", "Open log"),
        Binding("w", "app.run_command", "Watch"),
        Binding("h", "app.history", "History"),
        Binding("e", "app.named_environment", "Other env"),
        Binding("b", "app.playbooks", "Playbooks"),
        *(Binding(str(number), f"part('{name}')", show=False) for number, name in enumerate(PARTS, start=1)),
        Binding("left_square_bracket", "widen(-4)", "Narrower list", key_display="[", show=False),
        Binding("right_square_bracket", "widen(4)", "Wider list", key_display="]", show=False),
        Binding("r", "reread", "Read again", show=False),
        Binding("x", "stop_reading", "Stop reading", show=False),
    ]
    DEFAULT_CSS = """
    HomeScreen #top { height: 1fr; }
    HomeScreen #left { width: 36%; max-width: 90; }
    HomeScreen #right { width: 1fr; max-width: 110; }
    HomeScreen.-narrow #top { layout: vertical; }
    HomeScreen.-narrow #left { width: 100%; max-width: 100%; height: auto; max-height: 35%; }
    HomeScreen.-narrow #right { width: 100%; }
    HomeScreen.-narrow #environments { height: auto; }
    HomeScreen #environments { height: 1fr; }
    HomeScreen #host { height: auto; min-height: 4; max-height: 30%; }
    HomeScreen #about { height: auto; min-height: 4; max-height: 35%; }
    HomeScreen.-low.-wide #host { max-height: 5; }
    HomeScreen.-low.-wide #about { max-height: 7; }
    HomeScreen.-narrow #host, HomeScreen.-narrow #about {
        border: none; min-height: 1; max-height: 1; padding: 0 1; background: $background;
    }
    HomeScreen #verdict { height: auto; max-height: 6; padding: 0 1; background: $background; }
    HomeScreen #findings { height: 1fr; min-height: 4; }
    HomeScreen #paste { height: 20%; min-height: 4; max-height: 16; max-width: 200; }
    HomeScreen.-low #paste { height: 4; }
    """

    _marked = ""
    """Prefix that was the chosen one when the screen was last drawn."""

    def body(self) -> ComposeResult:
        """Parts beside and below each other."""
        self.set_class(
            self.app.size.height < HIGH, "-low"
        )  # before the parts are drawn, which a later change would do again
        self.set_class(self.narrow, "-narrow")
        self.set_class(not self.narrow, "-wide")
        empty = "… looking for environments"
        verdict = LineView(id="verdict")
        # a few words: nothing to scroll
        verdict.can_focus = False
        with Horizontal(id="top"):
            with Vertical(id="left"):
                yield part("Environments", EnvironmentList(lambda: self.session.chosen, empty=empty, id="environments"))
            with Vertical(id="right"):
                yield verdict
                yield part(
                    "Findings",
                    FindingList(finding_item, _finding_key, empty="No findings", id="findings", keeps_place=False),
                )
                yield part("Environment", LineView(id="about", about=CHOSEN))
                yield part("This machine", LineView(id="host", about=HOST))
        yield part("Error text", PasteBox(id="paste"))

    def on_mount(self) -> None:
        """Begin in the list."""
        self.query_one(EnvironmentList).focus()
        self.refresh_from(self.session)  # before anything is drawn
        super().on_mount()

    def about(self, session: AppState) -> str:
        """Progress of the background reads."""
        if session.searching:
            return "looking for environments"
        waiting = sum(item.phase in {"waiting", "reading"} for item in session.environments)
        count = len(session.environments)
        plural = "" if count == 1 else "s"
        return f"{count} environment{plural}" + (f", {waiting} not read yet" if waiting else "")

    def line(self, session: AppState) -> str:
        """The diagnosis that is shown."""
        return diagnose_line(session)

    def refresh_from(self, session: AppState) -> None:
        """Show what is known."""
        environments, findings = self.query_one(EnvironmentList), self.query_one(FindingList)
        environments.empty = "… looking for environments" if session.searching else NOTHING
        environments.show_environments(session.environments, findings=bool(session.findings))
        # Only with another choice: later refreshes must not move the highlight away from where the user put it.
        if environments.chosen is None or session.chosen != self._marked:
            environments.highlight(session.chosen)
        self._marked = session.chosen
        self.query_one("#left").styles.width = "100%" if self.narrow else f"{self.envmedic.layout.list_percent}%"
        self._cards(session)
        self.query_one("#verdict", LineView).show(verdict_lines(session))
        findings.empty = no_findings(session)
        findings.show(session.findings)

    def _cards(self, session: AppState) -> None:
        """Host and chosen environment: a line each where there is no room for more, which is nothing to scroll."""
        host, about = self.query_one("#host", LineView), self.query_one("#about", LineView)
        host.can_focus = about.can_focus = not self.narrow
        if self.narrow:
            host.show([host_line(session.host, session.host_error)])
            about.show([environment_line(session.current)])
        else:
            host.show(host_card(session.host, session.host_error))
            about.show(environment_card(session.current))

    def action_widen(self, percent: int) -> None:
        """Make the list wider or narrower, where it stands beside what is found."""
        width = self.envmedic.layout.list_percent + percent
        if NARROWEST <= width <= WIDEST:
            self.envmedic.keep(list_percent=width)

    @property
    def narrow(self) -> bool:
        """Whether the parts stand below each other."""
        return self.app.size.width < WIDE

    def on_resize(self, event: events.Resize) -> None:
        """Other parts have room now."""
        super().on_resize(event)
        if self.standing:
            self._cards(self.session)

    def action_part(self, name: str) -> None:
        """Go to a part of the screen."""
        self.query_one(f"#{name}").focus()

    def searched(self) -> Searchable | None:
        """The list of environments, unless something else that can be searched has the focus."""
        focused = super().searched()
        return self.query_one(EnvironmentList) if focused is None or isinstance(focused, PasteBox) else focused

    def on_paste(self, event: events.Paste) -> None:
        """A paste anywhere on the screen is an error text."""
        event.stop()
        self.query_one(PasteBox).put(event.text)
        if self.envmedic.early.typing:
            self.query_one(PasteBox).focus()  # more of it may come, as keys
        else:
            self.show_findings()

    def show_findings(self) -> None:
        """A text was given: Enter opens what is found in it."""
        self.query_one(FindingList).focus()

    @on(TextGiven)
    def _match(self, message: TextGiven) -> None:
        self.envmedic.effects.give_text(message.text)

    @on(OptionList.OptionSelected, "#environments")
    def _choose(self, event: OptionList.OptionSelected) -> None:
        if event.option_id == REST:
            self.query_one(EnvironmentList).unfold()
        elif event.option_id is not None:
            self.envmedic.effects.choose(event.option_id)
            self.query_one(FindingList).focus()

    @on(EnvironmentList.OpenFirst)
    def _open_first(self) -> None:
        self.query_one(FindingList).focus()
        self.envmedic.open_finding(self.session.findings[0])

    @on(OptionList.OptionSelected, "#findings")
    def _open(self, event: OptionList.OptionSelected) -> None:
        finding = self.query_one(FindingList).item(event.option_id)
        if finding is not None:
            self.envmedic.open_finding(finding)

    def action_leave_text(self) -> None:
        """Forget the given text; show findings from facts alone."""
        self.query_one(PasteBox).forget()
        self.envmedic.effects.give_text("")

    def action_reread(self) -> None:
        """Read the chosen environment again."""
        if self.session.current is not None and self.session.current.phase != "left":
            self.envmedic.effects.read(self.session.chosen)

    def action_stop_reading(self) -> None:
        """Read no other environments in the background."""
        self.envmedic.effects.stop_reading()


def _finding_key(finding: Finding) -> str:
    return f"{finding.fault}/{finding.playbook}/{finding.signature}"
