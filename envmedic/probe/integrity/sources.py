"""Distributions whose metadata or source directory is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from envmedic.model.facts import Defect
from envmedic.probe.integrity import moved_sources
from envmedic.probe.packages.distributions import Installed, Scan
from envmedic.probe.prefix.import_paths import parse_pth
from envmedic.probe.readable import is_directory, read_text

_LARGEST = 1 << 20


def observe(prefix: Path, scans: Sequence[Scan], *, moved: tuple[str, str] | None) -> Iterator[Defect]:
    """Yield editable installs without their source, and distributions whose METADATA was emptied.

    `moved` is the former and the present path of a moved environment: sources may have moved along with it.
    """
    for scan in scans:
        for item in scan.installed:
            yield from _source(scan.site, item, moved)
            yield from _metadata(prefix, item)


def _source(site: Path, item: Installed, moved: tuple[str, str] | None) -> Iterator[Defect]:
    if item.distribution.origin.kind != "editable":
        return
    url = item.distribution.origin.url
    folders = [Path(unquote(urlsplit(url).path))] if url and url.startswith("file:") else []
    for path in item.paths:
        if path.endswith(".pth") and "/" not in path:
            added = parse_pth(read_text(site / path, _LARGEST) or "")
            folders += [Path(line) for line in added if line.startswith("/")]
    for folder in dict.fromkeys(folders):
        if not is_directory(folder):
            detail = f"its source {folder} is gone"
            now = _moved_along(folder, moved)
            yield Defect(
                kind="source-gone",
                path=item.distribution.metadata_path,
                distribution=item.distribution.name,
                detail=detail,
                names=str(folder),
                now=now,
                found=moved_sources.found(folder, item.distribution.name) if now is None else None,
            )
            return


def _moved_along(folder: Path, moved: tuple[str, str] | None) -> str | None:
    """Where a source is that moved with its environment: a project's directory was renamed with all that is in it."""
    if moved is None:
        return None
    before, after = map(Path, moved)
    while before.name == after.name and before.name:
        before, after = before.parent, after.parent
    if not folder.is_relative_to(before):
        return None
    found = after / folder.relative_to(before)
    return str(found) if is_directory(found) else None


def _metadata(prefix: Path, item: Installed) -> Iterator[Defect]:
    """The name of the directory still tells name and version, so that nothing else shows it."""
    folder = item.distribution.metadata_path
    if not folder.endswith(".dist-info") or item.distribution.outside_prefix:
        return
    try:
        size = (prefix / folder / "METADATA").stat().st_size
    except OSError:  # without METADATA there is no distribution: `leftovers` tells of it
        return
    if not size:
        yield Defect(kind="metadata", path=f"{folder}/METADATA", distribution=item.distribution.name, detail="is empty")
