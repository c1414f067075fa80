"""A runner without staging: commands run as they are, with the stand-ins or other modules in front."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envmedic import proc
from envmedic.model.ports import CommandResult, OnLine


@dataclass
class LocalRunner:
    """Runs commands with `variables`, and remembers their argv."""

    variables: Mapping[str, str] = field(default_factory=dict)
    python: Path = Path(sys.executable)
    tree: Path = Path(sys.prefix)
    ran: list[tuple[str, ...]] = field(default_factory=list)
    limit_s: float | None = None
    """Replaces the limit of every command."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        timeout_s: float | None = None,
    ) -> CommandResult:
        self.ran.append(tuple(argv))
        overlay = {**self.variables, **(env or {})}
        return proc.run(argv, env=overlay, on_line=on_line, timeout_s=self.limit_s or timeout_s)
