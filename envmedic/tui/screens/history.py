"""The generations of the chosen environment."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import OptionList

from envmedic.errors import EnvmedicError, InputError
from envmedic.model.record import Difference, History
from envmedic.render.documents.record import difference_lines
from envmedic.render.pages.error import error_page
from envmedic.render.pages.history import NOW, GenerationLine, state_item, state_page, states
from envmedic.render.text import line, visible
from envmedic.tui.command_lines import diff_line, history_line
from envmedic.tui.effects.undo_redo import UndoRedo
from envmedic.tui.panels.base import TextPanel
from envmedic.tui.screens.listing import ListingScreen
from envmedic.tui.session import AppState
from envmedic.tui.widgets.choices import ChoiceList


class StateList(ChoiceList[GenerationLine]):
    """States that the user can look at and compare."""

    HELP = (
        "The present state, every repair, newest first, and the environment as envmedic found it; * is the live one. "
        "u goes back: from the live one a step, from an older one to it. r brings an undone repair back. d compares "
        "the highlighted one with the one that space marks, else with the environment as it is now."
    )


class HistoryScreen(ListingScreen[GenerationLine]):
    """Screen of the generations: past repairs, kept trees, undo and redo."""

    TITLE_TEXT = "History"
    LIST_TITLE = "Generations"
    PAGE_HELP = "What is highlighted in the list."
    HELP = "The repairs of this environment, what each changed, what is kept of it, and what was changed since."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "Undo"),
        Binding("r", "redo", "Redo"),
        Binding("d,enter", "diff", "Diff", key_display="d"),
        Binding("space", "mark", "Mark"),
        Binding("p", "prune", "Prune"),
    ]

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self._history: History | None = None
        self._outside: Difference | EnvmedicError | None = None
        self._trouble: EnvmedicError | None = None
        self._marked: str | None = None

    def listed(self) -> StateList:
        """The states."""
        return StateList(state_item, _key, empty="… reading the history", id="listed")

    def on_mount(self) -> None:
        """Read the history, then look what was changed outside."""
        super().on_mount()
        self._travel = UndoRedo(self.envmedic, self._prefix)
        self.envmedic.moved.subscribe(self, self._moved)
        self._read()

    def _moved(self, prefix: str) -> None:
        if prefix == self._prefix:
            self._read()

    def _read(self) -> None:
        self._outside = None
        # the history is shown before the difference: comparing trees takes longer
        self._travel.effects.history(self._known, self._failed)

    def _known(self, history: History) -> None:
        self._history, self._trouble = history, None
        self._draw()
        if history.generations:
            self._travel.effects.difference(None, None, self._compared, self._compared)

    def _failed(self, error: EnvmedicError) -> None:
        self._trouble = error
        self._draw()

    def _compared(self, outside: Difference | EnvmedicError) -> None:
        self._outside = outside
        self._draw()

    def _draw(self) -> None:
        if not self.standing:
            return
        choices, page = self.choices, self.page
        if self._trouble is not None:
            page.show(error_page(self._trouble))
        if self._history is None:
            return
        choices.empty = "No repair yet"
        choices.show(states(self._history, self._marked))
        if self._trouble is None:
            page.show(state_page(self.highlighted, self._history, self._outside))

    def look(self) -> None:
        """The page on what is highlighted."""
        self._draw()

    def refresh_from(self, session: AppState) -> None:
        """The history is read by itself."""

    def about(self, session: AppState) -> str:
        """The prefix of the environment."""
        del session
        return visible(self._prefix)

    def line(self, session: AppState) -> str:
        """The same from the shell."""
        del session
        return history_line(self._prefix)

    def action_undo(self) -> None:
        """Go back: to what is highlighted, or from the live generation a step."""
        state = self.highlighted
        here = state is None or state.key == NOW or (state.generation is not None and state.generation.live)
        self._travel.undo(None if here or state is None else state.key)

    def action_redo(self) -> None:
        """Bring the highlighted repair back, or the one that can be."""
        history, state = self._history, self.highlighted
        if history is None:
            return
        possible = [item for item in history.generations if item.redo_possible]
        named = [item for item in possible if state is not None and item.transaction == state.key]
        if not possible:
            self.envmedic.show_error(InputError("There is nothing to redo", hint="Only what was undone comes back"))
        else:
            self._travel.redo(history, (named or possible)[0])

    def action_mark(self) -> None:
        """Mark the highlighted state, to compare another one with it."""
        state = self.highlighted
        if state is not None:
            self._marked = None if self._marked == state.key else state.key
            self._draw()

    @on(OptionList.OptionSelected, "#listed")
    def action_diff(self) -> None:
        """Compare the marked state with the highlighted one; without a mark, the highlighted one with now."""
        state = self.highlighted
        if state is None:
            return
        before: str | None = self._marked or state.key
        after = state.key if self._marked else NOW
        if before == after:
            before = None  # a state with itself says nothing: what was changed outside since the live one
        self._travel.effects.difference(before, after, partial(self._show_difference, before, after))

    def _show_difference(self, before: str | None, after: str, found: Difference) -> None:
        command = line(f"$ {diff_line(self._prefix, before, after)}", "dim")
        self.app.push_screen(TextPanel("Difference", [*difference_lines(found), line(""), command]))

    def action_prune(self) -> None:
        """Remove kept trees."""
        if self._history is not None:
            self._travel.prune(self._history)


def _key(state: GenerationLine) -> str:
    return state.key
