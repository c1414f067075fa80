"""Patterns that are compiled late: they are right, and do what others do."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import pytest

import envmedic
from envmedic.regex import compile_late

LATE: Any = compile_late  # a class when it runs


def test_every_pattern_compiles() -> None:
    found = 0
    for module in pkgutil.walk_packages(envmedic.__path__, "envmedic."):
        if module.name.startswith(("envmedic.kernels", "envmedic.tui")) or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, LATE):
                assert isinstance(value.pattern, (str, bytes)), (module.name, name)
                found += 1
    assert found > 100


def test_it_is_used_like_any_pattern() -> None:
    late = compile_late(r"(?P<word>\w+)", re.ASCII)
    match = late.search("- word")
    assert match is not None
    assert (match["word"], late.sub("x", "a b"), late.groupindex) == ("word", "x x", {"word": 1})


def test_a_mistake_is_raised_by_the_first_use() -> None:
    late = compile_late("(")
    with pytest.raises(re.error, match="missing"):
        late.search("")
