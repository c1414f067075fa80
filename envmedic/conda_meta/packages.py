"""Conversion of records to `CondaPackage`, the type that the rest of envmedic uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from envmedic.conda_meta import urls
from envmedic.conda_meta.records import BriefRecord, Records
from envmedic.model.conda import CondaPackage

# conda packages of old setuptools projects install an egg-info, as a folder or as a single file
_METADATA = (".dist-info/METADATA", ".egg-info/PKG-INFO", ".egg-info")
_SEPARATORS = re.compile(r"[-_.]+")


def packages(records: Records[BriefRecord]) -> tuple[CondaPackage, ...]:
    """Return every package with a readable record, sorted by name."""
    found = (package(where, record) for where, record in records.packages.items())
    return tuple(sorted(found, key=lambda item: item.name))


def package(where: str, record: BriefRecord) -> CondaPackage:
    """Return the package of the record in the file `where`, relative to the prefix."""
    # credentials are dropped here, once: everything made from a package may be shown or sent in a report
    url = urls.without_credentials(record.url or "")
    filename = record.fn or url.rpartition("/")[2] or f"{record.name}-{record.version}-{record.build}"
    return CondaPackage(
        name=record.name,
        version=record.version,
        build=record.build,
        build_number=record.build_number,
        channel=_channel(record, url),
        subdir=record.subdir or _subdir(url),
        filename=filename,
        url=url,
        md5=record.md5,
        sha256=record.sha256,
        size_bytes=record.size,
        noarch=_noarch(record),
        depends=tuple(record.depends),
        constrains=tuple(record.constrains),
        track_features=_features(record.track_features),
        requested=_requested(record),
        distributions=distributions(item.path for item in record.recorded()),
        prefixed=any(item.names_prefix for item in record.recorded()),
        record=where,
    )


def _channel(record: BriefRecord, url: str) -> str:
    """Return the address of the channel."""
    # from the package's URL where possible: conda may record the channel as a bare name
    if url.count("/") > 1 and "://" in url:
        return urls.without_subdir(url.rpartition("/")[0])
    return urls.without_subdir(urls.without_credentials(record.channel or ""))


def _subdir(url: str) -> str:
    folder = url.rpartition("/")[0].rpartition("/")[2]
    return folder if urls.is_subdir(folder) else ""


def _noarch(record: BriefRecord) -> Literal["python", "generic"] | None:
    if record.of_python:
        return "python"
    return "generic" if record.noarch else None


def _features(stated: str | list[str] | None) -> tuple[str, ...]:
    words = re.split(r"[,\s]+", stated) if isinstance(stated, str) else stated or []
    return tuple(word for word in words if word)


def _requested(record: BriefRecord) -> tuple[str, ...]:
    """Return the specs by which the user requested a package."""
    # py-rattler writes a list; conda a single text, with the word "None" for a dependency
    stated = record.requested_specs or ([record.requested_spec] if record.requested_spec else [])
    return tuple(item for item in stated if item and item != "None")


def distributions(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the normalised names of the Python distributions whose metadata is among `paths`."""
    found = (path for path in paths if path.endswith(_METADATA))
    return tuple(dict.fromkeys(name for path in found if (name := _distribution(path))))


def _distribution(path: str) -> str | None:
    """Return the name in ``…/site-packages/Name-1.0.dist-info/METADATA``; None for other places."""
    folder, entry = path.rpartition("/")[::2]
    if entry in {"METADATA", "PKG-INFO"}:
        folder, entry = folder.rpartition("/")[::2]
    # metadata in other folders is a vendored copy (setuptools/_vendor), which is not installed for Python
    if folder != "site-packages" and not folder.endswith("/site-packages"):
        return None
    name = entry.rpartition(".")[0].partition("-")[0]
    return _SEPARATORS.sub("-", name).lower() or None


def dist_string(item: CondaPackage) -> str:
    """Return the name of a package in conda's history: ``conda-forge/linux-64::numpy-1.26.4-py311h64a7726_0``."""
    channel = urls.canonical(item.channel) or "<unknown>"
    place = f"{channel}/{item.subdir}" if item.subdir else channel
    return f"{place}::{item.name}-{item.version}-{item.build}"
