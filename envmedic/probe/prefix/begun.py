"""What takes its time outside of this process, begun before anything else: the waiting then costs nothing."""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.ahead import Ahead
from envmedic.forked import Forked
from envmedic.model.facts import Interpreter
from envmedic.probe import layout
from envmedic.probe.prefix import interpreter
from envmedic.tree.walk import WalkResult, survey


class Begun:
    """An observation of the environment at `prefix` that has begun: its interpreter is asked, its files are surveyed.

    `ahead` may hold the survey already. `close` it. Raises `NotAnEnvironment`.
    """

    def __init__(self, prefix: Path, ahead: Ahead | None = None) -> None:
        self.layout = layout.read(Path(os.path.abspath(prefix)))  # noqa: PTH100  # the user's spelling, links kept
        # threads would take turns: thirty thousand short calls of the system, each with a wait for this interpreter
        surveyed = None if ahead is None else ahead.survey(self.layout.prefix)
        self._survey = surveyed or Forked(lambda: survey(self.layout.prefix))
        self._interpreter = interpreter.InterpreterQuery(self.layout)

    def interpreter(self) -> Interpreter:
        """Wait for the interpreter's answer; once."""
        return self._interpreter.value()

    def survey(self) -> WalkResult:
        """Wait for the survey of the files; once. Raises OSError as `tree.survey` does."""
        return self._survey.value()

    def close(self) -> None:
        """End what has not been waited for."""
        self._interpreter.close()
        self._survey.close()
