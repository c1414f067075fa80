"""The survey of an environment's files, begun before the rest of envmedic is loaded.

Loading takes one core a tenth of a second, the survey of a torch environment another: side by side they take one of
them. So this module imports next to nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from envmedic.forked import Forked

if TYPE_CHECKING:
    from pathlib import Path

    from envmedic.walking import Survey


class Ahead:
    """The survey of the files below `prefix`, which is probably the one that is meant; None begins nothing.

    `close` it, whether or not it was used.
    """

    def __init__(self, prefix: str | None) -> None:
        self._prefix = "" if prefix is None else os.path.abspath(os.path.expanduser(prefix))  # noqa: PTH100, PTH111  # as `targets` does
        self._survey: Forked[Survey] | None = None if prefix is None else Forked(self._surveyed)

    def survey(self, prefix: Path) -> Forked[Survey] | None:
        """The survey, once, if it is that of `prefix`; whoever takes it closes it."""
        if str(prefix) != self._prefix:
            return None
        survey, self._survey = self._survey, None
        return survey

    def close(self) -> None:
        """End it, unless it was taken; from now on there is none."""
        survey, self._survey = self._survey, None
        if survey is not None:
            survey.close()

    def _surveyed(self) -> Survey:
        from envmedic.walking import survey  # noqa: PLC0415  # loaded in the fork, beside what is loaded here

        return survey(self._prefix)
