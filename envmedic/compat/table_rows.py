"""Rows of the compatibility tables, with the columns that rules read. None means that no verified source gave the value."""

from __future__ import annotations

from envmedic.model.base import Model

Tags = dict[str, tuple[str, ...]]


class Release(Model, frozen=True, kw_only=True):
    """One torch release."""

    version: str
    release_date: str | None = None
    """str of the first upload (ISO 8601, UTC)."""
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
    """str → Python tags of its wheels; ``py3`` fits every Python."""
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
    numpy_abi: dict[str, int]
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


class NumpyRelease(Model, frozen=True, kw_only=True):
    """The last release of a NumPy series, and the Pythons that it has wheels for."""

    numpy: str
    abi: int
    wheels_min: str
    wheels_max: str
    source: str


class Coupling(Model, frozen=True, kw_only=True):
    """One release of a distribution that is bound to torch, as the default index has it."""

    name: str
    version: str
    release_date: str | None = None
    requires_python: str | None = None
    python: Tags
    """str → Python tags of its wheels; ``py3`` fits every Python; empty for a source archive alone."""
    requires: dict[str, str]
    """Torch and what else is bound to it, with the versions that its metadata accept; empty for any."""
    interface: str | None = None
    """Of torch's interfaces the one that its libraries use: ``stable`` for the stable one alone, ``torch`` for that of C++,
    ``none``; None: not read."""
    cuda: tuple[str, ...] = ()
    """CUDA releases or major releases whose runtime its libraries load."""
    source: tuple[str, ...]


class CouplingTables(Model, frozen=True, kw_only=True):
    """``couplings.json``."""

    releases: tuple[Coupling, ...]
    numpy: tuple[NumpyRelease, ...]


class ExtensionRow(Model, frozen=True, kw_only=True):
    """A distribution with CUDA code, and whether its binaries fit one torch only."""

    package: str
    distribution: str
    compiled_for_torch: bool
    stable_abi_from: str | None = None
    gpu_build: dict[str, str] | None = None
    """What its build is told besides FORCE_CUDA to compile the GPU code that it always has; None where it need not."""
    source: tuple[str, ...]


class ExtensionTables(Model, frozen=True, kw_only=True):
    """``extensions.json``."""

    packages: tuple[ExtensionRow, ...]
