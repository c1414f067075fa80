"""Description of a fact in the playbooks' vocabulary: name, type and meaning."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model

FactType = Literal["bool", "int", "string", "version", "strings"]


class FactKind(Model, frozen=True, kw_only=True):
    """One fact that a playbook may ask for."""

    name: str
    type: FactType
    doc: str
    detail: str | None = None
    """Name of the fact with details, shown where this one is evidence."""
