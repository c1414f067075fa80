"""The list of environments: broken ones first, then those with torch; the rest is folded into one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message

from envmedic.render.text import Line
from envmedic.tui.screens.home_lines import environment_item, listed, rest_item
from envmedic.tui.session import Known
from envmedic.tui.widgets.choices import ChoiceList

REST: Final = "…"
"""Key of the line that stands for the rest: no prefix."""


class EnvironmentList(ChoiceList["Known | int"]):
    """The environments that were found. A number stands for so many others."""

    class OpenFirst(Message):
        """The first finding of the chosen environment is wanted."""

    HELP = (
        "The environments found here: broken ones first, then those with torch; others are folded into one line, which "
        "Enter opens. * marks the active one; ▸ marks the one that all else on this screen is about. Each is read in the "
        "background, two at once. Enter chooses one to work on, and opens the first finding of the chosen one; / leaves only those that hold what you type; r reads "
        "the chosen one again, and x stops reading the others."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_first", "Open finding"),
        Binding("enter", "select", "Work on it"),
    ]

    def __init__(self, chosen: Callable[[], str], *, empty: str, id: str) -> None:
        """`chosen` says which prefix the screen is about; `OpenFirst` is sent while it is highlighted and has findings."""
        super().__init__(self._drawn_item, _key, empty=empty, id=id)
        self._chosen = chosen
        self._every: Sequence[Known] = ()
        self._unfolded = False
        self._has_findings = False

    def show_environments(self, environments: Sequence[Known], *, findings: bool) -> None:
        """Show them in their order; what is highlighted stays so. `findings` says whether the chosen one has any."""
        self._every = environments
        self._has_findings = findings
        self.refresh_bindings()
        first, rest = listed(environments, self._chosen())
        folded = rest and not self._unfolded and not self._needle
        self.show((*first, len(rest)) if folded else (*first, *rest))

    def unfold(self) -> None:
        """Show the rest too, from now on, and go to the first of it."""
        first, rest = listed(self._every, self._chosen())
        self._unfolded = True
        self.show((*first, *rest))
        self.highlight(rest[0].prefix)

    def search(self, needle: str) -> int:
        """Leave only environments that hold `needle`, folded ones too, and return their number."""
        self._needle = needle.lower()
        self.show_environments(self._every, findings=self._has_findings)
        return len(self._shown)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter opens the first finding of the environment that is chosen already, and chooses another."""
        if action in {"open_first", "select"}:
            return self.chosen is not None and (action == "open_first") == (
                self._has_findings and self.chosen == self._chosen()
            )
        return super().check_action(action, parameters)

    def action_open_first(self) -> None:
        """Open the first finding of the chosen environment."""
        self.post_message(self.OpenFirst())

    @on(ChoiceList.OptionHighlighted)
    def _other_keys(self) -> None:
        self.refresh_bindings()

    def _drawn_item(self, item: Known | int, cells: int) -> list[Line]:
        if isinstance(item, int):
            return rest_item(item)
        return environment_item(item, cells, chosen=item.prefix == self._chosen())


def _key(item: Known | int) -> str:
    return REST if isinstance(item, int) else item.prefix
