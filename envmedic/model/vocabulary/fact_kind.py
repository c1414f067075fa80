"""What a fact of the playbooks' vocabulary is: its name, type and meaning."""

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
    """Name of the fact that says more where this one is told as evidence."""
