"""From matches and facts to findings and a verdict."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envmedic.diagnosis.findings import diagnose
    from envmedic.diagnosis.vocabulary import derive

__all__ = ["derive", "diagnose", "prepare"]
_HOMES = {"derive": "envmedic.diagnosis.vocabulary", "diagnose": "envmedic.diagnosis.findings"}


def prepare() -> None:
    """Load what judges facts, while they are still waited for."""
    from envmedic.compat import tables  # noqa: PLC0415  # for facts alone

    for home in _HOMES.values():
        import_module(home)
    tables.torch_tables()


def __getattr__(name: str) -> object:
    """On first use: facts are observed before they are judged, and a text alone needs only half of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
