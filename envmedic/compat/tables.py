"""The compatibility tables in use, decoded once, on first use.

They are those of this package, or those of a newer data file that the user fetched (`data_files`), which has the tables
of `RENEWABLE` alone: what builds are told, and where packages are found, is never taken from there.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from envmedic.compat import data_files
from envmedic.compat.table_rows import (
    ArchTables,
    Companion,
    Coupling,
    CouplingTables,
    CudaTables,
    DefaultWheel,
    ExtensionRow,
    ExtensionTables,
    NumpyRelease,
    PythonWheels,
    Release,
    SassRow,
    ToolkitRow,
    TorchTables,
    Variant,
)
from envmedic.model.base import Model

T = TypeVar("T")
_DATA = Path(__file__).with_name("data")
_GZIP = 16 + zlib.MAX_WBITS
"""For zlib; the module gzip would load a dozen others."""
RENEWABLE: dict[str, type[Any]] = {
    "torch_releases": TorchTables,
    "cuda_driver": CudaTables,
    "gpu_arch": ArchTables,
    "couplings": CouplingTables,
}
"""Tables that a data file may bring: rows of versions, variants and capabilities, each of its own form."""


class _Meta(Model, frozen=True, kw_only=True):
    generated: str


class _Dated(Model, frozen=True, kw_only=True):
    """What each shipped table says of itself."""

    meta: _Meta


def read_data_file(name: str) -> bytes:
    """Return the bytes of a data file of this package."""
    return read_packed(_DATA / name)


def read_packed(file: Path) -> bytes:
    """Return the bytes of a data file of envmedic; a wheel has it packed."""
    packed = file.with_name(f"{file.name}.gz")
    return zlib.decompress(packed.read_bytes(), _GZIP) if packed.exists() else file.read_bytes()


@lru_cache(maxsize=1)
def shipped_days() -> dict[str, str]:
    """Return the day (ISO 8601) of each shipped table, by the name of its file without the ending."""
    names = sorted({path.name.removesuffix(".gz") for path in _DATA.glob("*.json*")})
    return {
        name.removesuffix(".json"): msgspec.json.decode(read_data_file(name), type=_Dated).meta.generated
        for name in names
    }


def shipped_version() -> str:
    """Return the version of the shipped tables, which is the day of the newest one."""
    return data_files.version_of(max(shipped_days().values()))


@lru_cache(maxsize=1)
def chosen() -> data_files.Chosen:
    """Return the data file in use: the newest one, or the pinned one; its `found` is None for the shipped tables."""
    return data_files.choose(RENEWABLE, shipped_version)


def forget() -> None:
    """Let the tables be chosen and read anew, after a data file was written."""
    for value in tuple(globals().values()):
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def written() -> dict[str, str]:
    """Return the day (ISO 8601) on which each table in use was written."""
    found = chosen().found
    return {**shipped_days(), **(found.days if found is not None else {})}


def version() -> str:
    """Return the version of the tables in use."""
    found = chosen().found
    return found.version if found is not None else shipped_version()


def _table(name: str, kind: type[T]) -> T:
    found = chosen().found
    if found is not None and (table := found.tables.get(name)) is not None:
        return cast("T", table)
    # a wrong type in the data fails here, with its path, and not later in a rule
    return msgspec.json.decode(read_data_file(f"{name}.json"), type=kind)


_LEARNED: list[TorchTables] = []
"""What this process has learned of releases that no table has yet."""


def learn(rows: TorchTables) -> None:
    """Add rows of a torch that is newer than the tables. A companion that is known already has them too from now on."""
    _LEARNED.append(rows)
    forget()


def is_learned(torch: str) -> bool:
    """Whether what is known of a torch was read from its own wheel by this process."""
    return any(row.version == torch for rows in _LEARNED for row in rows.releases)


@lru_cache(maxsize=1)
def torch_tables() -> TorchTables:
    """Releases, variants and companions."""
    found = _table("torch_releases", TorchTables)
    for rows in _LEARNED:
        both = ((name, (*getattr(found, name), *getattr(rows, name))) for name in found.__struct_fields__)
        found = TorchTables(**dict(both))
    return found


@lru_cache(maxsize=1)
def cuda_tables() -> CudaTables:
    """Toolkits and the drivers that run them."""
    return _table("cuda_driver", CudaTables)


@lru_cache(maxsize=1)
def arch_tables() -> ArchTables:
    """Compute capabilities and which code runs on which."""
    return _table("gpu_arch", ArchTables)


@lru_cache(maxsize=1)
def extension_tables() -> ExtensionTables:
    """Distributions with CUDA code."""
    return _table("extensions", ExtensionTables)


@lru_cache(maxsize=1)
def releases() -> dict[str, Release]:
    """Torch releases by version, oldest first."""
    # in the order of the file, which policies use to measure the distance of two releases
    return {row.version: row for row in torch_tables().releases}


@lru_cache(maxsize=1)
def numpy_generations() -> dict[str, int]:
    """The generation of NumPy's binary interface that each torch release knows on Linux: 1, or 2 for both."""
    # Linux x86_64 has a wheel of every release, other platforms do not
    found = ((row.torch, row.numpy_abi.get("linux_x86_64")) for row in torch_tables().abi)
    return {torch: generation for torch, generation in found if isinstance(generation, int)}


@lru_cache(maxsize=1)
def coupling_tables() -> CouplingTables:
    """Releases of what is bound to torch, and of NumPy."""
    return _table("couplings", CouplingTables)


@lru_cache(maxsize=1)
def _couplings() -> dict[tuple[str, str], Coupling]:
    return {(row.name, row.version): row for row in coupling_tables().releases}


def coupling(name: str, version: str) -> Coupling | None:
    """What a release needs of torch; None for one that the tables do not have."""
    return _couplings().get((name, version))


def numpy_releases() -> tuple[NumpyRelease, ...]:
    """The last release of each NumPy series, oldest first."""
    return coupling_tables().numpy


@lru_cache(maxsize=1)
def variants() -> dict[tuple[str, str], Variant]:
    """Torch builds by (release, variant)."""
    return {(row.torch, row.variant): row for row in torch_tables().variants}


@lru_cache(maxsize=1)
def toolkits() -> dict[str, ToolkitRow]:
    """CUDA toolkits by ``major.minor``."""
    return {row.cuda: row for row in cuda_tables().toolkits}


@lru_cache(maxsize=8)
def companions(name: str) -> dict[str, Companion]:
    """Releases of torchvision or torchaudio by version, oldest first."""
    return {row.version: row for row in torch_tables().companions if row.name == name}


@lru_cache(maxsize=1)
def extensions() -> dict[str, ExtensionRow]:
    """Distributions with CUDA code by normalised name."""
    return {row.distribution: row for row in extension_tables().packages}


@lru_cache(maxsize=1)
def sass_rows() -> dict[str, SassRow]:
    """Rows of the SASS table by code capability."""
    return {row.code: row for row in arch_tables().sass_compatibility}


@lru_cache(maxsize=1)
def default_wheels() -> dict[str, DefaultWheel]:
    """Default builds by torch release."""
    return {row.torch: row for row in torch_tables().default_wheels}


@lru_cache(maxsize=1)
def python_wheels() -> dict[tuple[str, str], PythonWheels]:
    """Python tags on the default index by (release, platform)."""
    return {(row.torch, row.platform): row for row in torch_tables().python_wheels}
