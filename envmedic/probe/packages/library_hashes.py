"""Hashes of single files that a text concerns: a file of the recorded size may hold something else."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from envmedic.conda_meta import records
from envmedic.model.facts import Distribution, DistributionFiles, Environment
from envmedic.probe.conda import conda_files
from envmedic.probe.metadata import normalise, parse_record
from envmedic.probe.packages import contents
from envmedic.probe.readable import read_bytes

_ERASED = b"\xff" * 16
_Recorded = tuple[DistributionFiles, list[tuple[str, str]]]
"""A distribution or conda package of which nothing is compared yet, and paths of its files with their hashes."""


def compare(environment: Environment, names: Collection[str], files: Collection[str] = ()) -> Environment:
    """Return `environment` with what files hold whose content decides, as ``--deep`` finds it for all.

    These are the libraries of the distributions and conda packages `names`, and the `files`, relative to the prefix.
    Files of distributions that conda installed are compared with conda's records: their RECORD lists hashes from before
    conda rewrites the prefix in files.
    """
    prefix = Path(os.path.realpath(environment.real_prefix))
    # messages name libraries by links, and conda's records have the hashes of what these lead to
    files = {*files, *(os.path.relpath(os.path.realpath(prefix / path), prefix) for path in files)}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found: dict[str, tuple[DistributionFiles, tuple[str, ...]]] = {}
        for report, rows in (*_of_wheels(environment, names, files), *_of_conda(environment, names, files)):
            read = pool.map(contents.digest, (prefix / path for path, _ in rows))
            altered = [path for (path, sha256), there in zip(rows, read, strict=True) if there not in {None, sha256}]
            if altered:
                found[report.metadata_path] = (report, tuple(altered))
    if not found:
        return environment
    known = {item.metadata_path: item for item in environment.files or ()}
    for where, (report, paths) in found.items():
        known[where] = _with(known.get(where, report), paths, prefix)
    return msgspec.structs.replace(environment, files=tuple(known.values()))


def _of_wheels(environment: Environment, names: Collection[str], files: Collection[str]) -> Iterator[_Recorded]:
    tops = {path.removeprefix(f"{item.site}/").partition("/")[0] for item in environment.distributions for path in files
            if path.startswith(f"{item.site}/")}  # fmt: skip
    for item in environment.distributions:
        own = item.has_record and item.owner != "conda" and not item.outside_prefix
        if own and (item.name in names or tops.intersection(item.import_names)):
            yield _empty(item.name, item.version, item.metadata_path), list(_rows(environment, item, names, files))


def _rows(
    environment: Environment, item: Distribution, names: Collection[str], files: Collection[str]
) -> Iterator[tuple[str, str]]:
    record = parse_record(read_bytes(Path(environment.real_prefix, item.metadata_path, "RECORD")) or b"")
    for path, sha256 in zip(record.paths, record.hashes, strict=False):
        place = os.path.normpath(f"{item.site}/{path}")
        asked = place in files or (item.name in names and contents.is_library(path))
        if asked and sha256.startswith("sha256=") and not path.startswith(("/", "..")):
            yield place, sha256


def _of_conda(environment: Environment, names: Collection[str], files: Collection[str]) -> Iterator[_Recorded]:
    if environment.conda is None:
        return
    prefix = Path(environment.real_prefix)
    # with the hashes of all: a record that is damaged in these alone is left out, as any other
    installed = records.read(prefix, python=environment.interpreter.version)
    index = conda_files.index(installed)
    # another installer has put its own files over these
    over = {item.package for item in environment.conda.overlaid}
    for where, record in installed.packages.items():
        pairs = (
            (path, conda_files.digest_of(item.installed_sha256))
            for path, item in record.files(installed.site_packages)
            if path in files or (record.name in names and contents.is_library(path))
        )
        # where several packages list a path, its content is that of the last one linked
        own = {path for path, _ in index.files[where]}.difference(index.contested)
        rows = [(path, sha256) for path, sha256 in pairs if sha256 is not None and path in own]
        if rows and record.name not in over:
            yield _empty(normalise(record.name), record.version, where), rows


def _empty(name: str, version: str, where: str) -> DistributionFiles:
    return DistributionFiles(distribution=name, version=version, metadata_path=where, recorded=0, matching=0)


def _with(before: DistributionFiles, altered: tuple[str, ...], prefix: Path) -> DistributionFiles:
    """The comparison with the altered files: damage of libraries and of modules that a crash has left so, edits of other modules."""
    damaged = [path for path in altered if contents.is_library(path) or _left_by_a_crash(prefix / path)]
    changed = [path for path in before.changed if path not in altered]
    edited = [path for path in altered if path not in damaged]
    return msgspec.structs.replace(
        before,
        cut_off=tuple(dict.fromkeys((*before.cut_off, *damaged))),
        changed=(*changed, *edited),
        changed_count=before.changed_count - (len(before.changed) - len(changed)) + len(edited),
    )


def _left_by_a_crash(path: Path) -> bool:
    """Whether a module holds what no editor writes: zeros, as a crash leaves them, or a block of an erased flash disk."""
    if posixpath.splitext(path)[1] != ".py":
        return False
    data = read_bytes(path) or b""
    return b"\0" in data or _ERASED in data
