"""Effects of the terminal UI on generations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from envmedic.api import generations
from envmedic.errors import EnvmedicError
from envmedic.model.record import Difference, History, KeepLimits, KeptTree, NewFiles, Record
from envmedic.render.pages.history import drop_question, loss_lines, new_files_question
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
        """Undo or redo; asks the user first about edits that it would hide."""

        def work(settings: Settings, job: BackgroundJob[Record]) -> Record:
            def accept(losses: tuple[str, ...]) -> bool:
                return asked(self._front, job.token, "Changed since", loss_lines(losses))

            def keep_new(new: NewFiles) -> bool:
                lines = new_files_question(new)
                return bool(new.files) and asked(self._front, job.token, "Carry new files over?", lines)

            if way == "redo":
                return generations.redo(settings, self._prefix, to, allow, accept, cancel=job.token)
            return generations.undo(settings, self._prefix, to, allow, accept, keep_new=keep_new, cancel=job.token)

        title = "bringing the environment back as it was" if way == "undo" else "bringing the repair back"
        # `must_end`: a half done exchange would need recovery
        self._effects.job("transaction", title, work, then, failed, must_end=True)

    def surplus(self, keep: int, then: Callable[[tuple[KeptTree, ...]], None]) -> None:
        """Find the kept trees but the `keep` nearest."""

        def work(settings: Settings, _job: BackgroundJob[tuple[KeptTree, ...]]) -> tuple[KeptTree, ...]:
            return generations.surplus(settings, self._prefix, KeepLimits(count=keep))

        self._effects.job("history", "reading the history", work, then, latest="surplus")

    def prune(self, keep: int, then: Callable[[History], None]) -> None:
        """Remove all kept trees but the `keep` nearest; those with files that exist nowhere else are asked about."""

        def work(settings: Settings, job: BackgroundJob[History]) -> History:
            def drop_new(spared: tuple[KeptTree, ...]) -> bool:
                return asked(self._front, job.token, "Files that exist nowhere else", drop_question(spared))

            return generations.prune(settings, self._prefix, KeepLimits(count=keep), drop_new)

        self._effects.job("transaction", "removing kept trees", work, then, must_end=True)
