"""Tools of an extension build in the activated environment: nvcc, compiler, ninja, setuptools, libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from envmedic.analysis.activated import Values, activated
from envmedic.compat.nvcc_support import compiler_limit
from envmedic.model.facts import Building, Compiler, Environment, Facts, Host, Toolkit

_WSL = "/usr/lib/wsl/lib"
TOOLS = (
    "cmake", "Cython", "cython", "ninja", "numpy", "packaging", "pip", "psutil", "pybind11", "requests", "setuptools",
    "six", "wheel",
)  # fmt: skip
"""Distributions that builds from source import, by the names under which they are imported."""


class Toolchain(msgspec.Struct, frozen=True, kw_only=True):
    """What a build finds, each field the fact ``toolchain.…`` of its name; UNSET where nothing can be said."""

    nvcc: str | None
    """Path of the nvcc that torch builds CUDA extensions with."""
    nvcc_version: str | None
    """CUDA version of that nvcc."""
    nvcc_from: str | None
    """What leads to it: CUDA_HOME, PATH or /usr/local/cuda."""
    nvcc_suits_torch: bool | UnsetType = UNSET
    """Whether it is of the major CUDA version of torch."""
    missing_headers: tuple[str, ...] | UnsetType = UNSET
    """Headers that torch's own need and its toolkit lacks."""
    toolkits: tuple[str, ...] = ()
    """Every toolkit with an nvcc, as ``12.4 in /usr/local/cuda-12.4``."""
    matching_home: str | None = None
    """Root of the toolkit that fits torch best, None where none is of its major version."""
    matching_version: str | None = None
    cuda_home: str | None
    """Value of CUDA_HOME, or of CUDA_PATH."""
    cuda_home_state: str
    """One of unset, usable, list, missing, without-nvcc."""
    cuda_home_set_by: str | None
    cuda_home_kept: bool
    compiler: str | None
    """Path of the C++ compiler that builds take."""
    compiler_version: str | None
    compiler_limit: int | UnsetType = UNSET
    """Newest major version of such a compiler that the nvcc accepts."""
    compiler_accepted: bool | UnsetType = UNSET
    accepted_c: str | UnsetType | None = UNSET
    """A C compiler of the host that the nvcc accepts, None without one."""
    accepted_cxx: str | UnsetType | None = UNSET
    libcuda_linkable: bool
    """Whether the linker finds libcuda.so."""
    libcuda_directory: str | None
    """A directory with libcuda.so, or with the stub for it."""
    stubs_at_run_time: tuple[str, ...]
    """Directories with a stub of libcuda on LD_LIBRARY_PATH."""
    setuptools_suits: bool
    """Whether the installed setuptools has what torch's builder and projects of its time import of it."""
    ninja: str | None
    missing_tools: tuple[str, ...]
    python_headers: bool | UnsetType = UNSET


def toolchain(facts: Facts) -> Toolchain | None:
    """Return what builds take in the environment, None where what they need was not observed."""
    environment = facts.environment
    building = environment.building if environment is not None else None
    if environment is None or building is None:
        return None
    values = activated(facts)
    # the environment's own toolkits first: activation puts its bin in front of PATH
    toolkits = (*building.toolkits, *facts.host.toolkits)
    # torch's _find_cuda_home asks for CUDA_HOME before CUDA_PATH
    variable = values.get("CUDA_HOME") or values.get("CUDA_PATH")
    home, state = _cuda_home(values, toolkits)
    nvcc = _nvcc(environment, building, facts.host, home, state)
    usable = [item for item in toolkits if item.nvcc is not None]
    cuda = environment.torch.cuda if environment.torch is not None else None
    matching = _matching(usable, cuda)
    taken = _taken(values, (*building.compilers, *facts.host.compilers))
    limit, accepted, (c, cxx) = _judged(facts.host, taken, nvcc)
    linkable, directory, stubs = _linking(values, facts.host, taken, toolkits, environment)
    version = nvcc[0].version if nvcc is not None else None
    return Toolchain(
        nvcc=nvcc[0].nvcc if nvcc is not None else None,
        nvcc_version=version,
        nvcc_from=nvcc[1] if nvcc is not None else None,
        nvcc_suits_torch=_major(version) == _major(cuda) if version is not None and cuda is not None else UNSET,
        missing_headers=nvcc[0].missing_headers if nvcc is not None else UNSET,
        toolkits=tuple(dict.fromkeys(f"{item.version or 'unknown'} in {item.path}" for item in usable)),
        matching_home=matching.path if matching is not None else None,
        matching_version=matching.version if matching is not None else None,
        cuda_home=variable.value if variable is not None else None,
        cuda_home_state=state,
        cuda_home_set_by=variable.source if variable is not None else None,
        cuda_home_kept=variable is not None and variable.kept,
        compiler=taken.path if taken is not None else None,
        compiler_version=taken.version if taken is not None else None,
        compiler_limit=limit,
        compiler_accepted=accepted,
        accepted_c=c,
        accepted_cxx=cxx,
        libcuda_linkable=linkable,
        libcuda_directory=directory,
        stubs_at_run_time=stubs,
        setuptools_suits=_setuptools_suits(environment, building),
        ninja=building.ninja,
        missing_tools=tuple(name for name in TOOLS if environment.distribution(name.lower()) is None),
        python_headers=building.python_headers if building.python_headers is not None else UNSET,
    )


def _cuda_home(values: Values, toolkits: Iterable[Toolkit]) -> tuple[Toolkit | None, str]:
    """The toolkit that CUDA_HOME (or CUDA_PATH) names, and in which state the variable is."""
    variable = values.get("CUDA_HOME") or values.get("CUDA_PATH")
    if variable is None or not variable.value:
        return None, "unset"
    if ":" in variable.value:  # torch joins the value with /bin/nvcc, so a list of paths names no file
        return None, "list"
    named = next((item for item in toolkits if item.path.rstrip("/") == variable.value.rstrip("/")), None)
    if named is None:
        return None, "missing"
    return (named, "usable") if named.nvcc is not None else (None, "without-nvcc")


def _nvcc(
    environment: Environment, building: Building, host: Host, home: Toolkit | None, state: str
) -> tuple[Toolkit, str] | None:
    """The toolkit whose nvcc torch takes (``_find_cuda_home`` of its cpp_extension.py), and what leads to it."""
    # a CUDA_HOME that is wrong is not skipped by torch: the build fails instead of looking further
    if state != "unset":
        return (home, "CUDA_HOME") if home is not None else None
    own = (item for item in building.toolkits if item.path == environment.prefix)
    on_path = (item for item in host.toolkits if item.found_by == "PATH")
    usual = (item for item in host.toolkits if item.path == "/usr/local/cuda")
    for candidates, leads in ((own, "PATH"), (on_path, "PATH"), (usual, "/usr/local/cuda")):
        found = next((item for item in candidates if item.nvcc is not None), None)
        if found is not None:
            return found, leads
    return None


def _matching(toolkits: Iterable[Toolkit], cuda: str | None) -> Toolkit | None:
    """The best toolkit of the same major version: of the same release, then a complete one, then the newest."""
    # torch's check_cuda raises on another major version and only warns of another minor one
    if cuda is None:
        return None
    same = [item for item in toolkits if item.version is not None and _major(item.version) == _major(cuda)]

    def rank(item: Toolkit) -> tuple[bool, bool, tuple[int, ...]]:
        return item.version == cuda, not item.missing_headers, _numbers(item.version or "")

    return max(same, key=rank, default=None)


def _major(version: str) -> str:
    return version.partition(".")[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _judged(
    host: Host, taken: Compiler | None, nvcc: tuple[Toolkit, str] | None
) -> tuple[int | UnsetType, bool | UnsetType, tuple[str | None, str | None] | tuple[UnsetType, UnsetType]]:
    """The nvcc's limit for compilers, whether it accepts this one, and a gcc and g++ that it accepts."""
    cuda = nvcc[0].version if nvcc is not None else None
    kind = _kind(taken)
    # nvcc checks gcc and clang against limits in its host_config.h; of other compilers no limit is known
    if cuda is None or taken is None or kind is None or taken.version is None:
        return UNSET, UNSET, (UNSET, UNSET)
    limit = compiler_limit(cuda, kind)
    if limit is None:
        return UNSET, UNSET, (UNSET, UNSET)
    return limit, int(_major(taken.version)) <= limit, _accepted(host.compilers, compiler_limit(cuda, "gcc"))


def _taken(values: Values, compilers: Iterable[Compiler]) -> Compiler | None:
    """The C++ compiler of a build: that of CXX or CC in the activated environment, else g++, else clang++."""
    found = list(compilers)
    # the value may be a command with options or a wrapper, such as `ccache g++`: any of its words may be the compiler
    programs = [values[name].value.split() for name in ("CXX", "CC") if name in values]
    programs_named = {word for words in programs for word in words}
    named = [item for item in found if {item.path, item.path.rpartition("/")[2]} & programs_named]
    plain = [item for wanted in ("g++", "clang++") for item in found if item.path.rpartition("/")[2] == wanted]
    return next(iter((*named, *plain)), None)


def _kind(compiler: Compiler | None) -> Literal["gcc", "clang"] | None:
    kinds: Mapping[str, Literal["gcc", "clang"]] = {"gcc": "gcc", "g++": "gcc", "clang": "clang", "clang++": "clang"}
    return kinds.get(compiler.name) if compiler is not None else None


def _accepted(compilers: Iterable[Compiler], limit: int | None) -> tuple[str | None, str | None]:
    """The newest gcc and g++ of one major version, at most `limit`."""
    # of one version: CC and CXX of two releases would mix their headers and run-time libraries
    names = {"gcc", "g++"}
    found: dict[int, dict[str, str]] = {}
    for item in compilers:
        if item.name in names and item.version is not None:
            found.setdefault(int(_major(item.version)), {}).setdefault(item.name, item.path)
    fitting = [major for major, pair in found.items() if pair.keys() == names and limit is not None and major <= limit]
    best = found[max(fitting)] if fitting else {}
    return best.get("gcc"), best.get("g++")


def _linking(
    values: Values, host: Host, taken: Compiler | None, toolkits: Iterable[Toolkit], environment: Environment
) -> tuple[bool, str | None, tuple[str, ...]]:
    """Whether -lcuda finds libcuda.so, a directory with it, and the stubs that LD_LIBRARY_PATH would load at run time.

    The library is the driver's own, which the system's linker finds, or the stub of a toolkit.
    """
    known = list(toolkits)
    cuda = environment.torch.cuda if environment.torch is not None else None
    best = _matching([item for item in known if item.stubs is not None], cuda)
    stubs = [item.stubs for item in ([best] if best is not None else known) if item.stubs is not None]
    # Windows puts libcuda into a WSL guest outside of the linker's directories
    drivers = [*host.libcuda, *([_WSL] if host.wsl else [])]
    listed = folders(values, "LIBRARY_PATH")
    usable = {*drivers, *(item.stubs for item in known if item.stubs is not None)}
    finds = bool(host.libcuda) if taken is None or taken.libcuda is None else taken.libcuda
    # conda's compiler has a sysroot. Given the system's directory for libcuda it would take the system's other
    # libraries too, so it gets a toolkit's stub first
    own_sysroot = taken is not None and taken.libcuda is False
    directory = next(iter((*stubs, *drivers) if own_sysroot else (*drivers, *stubs)), None)
    loaded = folders(values, "LD_LIBRARY_PATH")
    # a stub links, but every call into it at run time returns an error: it must not come before the driver
    at_run_time = tuple(folder for folder in loaded if folder.endswith("/stubs") or folder in stubs)
    return finds or bool(usable.intersection(listed)), directory, at_run_time


def folders(values: Values, name: str) -> list[str]:
    """Return the directories that a variable lists."""
    variable = values.get(name)
    parts = variable.value.split(":") if variable is not None else []
    return [part.rstrip("/") or "/" for part in parts if part]


def old_setuptools(building: Building) -> bool:
    """Whether torch's builder imports the copy of packaging in pkg_resources, removed in setuptools 70."""
    return "pkg_resources.packaging" in building.imports_of_setuptools


def _setuptools_suits(environment: Environment, building: Building) -> bool:
    """Whether the installed setuptools has what torch's builder, or a project of its time, imports of it."""
    # setuptools 82 removed pkg_resources itself. Below 66 it uses pkgutil.ImpImporter, which Python 3.12 removed
    newest = "<70" if old_setuptools(building) else "<82"
    oldest = ">=66" if _numbers(environment.interpreter.version or "")[:2] >= (3, 12) else ">=49.4"
    installed = environment.distribution("setuptools")
    try:
        return installed is not None and Version(installed.version) in SpecifierSet(f"{oldest},{newest}")
    except InvalidVersion:
        return False
