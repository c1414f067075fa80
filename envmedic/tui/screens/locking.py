"""Which lock files to write, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, SelectionList, Static
from textual.widgets.selection_list import Selection

from envmedic.model.lock import LockFormat
from envmedic.tui.command_lines import lock_line
from envmedic.tui.screens.panels import Panel
from envmedic.tui.text import line
from envmedic.tui.views.locking import FORMATS, NAMES, replaced_lines
from envmedic.tui.widgets.content import content_of
from envmedic.tui.widgets.paths import PathSuggester


@dataclass(frozen=True)
class LockWish:
    """What to write."""

    forms: tuple[LockFormat, ...]
    folder: str


class LockPanel(Panel[LockWish | None]):
    """Formats to tick, and a directory."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "none", "Tick"),
        Binding("w", "write", "Write"),
        Binding("tab", "app.focus_next", "Directory"),
    ]
    DEFAULT_CSS = """
    LockPanel > #frame SelectionList { height: auto; border: none; background: $panel; padding: 0; }
    LockPanel > #frame SelectionList:focus { border: none; }
    LockPanel > #frame Static { height: auto; }
    """

    def __init__(self, prefix: str) -> None:
        super().__init__("Write locks")
        self._prefix = prefix
        self._conda = (Path(prefix) / "conda-meta").is_dir()

    def inside(self) -> Iterable[Widget]:
        """The formats, the directory, and what it comes to."""
        first: LockFormat = "conda-lock" if self._conda else "pylock"
        options = [Selection(f"{NAMES[form]:<17} {about}", form, form == first) for form, about in FORMATS.items()]
        yield SelectionList[LockFormat](*options, id="formats")
        yield Static(content_of([line("Directory (Enter writes)", "dim")]))
        yield Input(str(Path.cwd()), suggester=PathSuggester(), select_on_focus=False, id="folder")
        yield Static(id="told")

    def on_mount(self) -> None:
        """Tick first."""
        self._formats.focus()
        self._tell()

    @property
    def _formats(self) -> SelectionList[LockFormat]:
        found: SelectionList[LockFormat] = self.query_one("#formats", SelectionList)
        return found

    @property
    def _wish(self) -> LockWish:
        chosen = set(self._formats.selected)
        return LockWish(tuple(form for form in FORMATS if form in chosen), self.query_one("#folder", Input).value)

    def on_selection_list_selected_changed(self) -> None:
        """Other formats."""
        self._tell()

    def on_input_changed(self) -> None:
        """Another directory."""
        self._tell()

    def _tell(self) -> None:
        """The command lines that do the same, and the files whose place would be taken."""
        wish = self._wish
        lines = [line(f"$ {lock_line(self._prefix, form, wish.folder, NAMES[form])}", "dim") for form in wish.forms]
        there = [name for form in wish.forms if (Path(wish.folder).expanduser() / (name := NAMES[form])).exists()]
        self.query_one("#told", Static).update(content_of([*lines, *replaced_lines(there)]))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write."""
        event.stop()
        self.action_write()

    def action_write(self) -> None:
        """Write what is ticked."""
        wish = self._wish
        if wish.forms and wish.folder.strip():
            self.dismiss(wish)
        else:
            self.notify("Tick a format, and name a directory", severity="warning")

    def action_none(self) -> None:
        """Space is the list's; this names it in the line of keys."""
