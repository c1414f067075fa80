"""Panel for the formats and the directory of lock files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from envmedic import xdg
from envmedic.locks.formats import LOCK_FORMATS, fitting
from envmedic.model.lock import LockFormatName
from envmedic.render.text import Line, line
from envmedic.tui.command_lines import lock_line
from envmedic.tui.panels.base import Panel
from envmedic.tui.panels.lock_choices import INCOMPLETE, replaced_lines, tick_lines
from envmedic.tui.widgets.choices import ChoiceList
from envmedic.tui.widgets.content import content_of
from envmedic.tui.widgets.paths import PathSuggester


class LockWish(msgspec.Struct, frozen=True):
    """Formats and directory of the lock files to write."""

    forms: tuple[LockFormatName, ...]
    folder: str
    incomplete: bool = False
    """Whether to write locks that lack entries."""


class LockPanel(Panel[LockWish | None]):
    """Formats to tick, and a directory."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", "Tick"),
        Binding("w", "write", "Write"),
        Binding("tab", "app.focus_next", "Directory"),
    ]
    DEFAULT_CSS = """
    LockPanel > #frame ChoiceList { height: auto; background: $panel; }
    LockPanel > #frame Static { height: auto; }
    """

    def __init__(self, prefix: str) -> None:
        super().__init__("Write locks")
        self._prefix = prefix
        self._ticked: set[str] = {fitting(conda=(Path(prefix) / "conda-meta").is_dir())[0]}

    def inside(self) -> Iterable[Widget]:
        """The formats, the directory, and what it comes to."""
        yield ChoiceList(self._drawn, str, empty="", id="formats")
        yield Static(content_of([line("Directory; Enter in it writes", "dim")]))
        yield Input(str(Path.cwd()), suggester=PathSuggester(), select_on_focus=False, id="folder")
        yield Static(id="told")

    def _drawn(self, item: str, cells: int) -> list[Line]:
        return tick_lines(item, ticked=item in self._ticked, cells=cells)

    def on_mount(self) -> None:
        """Tick first."""
        self.call_after_refresh(self._show)
        self._formats.focus()

    @property
    def _formats(self) -> ChoiceList[str]:
        found: ChoiceList[str] = self.query_one("#formats", ChoiceList)
        return found

    @property
    def _wish(self) -> LockWish:
        forms = tuple(form for form in LOCK_FORMATS if form in self._ticked)
        return LockWish(forms, self.query_one("#folder", Input).value, incomplete=INCOMPLETE in self._ticked)

    def _show(self) -> None:
        """The ticks, the command lines that do the same, and the files whose place would be taken."""
        self._formats.show((*LOCK_FORMATS, INCOMPLETE))
        wish = self._wish
        names = {form: LOCK_FORMATS[form].filename for form in wish.forms}
        lines = [
            line(f"$ {lock_line(self._prefix, form, wish.folder, name, incomplete=wish.incomplete)}", "dim")
            for form, name in names.items()
        ]
        folder = xdg.expanded(wish.folder)
        there = [name for name in names.values() if (folder / name).exists()]
        self.query_one("#told", Static).update(content_of([*lines, *replaced_lines(there)]))

    def on_input_changed(self) -> None:
        """Another directory."""
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write."""
        event.stop()
        self.action_write()

    @on(OptionList.OptionSelected)
    def _enter(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_tick()

    def action_tick(self) -> None:
        """Tick what is highlighted, or take its tick away."""
        item = self._formats.chosen
        if item is not None:
            self._ticked ^= {item}
            self._show()

    def action_write(self) -> None:
        """Write what is ticked."""
        wish = self._wish
        if wish.forms and wish.folder.strip():
            self.dismiss(wish)
        else:
            self.notify("Tick a format, and name a directory", severity="warning")
