"""The go-ahead for a repair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from textual.binding import Binding, BindingType

from envmedic.errors import EnvironmentBusy, EnvmedicError
from envmedic.model.facts import Host
from envmedic.model.plan import Plan
from envmedic.model.ports import Means
from envmedic.render.pages.starting import gpu_missing, start_lines
from envmedic.tui.panels.base import Panel
from envmedic.tui.widgets.lines import LineView


class Start(msgspec.Struct, frozen=True):
    """The choices with which a repair begins."""

    asks: bool = True
    """Whether it asks again before the exchange, and before further rounds."""
    no_gpu: bool = False
    """Whether the user accepts a repair without proof on a GPU."""
    in_use: bool = False
    """Whether the user accepts running processes of the environment."""


class StartPanel(Panel[Start | None]):
    """The start of a repair in short, and the keys that begin it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "begin(True)", "Repair", priority=True),
        Binding("a", "begin(False)", "Repair, don't ask again", priority=True),
        Binding("n", "close", "No", priority=True),
    ]

    def __init__(self, plan: Plan, means: Means | EnvmedicError | None, host: Host | None, *, asks: bool) -> None:
        super().__init__("Repair?")
        self._plan = plan
        self._means = means
        self._host = host
        self._asks = asks

    def inside(self) -> Iterable[LineView]:
        """All that is to be known before."""
        yield LineView(start_lines(self._plan, self._means, self._host), id="question")

    def action_begin(self, asks: bool) -> None:
        """Begin, and accept the risks named in the panel."""
        self.dismiss(
            Start(
                asks=asks and self._asks,
                no_gpu=gpu_missing(self._plan, self._host),
                in_use=isinstance(self._means, EnvironmentBusy),
            )
        )
