"""Flat facts by area: each module derives those that the module of the same name in `model` describes."""

from __future__ import annotations

from collections.abc import Callable

from envmedic.diagnosis.areas import extensions, files, native, toolchain
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts

AREAS: tuple[Callable[[Facts], Derived], ...] = (extensions.derive, files.derive, native.derive, toolchain.derive)
