"""The user's pins that bind a plan, and those that it may walk around."""

from __future__ import annotations

from dataclasses import dataclass, replace

from envmedic.errors import NoSolution, PinnedVersions
from envmedic.installers.conda.solve import kept_pins
from envmedic.model.conda import CondaChange
from envmedic.model.pins import LiftedPin, UserPin


@dataclass(frozen=True)
class PinLimits:
    """Pins that hold, and those that do not bind any more."""

    held: tuple[UserPin, ...]
    lifted: tuple[UserPin, ...] = ()
    condas: tuple[tuple[str, str], ...] = ()
    """Pins of conda that do not bind: where each stands, and what it says."""

    def after(self, refusal: NoSolution, *, lifts: bool) -> PinLimits | None:
        """Return the limits to try after `refusal`; None where there are no others. `lifts` lets pins of the user go.

        A lock goes first, without being asked for: a tool made it from what the user states. Of the user's own pins
        those go that are in the way; all that are left, where the refusal names none.
        """
        stated = tuple(item for item in self.held if item.kind != "lock")
        if stated != self.held:
            return replace(self, held=stated)
        if not lifts:
            return None
        named = refusal.pins if isinstance(refusal, PinnedVersions) else ()
        condas = tuple(dict.fromkeys((*self.condas, *(pin for pin in named if not self._of_wheels(pin)))))
        going = tuple(item for item in self.held if not named or (item.source, item.requirement) in named)
        if not going and condas == self.condas:
            return None
        held = tuple(item for item in self.held if item not in going)
        return PinLimits(held, (*self.lifted, *going), condas)

    def _of_wheels(self, pin: tuple[str, str]) -> bool:
        return any((item.source, item.requirement) == pin for item in (*self.held, *self.lifted))

    def unkept(self, change: CondaChange | None) -> tuple[LiftedPin, ...]:
        """Return the pins of conda that `change` does not keep."""
        return tuple(kept_pins.unkept(self.condas, change)) if change is not None else ()
