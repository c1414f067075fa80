"""Keys and pastes that arrive before the screen that they are for is composed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from textual import events

RETRY_S: Final = 0.02
"""Pause before the screen is looked at again."""
TYPED_AHEAD: Final = 12
"""Characters in a row, from which keys are a paste: the terminal was not told yet that pastes shall be marked."""
Typed = events.Key | events.Paste


class _Typed(events.Paste):
    """A paste that came as keys."""


class EarlyInput:
    """A queue in front of the App: what arrives while `ready` is false is given to `take` later, in its order."""

    def __init__(
        self,
        ready: Callable[[], bool],
        take: Callable[[Typed], None],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """`later` calls a function after that many seconds."""
        self._ready = ready
        self._take = take
        self._later = later
        self._held: list[Typed] = []
        self.typing = False
        """Whether the last input was a paste that came as keys, more of which may follow."""
        self._due = False

    def holds(self, event: Typed) -> bool:
        """Whether `event` has to wait; it is kept if so."""
        if self._ready() and not self._held:
            return False
        self._held.append(event)
        self._again()
        return True

    def _again(self) -> None:
        if not self._due:
            self._due = True
            self._later(RETRY_S, self._replay)

    def _replay(self) -> None:
        """Give on what the screen can take now. One at a time: a key may open another screen."""
        self._due = False
        if not self._held:
            return
        if self._ready():
            whole = merged(self._held)
            first, self._held = whole[0], whole[1:]
            self.typing = isinstance(first, _Typed)
            self._take(events.Paste(first.text) if isinstance(first, _Typed) else first)
        if self._held:
            self._again()


def merged(held: Iterable[Typed]) -> list[Typed]:
    """`held` with long runs of characters as the pastes that they are."""
    found: list[Typed] = []
    run: list[events.Key] = []
    for event in held:
        if isinstance(event, events.Key) and _character(event):
            run.append(event)
        else:
            found += [*_as_paste(run), event]
            run = []
    return [*found, *_as_paste(run)]


def _as_paste(run: list[events.Key]) -> list[Typed]:
    if len(run) < TYPED_AHEAD:
        return list(run)
    return [_Typed("".join(map(_character, run)))]


def _character(event: events.Key) -> str:
    """The text of a key; of one that is a command only, none."""
    if event.key in {"enter", "ctrl+j", "tab"}:
        return "\t" if event.key == "tab" else "\n"
    return event.character or "" if event.is_printable else ""
