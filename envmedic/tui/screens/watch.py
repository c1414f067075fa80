"""A command of the user, run in the chosen environment and watched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from envmedic.errors import EnvmedicError, InputError, Interrupted
from envmedic.model.events import Event, Notice, OutputLine
from envmedic.model.findings import Diagnosis, Finding
from envmedic.render.documents.diagnosis import verdict_of
from envmedic.render.text import Line, TextPart, line, visible
from envmedic.tui.command_lines import watch_line
from envmedic.tui.effects.jobs import BackgroundJob
from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.session import AppState
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.log_view import LogView


class WatchScreen(BaseScreen):
    """Screen of a running command: its output, then its diagnosis."""

    TITLE_TEXT = "Run"
    HELP = (
        "A command that runs in the chosen environment. s stops it. When it has failed, Enter opens what is found; a repair "
        "then runs it again, and it decides."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stop", "Stop"),
        Binding("enter", "open", "Open finding"),
    ]
    DEFAULT_CSS = """
    WatchScreen #log { height: 1fr; padding: 0 1; }
    WatchScreen #end { height: auto; max-height: 4; padding: 0 1; background: $panel; }
    """

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command = command
        self._job: BackgroundJob[tuple[Diagnosis, bool]] | None = None
        self._found: Finding | None = None
        """The best finding, once the command has failed."""

    def body(self) -> ComposeResult:
        """The output above, and how it ends below."""
        yield LogView(id="log")
        yield LineView([line("… running; s stops it", "dim")], id="end")

    def on_mount(self) -> None:
        """Start it."""
        super().on_mount()
        # keys go to the output
        self.query_one("#end").can_focus = False
        self.query_one(LogView).focus()
        try:
            self._job = self.envmedic.effects.watch(self._command, self._printed, self._ended, self._failed)
        except InputError as error:
            self._failed(error)

    def _printed(self, events: list[Event]) -> None:
        if self.standing:
            self.query_one(LogView).add(_lines(events))

    def _ended(self, diagnosis: Diagnosis) -> None:
        word, tone = verdict_of(diagnosis)
        shown: list[Line] = [(TextPart(word, tone), TextPart("  " + visible(diagnosis.log or "it ended well")))]
        if diagnosis.findings:
            self._found = diagnosis.findings[0]
            shown.append(line(f"{diagnosis.findings[0].summary}  (Enter opens it)"))
        self._say(shown)

    def _failed(self, error: EnvmedicError) -> None:
        if isinstance(error, Interrupted):
            self._say([line("It was stopped. The environment is as the command left it.", "warn")])
        else:
            self._say([line(f"! {error.summary}", "bad"), line(error.hint or error.cause or "")])

    def _say(self, lines: list[Line]) -> None:
        self._job = None
        if self.standing:
            self.query_one("#end", LineView).show(lines)
            self.refresh_bindings()

    def refresh_from(self, session: AppState) -> None:
        """The output stands by itself."""

    def about(self, session: AppState) -> str:
        """The command and the environment."""
        return visible(f"{self._command} in {session.chosen}")

    def line(self, session: AppState) -> str:
        """The same from the shell."""
        return watch_line(session, self._command)

    def searched(self) -> Searchable | None:
        """The output."""
        return self.query_one(LogView)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what makes sense now is among the keys."""
        if action == "stop":
            return self._job is not None
        if action == "open":
            return self._found is not None
        return super().check_action(action, parameters)

    def action_stop(self) -> None:
        """Stop the command, with what it has started."""
        if self._job is not None:
            self._job.cancel()

    def action_open(self) -> None:
        """Open the first finding."""
        if self._found is not None:
            self.envmedic.open_finding(self._found)


def _lines(events: list[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event.data, OutputLine):
            yield event.data.line
        elif isinstance(event.data, Notice):
            yield f"envmedic: {event.data.message}"
