"""Guides to extension packages from the data: the torch of their wheels, and build requirements."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from envmedic.compat import tables, versions
from envmedic.model.base import Model

_SPAN = re.compile(r"(?P<first>\d[\d.]*) to (?P<last>\d[\d.]*)")
_UP_TO = re.compile(r"up to (?P<last>\d[\d.]*)")
_AT_LEAST = re.compile(r">=\s*(?P<first>\d[\d.]*)")
_ONE = re.compile(r"\d[\d.]*")
_NOT_A_RELEASE = frozenset({"torch", "prebuilt_for_torch", "prebuilt_variants"})
_CAPABILITY = re.compile(r"\d+\.\d")


class Row(Model, frozen=True, kw_only=True):
    """Releases of the package, with the torch releases that have wheels."""

    release: str | None
    """None for any release."""
    torch: str
    """In the words of the data, such as ``2.4.0 to 2.8.0``."""
    variants: str | None = None
    """CUDA variants with wheels, in the words of the data."""


class Guide(Model, frozen=True, kw_only=True):
    """The guide to one package."""

    name: str
    rows: tuple[Row, ...]
    url: str | None
    """Template of the URL of its wheels; None without wheels, or with wheels on the default index."""
    capability_min: str | None
    """Lowest compute capability that it supports."""
    needs: tuple[str, ...]
    """Requirements of a build, in the words of the data."""
    flags: tuple[str, ...]
    """Installer options for a build."""
    source: str


class _Raw(msgspec.Struct, frozen=True):
    distribution: str
    coupling: dict[str, Any] = {}
    wheels: dict[str, Any] = {}
    build: dict[str, Any] = {}
    gpu_min: str | None = None
    source: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True):
    packages: tuple[_Raw, ...]


@lru_cache(maxsize=1)
def guides() -> dict[str, Guide]:
    """Return the guide to every package of the data, by normalised name."""
    table = msgspec.json.decode(tables.read_data_file("extensions.json"), type=_Table)
    return {raw.distribution: _guide(raw) for raw in table.packages}


def _guide(raw: _Raw) -> Guide:
    url = str(raw.wheels.get("url", ""))
    capability = _CAPABILITY.match(raw.gpu_min or "")
    return Guide(
        name=raw.distribution,
        rows=tuple(row for row in map(_row, raw.coupling.get("rows", ())) if row is not None),
        url=url if "://" in url else None,
        capability_min=capability[0] if capability else None,
        needs=tuple(map(str, raw.build.get("needs", ()))),
        flags=tuple(map(str, raw.build.get("flags", ()))),
        source="; ".join(raw.source),
    )


def _row(row: object) -> Row | None:
    if not isinstance(row, dict):
        return None
    torch = row.get("torch") or row.get("prebuilt_for_torch")
    if not isinstance(torch, str):
        return None
    # the column of the release has the package's own name, so it is found as the one that is no other
    release = next((str(value) for key, value in row.items() if key not in _NOT_A_RELEASE), None)
    variants = row.get("prebuilt_variants")
    return Row(release=release, torch=torch, variants=None if variants is None else str(variants))


def covers(words: str, torch: str) -> bool:
    """Whether the data's words for a range of torch releases cover `torch`. A minor release covers its patches."""
    release = versions.dotted(versions.public(torch))
    # spans before single versions: the ends of a span would else be read as single versions
    bounds = [(found.group("first"), found.group("last")) for found in _SPAN.finditer(words)]
    if any(versions.dotted(first) <= release and _until(release, last) for first, last in bounds):
        return True
    at_least, up_to = _AT_LEAST.search(words), _UP_TO.search(words)
    if at_least is not None:
        return release >= versions.dotted(at_least["first"])
    if up_to is not None:
        return _until(release, up_to["last"])
    singles = _ONE.findall(_SPAN.sub("", words))
    return any(release[: len(versions.dotted(one))] == versions.dotted(one) for one in singles)


def _until(release: tuple[int, ...], last: str) -> bool:
    end = versions.dotted(last)
    # compared to as many components as the end has: `to 2.5` includes 2.5.1
    return release[: len(end)] <= end


def fitting(guide: Guide, torch: str) -> tuple[Row, ...]:
    """Return the rows with wheels for `torch`."""
    return tuple(row for row in guide.rows if covers(row.torch, torch))
