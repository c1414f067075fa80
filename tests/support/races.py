"""What others do in the moment between a look at a path and its use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def at(monkeypatch: pytest.MonkeyPatch, call: str, name: str, act: Callable[[], object]) -> None:
    """Have `act` happen right before `os` is first called so on a path that ends with `name`."""
    real, done = getattr(os, call), list[None]()

    def raced(path: str | Path, *arguments: object, **more: object) -> object:
        if not done and Path(path).name == name:
            done.append(None)
            act()
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, call, raced)
