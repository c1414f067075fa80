"""Closed sets of names: a `Literal` for schemas and mypy, and a table with a row for each name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar


class Named(Protocol):
    """A row that carries its own name."""

    @property
    def name(self) -> str:
        """Name of the row."""


R = TypeVar("R")
N = TypeVar("N", bound=str)
K = TypeVar("K", bound=str)
NamedRow = TypeVar("NamedRow", bound=Named)


def by_name(rows: Iterable[NamedRow]) -> dict[str, NamedRow]:
    """`rows` under their names. Raises LookupError for two of one name."""
    found: dict[str, NamedRow] = {}
    # not a comprehension, which would keep the last of two rows without a word
    for row in rows:
        if found.setdefault(row.name, row) is not row:
            raise LookupError(f"Two rows are named {row.name!r}: {type(row).__name__} needs one for each name")
    return found


def complete(names: Iterable[N], rows: Mapping[K, R], *, stated: str, add: str) -> Mapping[N, R]:
    """`rows` in the order of `names`, which mypy knows as a `Literal`.

    Raises LookupError where one side has a name that the other lacks: `stated` is the file and the `Literal` of the
    names, `add` the row to write, with ``NAME`` and ``MODULE`` (the name as Python spells it) in the name's place.
    """
    ordered, table = tuple(names), dict[str, R](rows.items())
    # checked at import: the author of a new name meets the message on the first run
    for name in ordered:
        if name not in table:
            raise LookupError(f"{stated} has {name!r}, of which there is no row: add {_filled(add, name)}")
    for found in table:
        if found not in ordered:
            raise LookupError(f"{stated} lacks {found!r}, which has a row: add it there")
    # read-only: every importer has the same table
    return MappingProxyType({name: table[name] for name in ordered})


def _filled(add: str, name: str) -> str:
    return add.replace("NAME", name).replace("MODULE", name.replace("-", "_"))
