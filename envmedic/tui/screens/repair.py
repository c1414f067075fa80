"""A repair while it runs, and afterwards its log."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from envmedic.render.progress.check_table import check_table
from envmedic.render.progress.repair import (
    cancel_lines,
    current_line,
    head_lines,
    question_lines,
    question_title,
    stage_lines,
)
from envmedic.render.progress.repair_state import Asked, Repair
from envmedic.render.progress.result import verdict_line
from envmedic.render.text import line, visible
from envmedic.tui.panels.base import AskPanel, Prompt, QuestionPanel
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.session import AppState
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.log_view import LogView
from envmedic.tui.widgets.parts import part

TICK_S = 0.5
"""Seconds between two drawings of the clock."""
_PARTS = ("stages", "checks", "log")
_STAGES = "What the repair does, in order: ✓ is done, ▸ runs, · is still to come. Each line ends with how long it took."
_CHECKS = (
    "The checks as they come in, on each device: before the repair, after it, and in place once it is swapped in. They run "
    "in the copy. What has to pass and does not keeps the copy from taking the environment's place."
)


class RepairScreen(BaseScreen):
    """Stages, checks and the log of the one repair."""

    TITLE_TEXT = "Repair"
    SHOWS_REPAIR = True
    HELP = (
        "A copy of the environment is repaired and proven. Leaving this screen stops nothing; g comes back. c stops the "
        "repair, and the environment stays as it is. s writes the log to a file."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "Cancel"),
        Binding("enter", "answer", "Answer"),
        Binding("enter", "result", "Result"),
        Binding("s", "save", "Save log"),
        Binding("f", "full", "Full size"),
    ]
    DEFAULT_CSS = """
    RepairScreen #head { height: 3; padding: 0 1; background: $background; }
    RepairScreen #middle { height: 3fr; min-height: 8; }
    RepairScreen #stages { width: 30%; min-width: 27; max-width: 44; }
    RepairScreen #checks { width: 1fr; }
    RepairScreen #log { height: 2fr; min-height: 5; scrollbar-size-horizontal: 0; }
    RepairScreen.-only-log #head, RepairScreen.-only-log #middle { display: none; }
    RepairScreen.-only-checks #head, RepairScreen.-only-checks #stages, RepairScreen.-only-checks #log { display: none; }
    RepairScreen.-only-stages #head, RepairScreen.-only-stages #checks, RepairScreen.-only-stages #log { display: none; }
    RepairScreen.-only-stages #stages { width: 1fr; max-width: 100%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen = 0
        self._full = False
        """Whether one part fills the screen."""
        self._at = -1
        self._put_off: Asked | None = None
        """A question that the user wants to answer later."""

    def body(self) -> ComposeResult:
        """Current work above, stages beside checks, and the log below."""
        head = LineView(id="head")
        # nothing in it can be scrolled: Tab goes on to the next part
        head.can_focus = False
        yield head
        with Horizontal(id="middle"):
            yield part("Stages", LineView(id="stages", about=_STAGES))
            yield part("Checks", LineView(id="checks", about=_CHECKS))
        yield part("Log", LogView(id="log"))

    def on_mount(self) -> None:
        """Follow it."""
        self.query_one(LogView).focus()
        self.envmedic.repairing.subscribe(self, self._told)
        # a stage without events still shows that time passes
        self.set_interval(TICK_S, self._tick)
        super().on_mount()

    def on_screen_resume(self) -> None:
        """A question that waits is asked here."""
        super().on_screen_resume()
        self._ask()

    def on_resize(self, event: events.Resize) -> None:
        """Tables are made for the width that there is."""
        super().on_resize(event)
        self.call_after_refresh(lambda: self.refresh_from(self.session))

    def _told(self, _repair: Repair) -> None:
        if self.standing:
            self.refresh_from(self.session)

    def _tick(self) -> None:
        repair = self.session.repair
        if repair is not None and repair.running and self.is_current:
            self._draw_clock(repair)

    def refresh_from(self, session: AppState) -> None:
        """Show how far it is."""
        repair = session.repair
        if repair is None:
            return
        self._draw_clock(repair)
        checks = self.query_one("#checks", LineView)
        cells = max(checks.scrollable_content_region.width - 1, 20)
        table = check_table(repair.checks.values(), cells)
        checks.show(table or [line("No check has run yet.", "dim")])
        log = self.query_one(LogView)
        # only new lines: a repair logs tens of thousands
        log.add(repair.log.since(self._seen))
        self._seen = repair.log.total
        self.refresh_bindings()

    def _draw_clock(self, repair: Repair) -> None:
        now = time.time()
        head, stages = self.query_one("#head", LineView), self.query_one("#stages", LineView)
        cells = max(head.scrollable_content_region.width, 20)
        lines = head_lines(repair, now, cells)
        head.show(lines if repair.running else [verdict_line(repair), *lines[1:]])
        stages.show(stage_lines(repair, now, max(stages.scrollable_content_region.width, 12)))
        at = current_line(repair)
        # only when the stage changes, so that the user can scroll in between
        if at != self._at:
            self._at = at
            stages.show_row(at)

    def about(self, session: AppState) -> str:
        """Where."""
        return visible(session.repair.prefix) if session.repair is not None else ""

    def line(self, session: AppState) -> str:
        """The equivalent command line."""
        return session.repair.line if session.repair is not None else ""

    def searched(self) -> Searchable | None:
        """The log, unless another part has the focus."""
        return super().searched() or self.query_one(LogView)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what makes sense now is among the keys."""
        repair = self.session.repair
        if action == "cancel":
            return repair is not None and repair.running and not repair.stopping
        if action == "answer":
            return repair is not None and repair.asked is not None
        if action == "result":
            return repair is not None and repair.asked is None and not repair.running
        return super().check_action(action, parameters)

    # questions

    def ask(self) -> None:
        """A question has come."""
        self._put_off = None
        self._ask()

    def _ask(self) -> None:
        repair = self.session.repair
        if repair is None or repair.asked is None or repair.asked is self._put_off or not self.is_current:
            return
        asked = repair.asked
        because = repair.rounds[-1] if repair.rounds else ""
        panel = AskPanel(question_title(asked), question_lines(asked, because))

        def answered(yes: bool | None) -> None:
            now = self.session.repair
            if yes is None:
                self._put_off = asked
            # the answer counts for its own question: the repair may have ended or asked another since
            elif now is not None and now.asked is asked:
                self.envmedic.repairs.answer(yes=yes)

        self.app.push_screen(panel, answered)

    def action_answer(self) -> None:
        """Answer the question that waits."""
        self.ask()

    def action_result(self) -> None:
        """Go on to the result."""
        self.envmedic.show_result()

    def action_full(self) -> None:
        """Give the part that has the focus all of the room, or take it back."""
        part = self.focused.id if self.focused is not None else None
        full = None if self._full else part
        for name in _PARTS:
            self.set_class(name == full, f"-only-{name}")
        self._full = full in _PARTS
        self.call_after_refresh(lambda: self.refresh_from(self.session))

    async def action_back(self) -> None:
        """Take the full size back first."""
        if self._full:
            self.action_full()
        else:
            await super().action_back()

    def action_cancel(self) -> None:
        """Ask, then stop it."""
        repair = self.session.repair
        if repair is None or not repair.running:
            return
        self.app.push_screen(QuestionPanel("Cancel", cancel_lines(repair)), self._cancel)

    def _cancel(self, yes: bool | None) -> None:
        if yes:
            self.envmedic.repairs.stop()

    # the log

    def action_save(self) -> None:
        """Ask for a file, and write the log to it."""
        repair = self.session.repair
        if repair is None:
            return
        name = f"envmedic-{Path(repair.directory).name or 'repair'}.log"
        text = [line("The file for the log; it must not be there yet. Nothing is in it that is not shown here.")]
        self.app.push_screen(Prompt("Save the log", text, value=str(Path.cwd() / name)), self._save)

    def _save(self, path: str | None) -> None:
        if path:
            self.envmedic.repairs.save_log(path, self._saved)

    def _saved(self, path: str) -> None:
        self.notify(path, title="The log was written", markup=False)
