"""Hashes of the libraries of single distributions: a library of the recorded size may hold something else."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from envmedic.model.facts import Distribution, DistributionFiles, Environment
from envmedic.probe.metadata import parse_record
from envmedic.probe.packages import contents
from envmedic.probe.readable import read_bytes


def compare(environment: Environment, wanted: Collection[str]) -> Environment:
    """Return `environment` with what the libraries of the `wanted` distributions hold, as ``--deep`` finds it for all.

    conda's packages are left out: their RECORD lists hashes from before conda rewrites the prefix in files.
    """
    own = [
        item
        for item in environment.distributions
        if item.name in wanted and item.has_record and item.owner != "conda" and not item.outside_prefix
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = {item.metadata_path: _altered(Path(environment.real_prefix), item, pool) for item in own}
    altered = {path: names for path, names in found.items() if names}
    if not altered:
        return environment
    known = {item.metadata_path: item for item in environment.files or ()}
    for item in own:
        if item.metadata_path in altered:
            known[item.metadata_path] = _report(item, known.get(item.metadata_path), altered[item.metadata_path])
    return msgspec.structs.replace(environment, files=tuple(known.values()))


def _altered(prefix: Path, item: Distribution, pool: ThreadPoolExecutor) -> tuple[str, ...]:
    """The libraries, relative to the prefix, that can be read and have another hash than recorded."""
    record = parse_record(read_bytes(prefix / item.metadata_path / "RECORD") or b"")
    rows = [
        (os.path.normpath(f"{item.site}/{path}"), sha256)
        for path, sha256 in zip(record.paths, record.hashes, strict=False)
        if sha256.startswith("sha256=") and contents.is_library(path) and not path.startswith(("/", ".."))
    ]
    read = pool.map(contents.digest, (prefix / path for path, _ in rows))
    return tuple(path for (path, sha256), there in zip(rows, read, strict=True) if there not in {None, sha256})


def _report(item: Distribution, known: DistributionFiles | None, altered: tuple[str, ...]) -> DistributionFiles:
    before = known or DistributionFiles(
        distribution=item.name, version=item.version, metadata_path=item.metadata_path, recorded=0, matching=0
    )
    changed = tuple(path for path in before.changed if path not in altered)
    return msgspec.structs.replace(
        before,
        cut_off=tuple(dict.fromkeys((*before.cut_off, *altered))),
        changed=changed,
        changed_count=before.changed_count - (len(before.changed) - len(changed)),
    )
