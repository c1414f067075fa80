"""Base of all screens: title, equivalent command line, search, keys and help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from envmedic.tui.session import AppState
from envmedic.tui.widgets.bars import CommandLine, KeyBar, SearchBar, TitleBar
from envmedic.tui.widgets.choices import ChoiceList
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.log_view import LogView
from envmedic.tui.widgets.parts import FRAMES
from envmedic.tui.widgets.paste import PasteBox

if TYPE_CHECKING:
    from envmedic.tui.app import EnvmedicApp


Searchable = LineView | LogView | ChoiceList[Any]
"""Widgets that `/` can search."""


class BaseScreen(Screen[None]):
    """A screen that shows the session and follows its changes."""

    TITLE_TEXT: ClassVar[str] = "envmedic"
    SHOWS_REPAIR: ClassVar[bool] = False
    """Whether the screen shows the repair, so that it needs no key for it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("slash", "search", "Search", key_display="/", priority=True),  # what is typed next is searched already
        Binding("y", "copy_line", "Copy line"),
    ]

    DEFAULT_CSS = FRAMES

    _target: Searchable | None = None
    """The widget being searched."""

    @property
    def envmedic(self) -> EnvmedicApp:
        """The App, as what it is."""
        return cast("EnvmedicApp", self.app)

    @property
    def standing(self) -> bool:
        """Whether the screen can still be drawn on: jobs outlive the screen that started them."""
        return self.is_mounted and self.is_attached and bool(self.query(TitleBar))

    @property
    def session(self) -> AppState:
        """What is known now."""
        return self.envmedic.session

    def compose(self) -> ComposeResult:
        """Edges around the body."""
        yield TitleBar()
        yield from self.body()
        yield CommandLine()
        yield KeyBar()

    def body(self) -> ComposeResult:
        """The widgets between title bar and command line."""
        raise NotImplementedError

    def refresh_from(self, session: AppState) -> None:
        """Show what is known."""
        raise NotImplementedError

    def about(self, session: AppState) -> str:
        """Text beside the title."""
        del session
        return ""

    def line(self, session: AppState) -> str:
        """The equivalent command line; empty where there is none."""
        del session
        return ""

    def on_mount(self) -> None:
        """Subscribe to changes of the session."""
        self.envmedic.changed.subscribe(self, self._changed)
        self.call_after_refresh(self._search_bar)  # the first frame needs none of it

    def on_screen_resume(self) -> None:
        """Show what is known: at first, and what changed below other screens."""
        self._changed(self.session)

    def on_resize(self, _event: events.Resize) -> None:
        """Edges are drawn for the new width."""
        self._edges(self.session)

    def _changed(self, session: AppState) -> None:
        if self.standing:
            self._edges(session)
            self.refresh_from(session)

    def _edges(self, session: AppState) -> None:
        if not self.standing:
            return  # what was waited for came after the screen was left
        running = [job.title for job in self.envmedic.jobs.running]
        busy = running[0] + (f" and {len(running) - 1} more" if running[1:] else "") if running else ""
        self.query_one(TitleBar).show(self.TITLE_TEXT, self.about(session), busy)
        self.query_one(CommandLine).show(self.line(session))

    async def action_back(self) -> None:
        """Leave the screen; what runs goes on."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def action_copy_line(self) -> None:
        """Put the equivalent command line where it can be pasted from."""
        line = self.query_one(CommandLine).line
        if line:
            self.app.copy_to_clipboard(line)
            self.notify(line, title="Copied", markup=False)

    # search

    def searched(self) -> Searchable | None:
        """The widget that `/` searches: the focused one, if it can be searched."""
        return self.focused if isinstance(self.focused, (LineView, LogView, ChoiceList)) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the search while text is typed, since a slash is text there."""
        if action == "search":
            return not isinstance(self.focused, Input | PasteBox)
        return super().check_action(action, parameters)

    async def action_search(self) -> None:
        """Open the line to type in."""
        self._target = self.searched()
        if self._target is None:
            return
        bar = await self._search_bar()
        bar.value = ""
        bar.display = True
        self.set_focus(bar)

    async def _search_bar(self) -> SearchBar:
        """The line to type in, which is not seen at first."""
        for there in self.query(SearchBar):
            return there
        bar = SearchBar(id="search", select_on_focus=False)
        bar.display = False
        if self.standing:  # the screen may have been left since this was asked for
            await self.mount(bar, before=self.query_one(CommandLine))
        return bar

    @on(Input.Changed, "#search")
    def _look(self, event: Input.Changed) -> None:
        event.stop()
        if self._target is not None:
            self._target.search(event.value)

    @on(Input.Submitted, "#search")
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_search()

    def _close_search(self) -> None:
        self.query_one(SearchBar).display = False
        if self._target is not None:
            self._target.focus()

    def on_key(self, event: events.Key) -> None:
        """Escape takes a search back before it leaves the screen."""
        if event.key == "escape" and isinstance(self.focused, SearchBar):
            event.stop()
            # Escape would otherwise reach the binding `back` and leave the screen.
            event.prevent_default()
            if self._target is not None:
                self._target.search("")
            self._close_search()
