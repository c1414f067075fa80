"""Compatibility tables as frozen rows, decoded once, on first use.

Only the columns that rules read are declared; the files contain more (conda builds, cross checks,
disagreements between sources). None means that no verified source gave the value.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from envmedic.model.base import Model

T = TypeVar("T")
_DATA = Path(__file__).with_name("data")
Tags = dict[str, tuple[str, ...]]


class Release(Model, frozen=True, kw_only=True):
    """One torch release."""

    version: str
    release_date: str | None = None
    """Day of the first upload (ISO 8601, UTC)."""
    lts: bool
    requires_python: str | None
    torchvision: str
    """The recommended companion."""
    torchaudio: str
    triton: str | None
    """Requirement of the Linux CUDA wheels."""
    triton_marker: str | None
    source: tuple[str, ...]


class PythonWheels(Model, frozen=True, kw_only=True):
    """Python tags of torch's wheels on the default index, for one platform; ``t``: free-threaded."""

    torch: str
    platform: str
    python: tuple[str, ...]
    source: tuple[str, ...]


class DefaultWheel(Model, frozen=True, kw_only=True):
    """The build of a torch release on the default index, for each platform."""

    torch: str
    variants: dict[str, str]
    file_tags: tuple[str, ...]
    """Of the Linux x86_64 wheel."""
    source: tuple[str, ...]


class Variant(Model, frozen=True, kw_only=True):
    """One torch release built for one CUDA version, or for the CPU."""

    torch: str
    variant: str
    cuda: str | None
    python: tuple[str, ...] | None
    platforms: tuple[str, ...] | None
    arch_linux_x86_64: tuple[str, ...] | None = None
    arch_linux_aarch64: tuple[str, ...] | None = None
    ptx_linux_x86_64: bool | None = None
    default_on: tuple[str, ...]
    published: bool
    source: tuple[str, ...]

    def architectures(self, platform: str) -> tuple[str, ...] | None:
        """Compute capabilities with SASS on `platform`, or None when unknown."""
        lists = {"linux_x86_64": self.arch_linux_x86_64, "linux_aarch64": self.arch_linux_aarch64}
        return lists.get(platform)


class Companion(Model, frozen=True, kw_only=True):
    """One release of torchvision or torchaudio."""

    name: str
    version: str
    torch: tuple[str, ...]
    """Torch releases of which it is a companion."""
    spec: str | None
    """Torch versions that it accepts."""
    declared: bool
    """Whether its own metadata says so."""
    requires_python: str | None
    python: Tags
    """Platform → Python tags of its wheels; ``py3`` fits every Python."""
    yanked: bool
    recommended_for: tuple[str, ...]
    source: tuple[str, ...]


class CompanionVariant(Model, frozen=True, kw_only=True):
    """The CUDA variant of a range of companion releases on the default index."""

    name: str
    first: str
    last: str
    variant: str
    platform: str
    source: tuple[str, ...]


class TritonWheels(Model, frozen=True, kw_only=True):
    """One triton release with the Pythons that have a wheel, per platform."""

    version: str
    python: Tags
    source: tuple[str, ...]


class TorchAbi(Model, frozen=True, kw_only=True):
    """The binary interfaces of a torch release."""

    torch: str
    numpy_abi: dict[str, int | str]
    """By platform: 1 knows NumPy 1 only, 2 knows both."""
    source: tuple[str, ...]


class ChannelBuilds(Model, frozen=True, kw_only=True):
    """Builds of one torch release in a conda channel: one with its CUDA version, or all of a platform."""

    torch: str
    channel: str
    cuda: str | None = None
    arch_in_binary: tuple[str, ...] = ()
    """Compute capabilities with machine code, as found in the binary."""
    builds: tuple[str, ...] | str | None = None
    """``none``, those of another channel, or why they are not known."""
    linux_64: tuple[str, ...] | str | None = None
    """CUDA versions and ``cpu``."""
    linux_aarch64: tuple[str, ...] | str | None = None
    source: tuple[str, ...]


class TorchTables(Model, frozen=True, kw_only=True):
    """``torch_releases.json``."""

    releases: tuple[Release, ...]
    python_wheels: tuple[PythonWheels, ...]
    default_wheels: tuple[DefaultWheel, ...]
    variants: tuple[Variant, ...]
    companions: tuple[Companion, ...]
    companion_variants: tuple[CompanionVariant, ...]
    triton: tuple[TritonWheels, ...]
    conda: tuple[ChannelBuilds, ...]
    abi: tuple[TorchAbi, ...]


class HostCompilers(Model, frozen=True, kw_only=True):
    """Newest major versions that nvcc accepts, with remarks where updates of the toolkit differ."""

    gcc: str
    clang: str


class ToolkitRow(Model, frozen=True, kw_only=True):
    """One CUDA toolkit: drivers that run its programs, and capabilities of its compilers."""

    cuda: str
    driver_linux: str | None = None
    """Bundled driver, enough for every feature, PTX included."""
    minor_compatibility_linux: str | None = None
    """Oldest driver under minor-version compatibility: SASS only."""
    nvcc_min: str
    nvcc_max: str
    nvrtc: tuple[str, ...] | None = None
    host_compiler_max: HostCompilers | None = None
    source: tuple[str, ...]


class NvrtcClamp(Model, frozen=True, kw_only=True):
    """NVRTC versions for which torch asks for at most capability `clamp`, as PTX."""

    first: str
    last: str
    clamp: str
    source: tuple[str, ...]


class CudaTables(Model, frozen=True, kw_only=True):
    """``cuda_driver.json``."""

    toolkits: tuple[ToolkitRow, ...]
    nvrtc_clamps: tuple[NvrtcClamp, ...]


class SassRow(Model, frozen=True, kw_only=True):
    """Devices that run the machine code of one capability."""

    code: str
    devices_only: tuple[str, ...] | None = None
    """None: every device of the same major with an equal or higher minor."""
    exclude: tuple[str, ...]
    exclude_until_cuda: str | None = None
    source: tuple[str, ...]


class Capability(Model, frozen=True, kw_only=True):
    """A known compute capability."""

    cc: str
    arch: str
    source: tuple[str, ...] | str


class ArchTables(Model, frozen=True, kw_only=True):
    """``gpu_arch.json``."""

    sass_compatibility: tuple[SassRow, ...]
    capabilities: tuple[Capability, ...]


class ExtensionRow(Model, frozen=True, kw_only=True):
    """A distribution with CUDA code, and whether its binaries fit one torch only."""

    package: str
    distribution: str
    compiled_for_torch: bool
    stable_abi_from: str | None = None
    gpu_build: dict[str, str] | None = None
    """What its build is told besides FORCE_CUDA to compile the GPU code that it always has; None where it need not."""
    source: tuple[str, ...]


class NumpyRelease(Model, frozen=True, kw_only=True):
    """The last release of a NumPy series, and the Pythons that it has wheels for."""

    numpy: str
    abi: int
    wheels_min: str
    wheels_max: str
    source: str


class ExtensionTables(Model, frozen=True, kw_only=True):
    """``extensions.json``."""

    packages: tuple[ExtensionRow, ...]
    numpy: tuple[NumpyRelease, ...]


class _Head(Model, frozen=True, kw_only=True):
    """What each data file says of itself."""

    meta: dict[str, object]


def written() -> dict[str, str]:
    """Return the day (ISO 8601) on which each table was written, by the name of its file without the ending."""
    files = sorted(_DATA.glob("*.json"))
    return {path.stem: str(_decode(path.name, _Head).meta["generated"]) for path in files}


def read_data_file(name: str) -> bytes:
    """Return the bytes of a data file of this package."""
    return (_DATA / name).read_bytes()


def _decode(name: str, kind: type[T]) -> T:
    # a wrong type in the data fails here, with its path, and not later in a rule
    return msgspec.json.decode(read_data_file(name), type=kind)


@lru_cache(maxsize=1)
def torch_tables() -> TorchTables:
    """Releases, variants and companions."""
    return _decode("torch_releases.json", TorchTables)


@lru_cache(maxsize=1)
def cuda_tables() -> CudaTables:
    """Toolkits and the drivers that run them."""
    return _decode("cuda_driver.json", CudaTables)


@lru_cache(maxsize=1)
def arch_tables() -> ArchTables:
    """Compute capabilities and which code runs on which."""
    return _decode("gpu_arch.json", ArchTables)


@lru_cache(maxsize=1)
def extension_tables() -> ExtensionTables:
    """Distributions with CUDA code."""
    return _decode("extensions.json", ExtensionTables)


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


def numpy_releases() -> tuple[NumpyRelease, ...]:
    """The last release of each NumPy series, oldest first."""
    return extension_tables().numpy


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
