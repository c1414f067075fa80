"""Effects of the terminal UI on generations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from envmedic.api import generations
from envmedic.errors import EnvmedicError
from envmedic.model.record import Difference, History, Record
from envmedic.render.pages.history import loss_lines
from envmedic.tui.effects.base import Effects
from envmedic.tui.effects.jobs import BackgroundJob
from envmedic.tui.effects.questions import Asker, asked

if TYPE_CHECKING:
    from envmedic.api.context.settings import Settings
    from envmedic.model.registries.modes import AllowName

Way = Literal["undo", "redo"]
Failed = Callable[[EnvmedicError], None]


class HistoryEffects:
    """Generations of the environment at `prefix`."""

    def __init__(self, effects: Effects, front: Asker, prefix: str) -> None:
        self._effects = effects
        self._front = front
        self._prefix = Path(prefix)

    def history(self, then: Callable[[History], None], failed: Failed | None = None) -> BackgroundJob[History]:
        """Every transaction, newest first."""

        def work(settings: Settings, _job: BackgroundJob[History]) -> History:
            return generations.history(settings, self._prefix)

        return self._effects.job("history", "reading the history", work, then, failed, latest="history")

    def difference(
        self, before: str | None, after: str | None, then: Callable[[Difference], None], failed: Failed | None = None
    ) -> BackgroundJob[Difference]:
        """The difference of two states; without them, changes made outside envmedic."""

        def work(settings: Settings, _job: BackgroundJob[Difference]) -> Difference:
            return generations.difference(settings, self._prefix, before, after)

        title = "comparing two states" if before or after else "looking for changes from outside"
        return self._effects.job("diff", title, work, then, failed, latest=title)

    def travel(
        self, way: Way, to: str | None, allow: tuple[AllowName, ...], then: Callable[[Record], None], failed: Failed
    ) -> None:
        """Undo or redo. What would go out of sight is put to the user first."""

        def work(settings: Settings, job: BackgroundJob[Record]) -> Record:
            def accept(losses: tuple[str, ...]) -> bool:
                return asked(self._front, job.token, "Changed since", loss_lines(losses))

            go = generations.undo if way == "undo" else generations.redo
            return go(settings, self._prefix, to, allow, accept, cancel=job.token)

        title = "bringing the environment back as it was" if way == "undo" else "bringing the repair back"
        # `must_end`: a half done exchange would need recovery
        self._effects.job("transaction", title, work, then, failed, must_end=True)

    def prunable(self, keep: int, then: Callable[[tuple[str, ...]], None]) -> None:
        """Find the kept trees that `prune` would remove."""

        def work(settings: Settings, _job: BackgroundJob[tuple[str, ...]]) -> tuple[str, ...]:
            return generations.prunable(settings, self._prefix, keep)

        self._effects.job("history", "reading the history", work, then, latest="prunable")

    def prune(self, keep: int, then: Callable[[History], None]) -> None:
        """Remove all kept trees but the `keep` nearest."""

        def work(settings: Settings, _job: BackgroundJob[History]) -> History:
            return generations.prune(settings, self._prefix, keep)

        self._effects.job("transaction", "removing kept trees", work, then, must_end=True)
