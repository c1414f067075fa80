"""OpenMP runtimes by file name, and the conda packages of MKL and of OpenMP; no file is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from envmedic.model.facts import NativePackage, OpenMpRuntime
from envmedic.probe import layout
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.readable import names

Kind = Literal["libgomp", "libiomp5", "libomp"]
_KINDS: tuple[Kind, ...] = ("libgomp", "libiomp5", "libomp")
_RUNTIME = re.compile(r"(?:^|/)(?P<kind>libgomp|libiomp5|libomp)(?:-[0-9a-f]{4,})?\.so(?:\.[\d.]+)?$")
"""auditwheel puts a hash into the names of the copies that it makes: ``libgomp-a34b3233.so.1.0.0``."""
_CONDA_RECORD = re.compile(r"(?P<name>.+)-([^-]*)-([^-]*)\.json")
_NATIVE = frozenset({"mkl", "mkl-service", "intel-openmp", "llvm-openmp", "libgomp", "_openmp_mutex"})


def runtimes(scans: Iterable[Scan], prefix: Path) -> tuple[OpenMpRuntime, ...]:
    """Every file of an OpenMP runtime that a RECORD lists, or that lies in the ``lib`` of the prefix, by path."""
    owners: dict[str, str | None] = {path: owner for scan in scans for path, owner in _recorded(scan, prefix)}
    for name in names(prefix / "lib"):
        if _RUNTIME.search(name):
            owners.setdefault(f"lib/{name}", None)
    found = {path: owner for path, owner in owners.items() if (prefix / path).is_file()}
    firsts: dict[str, str] = {}
    # files first, so that `same_as` of a link names its file and not the other way round
    files_before_links = sorted(found, key=lambda path: ((prefix / path).is_symlink(), path))
    return tuple(_runtime(path, found[path], firsts, prefix) for path in files_before_links)


def _recorded(scan: Scan, prefix: Path) -> Iterator[tuple[str, str]]:
    for installed in scan.installed:
        for path in installed.paths:
            if ".so" in path and "omp" in path and _RUNTIME.search(path):
                where = Path(os.path.normpath(scan.site / path))  # data files of wheels: ../../../lib/libiomp5.so
                yield layout.relative(where, prefix), installed.distribution.name


def _runtime(path: str, owner: str | None, firsts: dict[str, str], prefix: Path) -> OpenMpRuntime:
    real = os.path.realpath(prefix / path)
    first = firsts.setdefault(real, path)
    match = _RUNTIME.search(path)
    kind = next(item for item in _KINDS if match is not None and match["kind"] == item)
    return OpenMpRuntime(path=path, kind=kind, distribution=owner, same_as=first if first != path else None)


def packages(prefix: Path) -> tuple[NativePackage, ...]:
    """Those of conda that concern MKL and OpenMP, from ``conda-meta/NAME-VERSION-BUILD.json``."""
    # names contain hyphens, versions and builds do not
    records = map(_CONDA_RECORD.fullmatch, names(prefix / "conda-meta"))
    parts = sorted(match.groups() for match in records if match is not None and match["name"] in _NATIVE)
    return tuple(NativePackage(name=name, version=version, build=build) for name, version, build in parts)
