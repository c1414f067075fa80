"""Which lines of envmedic an input reaches, so that inputs which get deeper are mutated further.

By `sys.settrace`, which every supported Python has; code that has shown nothing new for long is no longer traced,
so that a fuzzer is slowed down at its beginning alone.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import envmedic

_ROOT = str(Path(envmedic.__file__).parent)
_PATIENCE = 300
"""Calls of a function without a new line after which it is left alone."""
_Trace = Callable[[FrameType, str, Any], Any]


class Reach:
    """The lines seen so far."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int, int]] = set()
        """Pairs of lines, one after the other, of each function."""
        self._calls: Counter[CodeType] = Counter()
        self._new = False

    def of(self, run: Callable[[bytes], object], data: bytes) -> bool:
        """Run it; whether something new was reached. Errors pass through."""
        self._new = False
        sys.settrace(self._call)
        try:
            run(data)
        finally:
            sys.settrace(None)
        return self._new

    def _call(self, frame: FrameType, event: str, _: object) -> _Trace | None:
        code = frame.f_code
        if event != "call" or self._calls[code] > _PATIENCE or not code.co_filename.startswith(_ROOT):
            return None
        self._calls[code] += 1
        last = 0

        def line(inner: FrameType, what: str, _: object) -> _Trace:
            nonlocal last
            if what == "line":
                pair = (code, last, inner.f_lineno)
                if pair not in self.seen:
                    self.seen.add(pair)
                    self._calls[code] = 0
                    self._new = True
                last = inner.f_lineno
            return line

        return line
