"""Commands as an activated shell would run them: with the variables that the environment keeps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from envmedic import activation
from envmedic.engine.store.interruption import Interruption
from envmedic.model.ports import CommandResult, OnLine, Runner

_ENV = "/usr/bin/env"


class ActivatedRunner:
    """Another runner, with the variables of an activated `tree`; a signal stops the commands that it runs.

    The variables are read for each command, so that those of an earlier step count.
    """

    def __init__(self, inner: Runner, tree: Path, interruption: Interruption) -> None:
        self._inner = inner
        self._tree = tree
        self._interruption = interruption

    @property
    def python(self) -> Path:
        """The environment's interpreter as commands must name it."""
        return self._inner.python

    @property
    def tree(self) -> Path:
        """Where the environment's files lie for this process."""
        return self._tree

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        timeout_s: float | None = None,
    ) -> CommandResult:
        """Run `argv` to its end. Raises `Interrupted` when somebody asks to stop meanwhile."""
        own = activation.activated_values(self._tree, self._inner.python.parent.parent, os.environ)
        unset = [word for name, value in own.items() if value is None for word in ("-u", name)]
        overlay = activation.overlaid({}, own) | dict(env or {})
        with self._interruption.at_once():
            return self._inner(
                [_ENV, *unset, *argv] if unset else argv, env=overlay, on_line=on_line, timeout_s=timeout_s
            )
