"""Rules on a torch build alone: wheels, driver, GPUs. Rules on its companions are in `pairs`."""

from __future__ import annotations

import msgspec

from envmedic.compat import gpu, tables, versions
from envmedic.compat.gpu import BuildGpuCode
from envmedic.compat.table_rows import Variant
from envmedic.compat.torch_family.ruling import Ruling, broken, passed
from envmedic.compat.torch_family.target import FamilyTarget

PLATFORMS = ("linux_x86_64", "linux_aarch64")
# by PEP 600 and PEP 513; wheels with other tags are not checked
MANYLINUX_GLIBC = {"manylinux_2_28_x86_64": "2.28", "manylinux1_x86_64": "2.5"}


class Build(msgspec.Struct, frozen=True):
    """A torch build under consideration. `kept` marks the installed one, which stays."""

    torch: str
    variant: str
    kept: bool = False

    @property
    def row(self) -> Variant | None:
        """The row of the build in the data, None without one."""
        return tables.variants().get((self.torch, self.variant))

    @property
    def known(self) -> bool:
        """Whether the data has this torch release."""
        return self.torch in tables.releases()

    @property
    def cuda(self) -> str | None:
        """CUDA version of the build, None for another backend."""
        return self.row.cuda if self.row else versions.variant_cuda(self.variant)

    @property
    def unverified(self) -> bool:
        """Whether the tables have the build and do not know that it is published."""
        return not self.kept and self.row is not None and not self.row.published

    def title(self) -> str:
        """``torch 2.5.1 (cu124)``."""
        return f"torch {self.torch} ({self.variant})"


def check_platform(target: FamilyTarget) -> Ruling:
    """Rule: Linux on x86_64 or aarch64."""
    if target.platform in PLATFORMS:
        return passed("platform", target.platform)
    return broken("platform", f"{target.platform} is not one of {', '.join(PLATFORMS)}", "index metadata")


def check_published(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: the build is on an index, for this platform."""
    row = build.row
    if build.kept:
        return passed("variant-published", f"{build.title()} is installed", row.source if row else "")
    if row is not None and build.unverified and target.query.ask_index:
        return passed(
            "variant-published", f"{build.title()} is not known to be published: the index is asked", row.source
        )
    if row is None or not row.published:
        return broken(
            "variant-published", f"{build.title()} is not known to be published", row.source if row else "", cause="row"
        )
    if row.platforms is not None and target.platform not in row.platforms and target.platform not in row.default_on:
        return broken("variant-published", f"{build.title()} has no wheels for {target.platform}", row.source)
    return passed("variant-published", f"{build.title()} is published", row.source)


def python_tags(build: Build, target: FamilyTarget) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the Python tags of the wheels of a build on the target's platform, with the sources.

    The list of a variant's own index is completed by that of the default index where the default
    index carries the variant, where the variant's list is unknown, and for free-threaded tags,
    which listings of variant indexes leave out.
    """
    row, default = build.row, tables.python_wheels().get((build.torch, target.platform))
    listed = row is not None and (row.platforms is None or target.platform in row.platforms)
    tags = set(row.python or ()) if row and listed else set()
    offered = set(default.python) if default else set()
    if row is None or row.python is None or target.platform in row.default_on:
        tags |= offered
    tags |= {tag for tag in offered if tag.endswith("t")}
    return frozenset(tags), (*(row.source if row else ()), *(default.source if default else ()))


def check_python(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: a torch wheel exists for the interpreter."""
    # it is installed, so a wheel existed or it was built; the table cannot know either
    if build.kept and not build.known:
        return passed("python-wheel", f"{build.title()} is installed for Python {target.tag}")
    tags, sources = python_tags(build, target)
    if target.tag not in tags:
        reason = f"{build.title()} has no wheel for Python {target.tag} on {target.platform}"
        return broken("python-wheel", reason, sources, cause=build.torch if build.kept else "")
    return passed("python-wheel", f"torch {build.torch} has a wheel for Python {target.tag}", sources)


def check_wheel_tag(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: the C library is new enough for the platform tag."""
    default, glibc = tables.default_wheels().get(build.torch), target.query.glibc
    needs = [MANYLINUX_GLIBC[tag] for tag in default.file_tags if tag in MANYLINUX_GLIBC] if default else []
    if not glibc or not needs or default is None or target.query.machine != "x86_64":
        return passed("wheel-tag", "not checked: glibc or the platform tag is not known")
    # of several tags the newest is the safe reading
    need = max(needs, key=versions.dotted)
    if versions.dotted(glibc) < versions.dotted(need):
        reason = f"torch {build.torch} needs glibc {need}, the host has {glibc}"
        return broken("wheel-tag", reason, default.source)
    return passed("wheel-tag", f"glibc {glibc} is at least {need}", default.source)


def minimum_driver(cuda: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the oldest Linux driver on which programs of that CUDA version start, and the sources.

    None when the data has no such toolkit. The toolkit's own driver always is enough.
    """
    toolkit = tables.toolkits().get(cuda)
    if toolkit is None:
        return None, ()
    values = [text for text in (toolkit.minor_compatibility_linux, toolkit.driver_linux) if text]
    # minor-version compatibility (CUDA 11 and later) allows drivers older than the toolkit's own
    return (min(values, key=versions.dotted) if values else None), toolkit.source


def check_gpu_required(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: a CPU build never replaces a CUDA build, and does not serve where GPUs are required."""
    cuda_installed = versions.variant_cuda(target.query.variant or "") is not None
    if build.cuda is None and (target.query.gpu_required or cuda_installed):
        reason = f"{build.title()} is a CPU build and would leave GPUs unused"
        return broken("gpu-required", reason, build.row.source if build.row else "")
    # a CUDA build without a driver falls back to the CPU silently, which such a user must not get
    if target.query.gpu_required and not target.driver:
        return broken("gpu-required", "no NVIDIA driver was found here", "facts of the host")
    return passed("gpu-required", f"{build.title()} is a {'CPU' if build.cuda is None else 'CUDA'} build")


def check_driver(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: the driver runs programs of the build's CUDA version."""
    if build.cuda is None:
        return passed("driver-minimum", "a CPU build needs no driver")
    need, sources = minimum_driver(build.cuda)
    if need is None:
        reason = f"the driver that CUDA {build.cuda} needs is not known"
        return broken("driver-minimum", reason, build.row.source if build.row else (), cause="unknown")
    if not target.driver:
        return _without_driver(build, target)
    if target.driver < versions.dotted(need):
        reason = f"CUDA {build.cuda} needs driver {need}, the host has {target.query.driver}"
        return broken("driver-minimum", reason, sources, cause=need)
    return passed("driver-minimum", f"driver {target.query.driver} is at least {need} (CUDA {build.cuda})", sources)


def _without_driver(build: Build, target: FamilyTarget) -> Ruling:
    """Rule without a driver version: a CUDA build may stay, and may replace another one on a host without GPUs."""
    facts = "facts of the host"
    if build.kept or build.variant == target.query.variant:
        return passed("driver-minimum", "not checked: no driver version is known, and the variant stays", facts)
    if target.has_gpus:
        reason = f"GPUs are visible but the driver's version is not known, so {build.variant} cannot be shown to run"
        return broken("driver-minimum", reason, facts, cause="no driver")
    if target.query.variant == "cpu":
        reason = f"there is no driver and no GPU, so the installed CPU build is not exchanged for {build.variant}"
        return broken("driver-minimum", reason, facts, cause="no driver")
    return passed("driver-minimum", "there is no driver and no GPU: CPU and CUDA builds both load", facts)


def gpu_code(build: Build, target: FamilyTarget) -> BuildGpuCode | None:
    """Return the GPU code of a build: as observed in the installed library, else by the data."""
    cuda = build.cuda or ""
    if build.kept and target.query.sass:
        return BuildGpuCode(
            sass=target.query.sass, ptx=target.query.ptx, cuda=cuda, source="the installed torch library"
        )
    row = build.row
    sass = row.architectures(target.platform) if row else None
    if row is None or sass is None:
        return None
    # torch's wheels contain PTX for the highest architecture alone, if for any
    ptx = sass[-1:] if row.ptx_linux_x86_64 and target.query.machine == "x86_64" else ()
    return BuildGpuCode(sass=sass, ptx=ptx, cuda=cuda, source="; ".join(row.source))


def check_coverage(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: every visible GPU runs the build's code."""
    if build.cuda is None or not target.has_gpus:
        return passed("gpu-coverage", "a CPU build" if build.cuda is None else "no GPU is visible")
    code = gpu_code(build, target)
    gap = _coverage_unknown(build, target, code)
    if gap is not None or code is None:
        return gap or broken("gpu-coverage", "the architectures of the build are not known")
    missing = gpu.uncovered(code, target.capabilities, target.driver)
    if missing:
        has = ", ".join((*code.sass, *(f"{item}+PTX" for item in code.ptx)))
        reason = f"{build.title()} has no code for compute capability {', '.join(missing)} (it has {has})"
        return broken("gpu-coverage", reason, code.source, cause=",".join(missing))
    return passed("gpu-coverage", f"code for compute capability {', '.join(target.capabilities)}", code.source)


def _coverage_unknown(build: Build, target: FamilyTarget, code: BuildGpuCode | None) -> Ruling | None:
    """Return the ruling where the build's code or a GPU's capability is unknown: only an installed build passes."""
    if code is None:
        reason = f"the architectures of {build.title()} on {target.platform} are not known"
        sources: str | tuple[str, ...] = build.row.source if build.row else ""
    elif target.unknown_gpus:
        reason = f"the compute capability of {target.unknown_gpus} visible GPU(s) is not known"
        sources = "facts of the host"
    else:
        return None
    if not build.kept:
        return broken("gpu-coverage", reason, sources, cause="unknown")
    # a GPU that is surely not covered is a fault, whatever the unknown ones are
    missing = gpu.uncovered(code, target.capabilities, target.driver) if code else ()
    if missing:
        return None
    return passed("gpu-coverage", f"not checked: {reason}, and torch stays", sources)


def check_nvrtc(build: Build, target: FamilyTarget) -> Ruling:
    """Rule: kernels compiled at run time work on every visible GPU."""
    toolkit = tables.toolkits().get(build.cuda) if build.cuda else None
    if toolkit is None or not target.capabilities:
        return passed("nvrtc-coverage", "nothing to check: a CPU build, or no GPU of known capability")
    missing = gpu.unknown_to_nvrtc(toolkit, target.capabilities, target.driver)
    if missing:
        reason = f"NVRTC of CUDA {toolkit.cuda} does not compile for compute capability {', '.join(missing)}"
        return broken("nvrtc-coverage", reason, toolkit.source, cause=",".join(missing))
    reason = f"NVRTC of CUDA {toolkit.cuda} serves compute capability {', '.join(target.capabilities)}"
    return passed("nvrtc-coverage", reason, toolkit.source)


# General reasons first: the first broken rule is the one that a rejection shows.
CHECKS = (
    check_published,
    check_python,
    check_wheel_tag,
    check_gpu_required,
    check_driver,
    check_coverage,
    check_nvrtc,
)


def check_torch(build: Build, target: FamilyTarget) -> tuple[Ruling, ...]:
    """Apply every rule on the torch build itself, in order."""
    return tuple(check(build, target) for check in CHECKS)
