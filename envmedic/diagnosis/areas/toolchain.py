"""Facts on building extensions: which nvcc, compiler, ninja and libraries a build in the activated environment takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from envmedic.diagnosis.activated_variables import Values, activated
from envmedic.diagnosis.areas import build_variables
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Building, Compiler, Environment, Facts, Host, Toolkit

_WSL = "/usr/lib/wsl/lib"
_WITH_PACKAGING = "setuptools>=69,<70"
"""Has pkg_resources with its packaging, and works on Python 3.12 and later."""
_WITH_RESOURCES = "setuptools>=70.1,<81"
"""Has pkg_resources without a warning, and builds wheels by itself."""
TOOLS = (
    "cmake", "Cython", "cython", "ninja", "numpy", "packaging", "pip", "psutil", "pybind11", "requests", "setuptools",
    "six", "wheel",
)  # fmt: skip
"""Distributions that builds from source import, by the names under which they are imported."""
BUILDERS = ("setuptools", "wheel", "ninja", "packaging")
"""What builds of extensions of torch need where nothing is fetched for them."""


def derive(facts: Facts) -> Derived:
    """The facts named ``toolchain.…`` and ``variables.…``."""
    environment = facts.environment
    building = environment.building if environment is not None else None
    if environment is None or building is None:
        return {}
    values = activated(facts)
    toolkits = (*building.toolkits, *facts.host.toolkits)
    home, state = _cuda_home(values, toolkits)
    nvcc = _nvcc(environment, building, facts.host, home, state)
    taken = _taken(values, (*building.compilers, *facts.host.compilers))
    return {
        **_cuda_home_facts(values, state),
        **_nvcc_facts(nvcc, environment, toolkits),
        **_compiler_facts(facts.host, taken, nvcc),
        **_linking(values, facts.host, taken, toolkits, environment),
        **build_variables.derive(facts.host, environment, building, values, nvcc[0].version if nvcc else None),
        **_setuptools(environment, building),
        "toolchain.ninja": building.ninja,
        "toolchain.missing-builders": tuple(
            _setuptools_or(name, environment, building) for name in BUILDERS if environment.distribution(name) is None
        ),
        "toolchain.missing-tools": tuple(name for name in TOOLS if environment.distribution(name.lower()) is None),
        **({"toolchain.python-headers": building.python_headers} if building.python_headers is not None else {}),
    }


def _setuptools_or(name: str, environment: Environment, building: Building) -> str:
    """A requirement on a tool that is to be installed: of setuptools on a release that suits torch's builder."""
    return str(_setuptools(environment, building)["toolchain.setuptools-wanted"]) if name == "setuptools" else name


def _cuda_home(values: Values, toolkits: Iterable[Toolkit]) -> tuple[Toolkit | None, str]:
    """The toolkit that CUDA_HOME (or CUDA_PATH) names, and in which state the variable is."""
    variable = values.get("CUDA_HOME") or values.get("CUDA_PATH")
    if variable is None or not variable.value:
        return None, "unset"
    if ":" in variable.value:
        return None, "list"
    named = next((item for item in toolkits if item.path.rstrip("/") == variable.value.rstrip("/")), None)
    if named is None:
        return None, "missing"
    return (named, "usable") if named.nvcc is not None else (None, "without-nvcc")


def _cuda_home_facts(values: Values, state: str) -> Derived:
    variable = values.get("CUDA_HOME") or values.get("CUDA_PATH")
    return {
        "toolchain.cuda-home": variable.value if variable is not None else None,
        "toolchain.cuda-home-state": state,
        "toolchain.cuda-home-set-by": variable.source if variable is not None else None,
        "toolchain.cuda-home-kept": variable is not None and variable.kept,
    }


def _nvcc(
    environment: Environment, building: Building, host: Host, home: Toolkit | None, state: str
) -> tuple[Toolkit, str] | None:
    """The toolkit whose nvcc torch takes (``_find_cuda_home`` of its cpp_extension.py), and what leads to it."""
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


def _nvcc_facts(nvcc: tuple[Toolkit, str] | None, environment: Environment, toolkits: Iterable[Toolkit]) -> Derived:
    usable = [item for item in toolkits if item.nvcc is not None]
    cuda = environment.torch.cuda if environment.torch is not None else None
    matching = _matching(usable, cuda)
    derived: Derived = {
        "toolchain.nvcc": nvcc[0].nvcc if nvcc is not None else None,
        "toolchain.nvcc-version": nvcc[0].version if nvcc is not None else None,
        "toolchain.nvcc-from": nvcc[1] if nvcc is not None else None,
        "toolchain.toolkits": tuple(dict.fromkeys(f"{item.version or 'unknown'} in {item.path}" for item in usable)),
        "toolchain.matching-home": matching.path if matching is not None else None,
        "toolchain.matching-version": matching.version if matching is not None else None,
    }
    if nvcc is not None:
        derived["toolchain.missing-headers"] = nvcc[0].missing_headers
        if nvcc[0].version is not None and cuda is not None:
            derived["toolchain.nvcc-suits-torch"] = _major(nvcc[0].version) == _major(cuda)
    return derived


def _matching(toolkits: Iterable[Toolkit], cuda: str | None) -> Toolkit | None:
    """The toolkit of the same major version that is nearest: the very release, then a complete one, then the newest."""
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


def _compiler_facts(host: Host, taken: Compiler | None, nvcc: tuple[Toolkit, str] | None) -> Derived:
    from envmedic.compat.nvcc_support import compiler_limit  # noqa: PLC0415  # reads the compatibility data

    derived: Derived = {
        "toolchain.compiler": taken.path if taken is not None else None,
        "toolchain.compiler-version": taken.version if taken is not None else None,
    }
    cuda = nvcc[0].version if nvcc is not None else None
    kind = _kind(taken)
    if cuda is None or taken is None or kind is None or taken.version is None:
        return derived
    limit = compiler_limit(cuda, kind)
    if limit is None:
        return derived
    c, cxx = _accepted(host.compilers, compiler_limit(cuda, "gcc"))
    return derived | {
        "toolchain.compiler-limit": limit,
        "toolchain.compiler-accepted": int(_major(taken.version)) <= limit,
        "toolchain.accepted-c": c,
        "toolchain.accepted-cxx": cxx,
    }


def _taken(values: Values, compilers: Iterable[Compiler]) -> Compiler | None:
    """What a build compiles C++ with: what CXX or CC names in the activated environment, else g++, else clang++."""
    found = list(compilers)
    programs = [values[name].value.split() for name in ("CXX", "CC") if name in values]
    programs_named = {word for words in programs for word in words}
    named = [item for item in found if {item.path, item.path.rpartition("/")[2]} & programs_named]
    plain = [item for wanted in ("g++", "clang++") for item in found if item.path.rpartition("/")[2] == wanted]
    return next(iter((*named, *plain)), None)


def _kind(compiler: Compiler | None) -> Literal["gcc", "clang"] | None:
    kinds: Mapping[str, Literal["gcc", "clang"]] = {"gcc": "gcc", "g++": "gcc", "clang": "clang", "clang++": "clang"}
    return kinds.get(compiler.name) if compiler is not None else None


def _accepted(compilers: Iterable[Compiler], limit: int | None) -> tuple[str | None, str | None]:
    """The newest gcc and g++ of one major version, which must not be above `limit`."""
    pairs: dict[int, dict[str, str]] = {}
    for item in compilers:
        if item.name in ("gcc", "g++") and item.version is not None:
            pairs.setdefault(int(_major(item.version)), {}).setdefault(item.name, item.path)
    fitting = [major for major, found in pairs.items() if len(found) == 2 and limit is not None and major <= limit]  # noqa: PLR2004  # gcc and g++
    best = pairs[max(fitting)] if fitting else {}
    return best.get("gcc"), best.get("g++")


def _linking(
    values: Values, host: Host, taken: Compiler | None, toolkits: Iterable[Toolkit], environment: Environment
) -> Derived:
    """Where libcuda.so is, for -lcuda: the driver's own, which the system's linker finds, or the stub of a toolkit.

    A compiler that does not look in the system's folders, as conda's, is not led there if there is a stub: it would take
    the system's other libraries too.
    """
    known = list(toolkits)
    cuda = environment.torch.cuda if environment.torch is not None else None
    best = _matching([item for item in known if item.stubs is not None], cuda)
    stubs = [item.stubs for item in ([best] if best is not None else known) if item.stubs is not None]
    drivers = [*host.libcuda, *([_WSL] if host.wsl else [])]
    listed = _folders(values, "LIBRARY_PATH")
    usable = {*drivers, *(item.stubs for item in known if item.stubs is not None)}
    finds = bool(host.libcuda) if taken is None or taken.libcuda is None else taken.libcuda
    apart = taken is not None and taken.libcuda is False
    directory = next(iter((*stubs, *drivers) if apart else (*drivers, *stubs)), None)
    loaded = _folders(values, "LD_LIBRARY_PATH")
    return {
        "toolchain.libcuda-linkable": finds or bool(usable.intersection(listed)),
        "toolchain.libcuda-directory": directory,
        "toolchain.library-path": ":".join(dict.fromkeys((directory, *listed))) if directory is not None else None,
        "toolchain.stubs-at-run-time": tuple(
            folder for folder in loaded if folder.endswith("/stubs") or folder in stubs
        ),
    }


def _folders(values: Values, name: str) -> list[str]:
    variable = values.get(name)
    parts = variable.value.split(":") if variable is not None else []
    return [part.rstrip("/") or "/" for part in parts if part]


def _setuptools(environment: Environment, building: Building) -> Derived:
    """Whether the installed setuptools has what torch's builder, or a project of its time, imports of it."""
    wanted = _WITH_PACKAGING if "pkg_resources.packaging" in building.imports_of_setuptools else _WITH_RESOURCES
    # older ones do as well, but not below 66 on Python 3.12 and later (pkgutil.ImpImporter)
    newest = "<70" if wanted == _WITH_PACKAGING else "<82"
    oldest = ">=66" if _numbers(environment.interpreter.version or "")[:2] >= (3, 12) else ">=49.4"
    installed = environment.distribution("setuptools")
    try:
        suits = installed is not None and Version(installed.version) in SpecifierSet(f"{oldest},{newest}")
    except InvalidVersion:
        suits = False
    return {"toolchain.setuptools-suits": suits, "toolchain.setuptools-wanted": wanted}
