"""From matches and facts to findings and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envmedic.diagnosis.findings import diagnose

if TYPE_CHECKING:
    from envmedic.diagnosis.vocabulary import derive

__all__ = ["derive", "diagnose", "prepare"]


def prepare() -> None:
    """Load what judges facts, while they are still waited for."""
    __getattr__("derive")


def __getattr__(name: str) -> object:
    """`derive` on first use: it loads what judges facts, which a text alone does not need."""
    if name != "derive":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from envmedic.diagnosis.vocabulary import derive  # noqa: PLC0415

    return derive
