"""Formats of lock files, one module each with a `FORMAT`.

Modules of this folder register themselves. `model.lock.LockFormatName` repeats the names for schemas and mypy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules

from envmedic.locks.lock_format import LockFormat
from envmedic.model.lock import LOCK_FORMAT_NAMES, LockFormatName
from envmedic.model.registries.registry import by_name, complete

LOCK_FORMATS: Mapping[LockFormatName, LockFormat] = complete(
    LOCK_FORMAT_NAMES,
    by_name(import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__)),
    stated="`LockFormatName` in envmedic/model/lock.py",
    add='envmedic/locks/formats/MODULE.py with `FORMAT = LockFormat(name="NAME", …)`',
)
"""Every format, by its name."""


def fitting(*, conda: bool) -> Sequence[LockFormatName]:
    """The formats that can hold a whole environment, the default one first."""
    return ("conda-lock",) if conda else ("pylock", "requirements")
