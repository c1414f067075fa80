"""What takes its time outside of this process, begun before anything else: the waiting then costs nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import IO

from envmedic.model.facts import Interpreter
from envmedic.probe import interpreter, layout
from envmedic.proc.question import Question
from envmedic.tree import walking
from envmedic.tree.walking import Survey


class Begun:
    """An observation of the environment at `prefix` that has begun: its interpreter is asked, its files are surveyed.

    `close` it. Raises `NotAnEnvironment`.
    """

    def __init__(self, prefix: Path) -> None:
        self.layout = layout.read(Path(os.path.abspath(prefix)))  # noqa: PTH100  # the user's spelling, links kept
        self._survey = _Surveyed(self.layout.prefix)
        self._interpreter = interpreter.Asked(self.layout)

    def interpreter(self) -> Interpreter:
        """Wait for the interpreter's answer; once."""
        return self._interpreter.value()

    def survey(self) -> Survey:
        """Wait for the survey of the files; once. Raises OSError as `tree.survey` does."""
        return self._survey.value()

    def close(self) -> None:
        """End what has not been waited for."""
        self._interpreter.close()
        self._survey.close()


class _Surveyed:
    """The digest of a tree and the sizes in it, by another process where there is a core for one.

    Threads would take turns: thirty thousand short calls of the system, each with a wait for this interpreter.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self._question: Question | None = None
        self._output: IO[bytes] | None = None
        if len(os.sched_getaffinity(0)) > 1 and sys.executable:
            self._start()

    def _start(self) -> None:
        # isolated mode passes over the variable that says how names are decoded
        options = ["-I", "-S", "-B", "-X", f"utf8={sys.flags.utf8_mode}"]
        try:
            self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
            argv = [sys.executable, *options, walking.__file__, str(self._prefix)]
            self._question = Question(argv, timeout_s=None, output=self._output.fileno())
        except OSError:
            self._question = None  # no process or no room for its answer to be had: `value` does it

    def value(self) -> Survey:
        """Its answer, else a survey made here, which says what is wrong."""
        return self._answer() or walking.survey(self._prefix)

    def _answer(self) -> Survey | None:
        if self._question is None or self._output is None or self._question.answer().returncode != 0:
            return None
        self._output.seek(0)
        try:
            return walking.unpacked(self._output.read())
        except ValueError:  # cut off by a full disk
            return None

    def close(self) -> None:
        """End the process."""
        if self._question is not None:
            self._question.close()
        if self._output is not None:
            self._output.close()
