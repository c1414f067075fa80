"""The table of releases that are bound to torch, from the record. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import published
from envmedic.compat.table_rows import Coupling, Tags
from tests.tables.coupled import Coupled
from tests.tables.record import Record

_HERE = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.12"}
"""Where requirements are taken from wheels for Linux x86_64, the wheels that are read; sources of others agree."""
_PLATFORMS = ("linux_x86_64", "linux_aarch64")


def rows(record: Record) -> Iterator[Coupling]:
    """Yield a row for each release."""
    known = published.pythons(file for row in record.of("torch") for file in row.files)
    for row in record.coupled:
        yield _row(row, known)


def _row(row: Coupled, known: tuple[str, ...]) -> Coupling:
    sources = [published.LISTED.format(name=row.project)]
    if row.wheel is not None:
        read = "METADATA, libraries" if row.interface is not None else "METADATA"
        sources.insert(0, f"wheel: {row.wheel} ({read})")
    return Coupling(
        name=row.project,
        version=row.version,
        release_date=row.uploaded,
        requires_python=_spec(row.requires_python or "") or None,
        python=_tags(row, known),
        requires=dict(_requirements(row)),
        interface=row.interface,
        cuda=row.cuda,
        source=tuple(sources),
    )


def _requirements(row: Coupled) -> Iterator[tuple[str, str]]:
    for text in row.requires:
        found = Requirement(text)
        if found.marker is None or found.marker.evaluate(dict(_HERE)):
            yield canonicalize_name(found.name), _spec(str(found.specifier))


def _spec(text: str) -> str:
    return re.sub(r"\s", "", text)


def _tags(row: Coupled, known: tuple[str, ...]) -> Tags:
    found = {platform: list(tags) for platform, tags in published.wheel_tags(row.files, known).items()}
    for file in row.files:
        if file.filename.endswith("-any.whl"):
            for platform in _PLATFORMS:
                found.setdefault(platform, []).append("py3")
    return {platform: tuple(dict.fromkeys(found[platform])) for platform in _PLATFORMS if platform in found}
