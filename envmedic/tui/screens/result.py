"""The result of a repair, and the next steps."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from envmedic.model.record import Record
from envmedic.render.progress.repair_state import Repair
from envmedic.render.progress.result import result_page, undo_line
from envmedic.render.text import line, visible
from envmedic.tui.panels.locking import LockPanel, LockWish
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.session import AppState
from envmedic.tui.widgets.lines import LineView


class ResultScreen(BaseScreen):
    """Before and after; or what failed, and that nothing was changed."""

    TITLE_TEXT = "Result"
    SHOWS_REPAIR = True
    HELP = (
        "How the repair ended: packages and checks before beside after, what stays of it, and the way back. l writes lock "
        "files of what was verified, s a report to show others, v shows the log. Escape goes home, or back to the plan where nothing was repaired."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "app.undo", "Undo"),
        Binding("l", "lock", "Write locks"),
        Binding("s", "app.report", "Report"),
        Binding("v", "log", "Log"),
        Binding("r", "again", "Plan again"),
        Binding("h", "app.history", "History"),
    ]
    DEFAULT_CSS = "ResultScreen #page { height: 1fr; padding: 0 1; }"

    def body(self) -> ComposeResult:
        """One page."""
        yield LineView(id="page", about=self.HELP)

    def __init__(self) -> None:
        super().__init__()
        self._moved = False
        """Whether the environment was brought to another generation since."""

    def on_mount(self) -> None:
        """Show it."""
        super().on_mount()
        self.envmedic.moved.subscribe(self, self._note_moved)
        self.query_one(LineView).focus()

    def _note_moved(self, prefix: str) -> None:
        if self._repair is not None and prefix == self._repair.prefix:
            self._moved = True
            self.refresh_from(self.session)

    @property
    def _repair(self) -> Repair | None:
        return self.session.repair

    @property
    def _repaired(self) -> bool:
        """Whether the repair was swapped in."""
        result = self._repair.result if self._repair is not None else None
        return isinstance(result, Record) and result.environment == "repaired"

    def on_resize(self, event: events.Resize) -> None:
        """Tables are made for the width that there is."""
        super().on_resize(event)
        self.call_after_refresh(lambda: self.refresh_from(self.session))

    def refresh_from(self, session: AppState) -> None:
        """Show the result of the repair."""
        page = self.query_one(LineView)
        if session.repair is not None:
            since = [line("Its generations were changed after this repair: h shows them.", "warn"), line("")]
            lines = result_page(session.repair, max(page.scrollable_content_region.width - 1, 20))
            page.show([*(since if self._moved else []), *lines])
        self.refresh_bindings()

    def about(self, session: AppState) -> str:
        """Where."""
        return visible(session.repair.prefix) if session.repair is not None else ""

    def line(self, session: AppState) -> str:
        """The command that undoes the repair; without one, the command equivalent to it."""
        if session.repair is None:
            return ""
        return undo_line(session.repair.prefix) if self._repaired else session.repair.line

    def searched(self) -> Searchable | None:
        """The page."""
        return self.query_one(LineView)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Locks are of what was repaired; a new plan is for what was not."""
        if action in {"lock", "again"}:
            return self._repaired == (action == "lock")
        return super().check_action(action, parameters)

    async def action_back(self) -> None:
        """Home where the environment is another one now, else back to the plan."""
        if not self._repaired:
            await super().action_back()
            return
        # The plan and the finding below describe the environment before the repair.
        while self.app.screen_stack[2:]:  # more than home and this one
            await self.app.pop_screen()
        await super().action_back()

    async def action_again(self) -> None:
        """Go back to the plan, which is made again."""
        await super().action_back()

    def action_log(self) -> None:
        """The log, and the stages."""
        self.envmedic.show_running_repair()

    def action_lock(self) -> None:
        """Ask for formats and a directory."""
        if self._repair is not None:
            self.app.push_screen(LockPanel(self._repair.prefix), self._lock)

    def _lock(self, wish: LockWish | None) -> None:
        if wish is not None and self._repair is not None:
            self.envmedic.repairs.write_locks(wish.forms, wish.folder, self._locked, incomplete=wish.incomplete)

    def _locked(self) -> None:
        locks = self._repair.locks if self._repair is not None else ()
        written = [found.path for found in locks if found.path is not None]
        self.notify("\n".join(written) or "No lock was written; the page says why", title="Locks", markup=False)
