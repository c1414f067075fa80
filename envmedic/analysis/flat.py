"""Flat names of typed facts: ``toolchain.matching-home`` is the field ``matching_home`` of the toolchain."""

from __future__ import annotations

import msgspec

from envmedic.model.playbook import FactValue


def name_of(area: str, field: str) -> str:
    """Return the flat name of a field."""
    return f"{area}.{field.replace('_', '-')}"


def flat(area: str, value: msgspec.Struct) -> dict[str, FactValue]:
    """Return the fields of `value` by their flat names. A field that is UNSET was not observed and gets none."""
    fields = ((field, getattr(value, field)) for field in value.__struct_fields__)
    return {name_of(area, field): found for field, found in fields if found is not msgspec.UNSET}
