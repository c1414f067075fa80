"""The type of derived facts."""

from __future__ import annotations

from envmedic.model.playbook import FactValue

Derived = dict[str, FactValue]
"""Values by name. An absent name was not observed; None was looked for and does not exist."""
