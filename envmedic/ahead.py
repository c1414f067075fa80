"""Work on an environment's files that is begun before the rest of envmedic is loaded.

Loading takes one core a tenth of a second, a look at the files of a torch environment another: side by side they take
one of them. So this module imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from envmedic.forked import Forked

if TYPE_CHECKING:
    from pathlib import Path

    from envmedic.tree.walk import WalkResult


class Ahead:
    """What was begun for the environment that is probably meant; `close` it, whether or not it was used."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, Forked[Any]] = {}

    def begin(self, key: Hashable, work: Callable[[], object]) -> None:
        """Begin `work` in a fork. Whoever knows `key` may take it: it says of what the answer is true."""
        self._begun[key] = Forked(work)

    def take(self, key: Hashable) -> Forked[Any] | None:
        """What was begun under `key`, once; whoever takes it closes it."""
        return self._begun.pop(key, None)

    def close(self) -> None:
        """End what was not taken; from now on there is nothing."""
        while self._begun:
            self._begun.popitem()[1].close()

    def begin_survey(self, prefix: str) -> None:
        """Begin the survey of the files below `prefix`."""
        path = os.path.abspath(os.path.expanduser(prefix))  # noqa: PTH100, PTH111  # as `targets` does

        def work() -> WalkResult:
            from envmedic.tree.walk import survey  # noqa: PLC0415  # loaded in the fork, beside what is loaded here

            return survey(path)

        self.begin(("survey", path), work)

    def survey(self, prefix: Path) -> Forked[WalkResult] | None:
        """The survey, once, if it is that of `prefix`; whoever takes it closes it."""
        return self.take(("survey", str(prefix)))
