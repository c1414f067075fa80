"""Steps that rebuild a distribution from its recorded source, or the reason against a rebuild. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import tables
from envmedic.errors import NoSolution
from envmedic.linked_prefix import STORE
from envmedic.model.facts import Distribution, Environment, RecordedSource
from envmedic.model.plan import Rebuild
from envmedic.planner.changes.removal import reference
from envmedic.planner.family.family_query import FAMILY
from envmedic.planner.remedies.building import BuildInputs, tcnn


def step(name: str, environment: Environment, builds: BuildInputs) -> tuple[Rebuild, tuple[str, ...]]:
    """Return the step that rebuilds `name`, and the build requirements that are not installed.

    `builds` has the toolchain. Raises `NoSolution`, with the reason, where the build cannot work.
    """
    item = _installed(name, environment)
    source = _recorded(item, environment)
    cuda = _compiles_cuda(item, source, environment)
    _require_tools(item, builds, cuda=cuda)
    real = PurePosixPath(environment.real_prefix)
    made = Rebuild(
        distribution=reference(item),
        source=item.origin,
        # a fixed path in the store, so that the plan can name it before the build
        workshop=str(real.parent / STORE / "build" / real.name / item.name),
        variables=_cuda_variables(item, builds) if cuda else {},
    )
    return made, _missing(environment, builds, source, cuda=cuda)


def _installed(name: str, environment: Environment) -> Distribution:
    item = environment.distribution(canonicalize_name(name))
    if item is None or item.outside_prefix:
        raise NoSolution(
            f"{name} cannot be built again: it is not installed in the environment",
            hint="Install it, or name the environment that holds it",
        )
    # a rebuild of an editable install would write compiled files into the user's source directory
    if item.origin.kind == "editable":
        where = item.origin.url or "its source directory"
        raise NoSolution(
            f"{item.name} is an editable install: its compiled files lie in {where}, which is yours",
            cause="envmedic writes to no directory outside of the environment",
            hint="Build it there: python -m pip install --no-build-isolation -e, after deleting its build/ and .so files",
        )
    if item.origin.kind in ("conda", "unknown"):
        raise NoSolution(
            f"{item.name} {item.version} cannot be built again: where its source is was not recorded",
            cause=f"its metadata in {item.metadata_path} names no directory, archive or repository",
            hint="Install it from its source with --no-build-isolation",
        )
    return item


def _recorded(item: Distribution, environment: Environment) -> RecordedSource | None:
    building = environment.building
    found = next(
        (source for source in (building.sources if building else ()) if source.distribution == item.name), None
    )
    if item.origin.kind == "directory" and (found is None or not found.exists):
        raise NoSolution(
            f"{item.name} {item.version} cannot be built again: its source directory is gone",
            cause=f"it was built from {item.origin.url}",
            hint="Put the source back there, or install it from where it is now with --no-build-isolation",
        )
    return found


def _compiles_cuda(item: Distribution, source: RecordedSource | None, environment: Environment) -> bool:
    """Whether the build compiles GPU code: by what is known of it, by its source, or by the installed copy."""
    # torch.utils.cpp_extension builds CUDAExtension only beside a CUDA build of torch
    if environment.torch is None or environment.torch.cuda is None:
        return False
    # the installed copy may be the one that was built without its GPU code
    row = tables.extensions().get(item.name)
    if row is not None and row.gpu_build is not None:
        return True
    known = (*environment.libraries, *environment.extensions)
    built = (library.uses_cuda for library in known if library.distribution == item.name)
    return (source is not None and source.cuda) or any(built)


def _require_tools(item: Distribution, builds: BuildInputs, *, cuda: bool) -> None:
    reason = _lacking(builds, cuda=cuda)
    if reason is not None:
        raise NoSolution(
            f"{item.name} {item.version} cannot be built again on this machine",
            cause=reason,
            hint="Install what is missing, or a wheel of it that was built for the installed torch",
        )


def _lacking(builds: BuildInputs, *, cuda: bool) -> str | None:
    tools = builds.toolchain
    if tools is not None and tools.compiler is None:
        return "there is no C++ compiler"
    if tools is not None and tools.python_headers is False:
        return f"the C headers of Python {builds.python} are not installed"
    if not cuda:
        return None
    if tools is None or tools.matching_home is None:
        found = f"found: {', '.join(tools.toolkits)}" if tools is not None and tools.toolkits else "no nvcc is found"
        return f"it has GPU code, and there is no CUDA toolkit of torch's version {builds.cuda} ({found})"
    # nvcc rejects host compilers newer than its release knows (host_config.h)
    if tools.compiler_accepted is False and tools.accepted_cxx is None:
        return f"nvcc does not accept the C++ compiler {tools.compiler}, and there is no other"
    return None


def _cuda_variables(item: Distribution, builds: BuildInputs) -> dict[str, str]:
    """Return the variables for a build of GPU code: its request, the toolkit, the architectures, the compiler."""
    tools = builds.toolchain
    # setup.py of many projects compiles GPU code only if a GPU is visible, which a login node lacks
    row = tables.extensions().get(item.name)
    told = {"FORCE_CUDA": "1", **((row.gpu_build or {}) if row is not None else {})}
    if tools is not None and tools.matching_home is not None:
        told = {"CUDA_HOME": tools.matching_home, **told}
    if builds.architectures is not None:
        told["TORCH_CUDA_ARCH_LIST"] = builds.architectures
        # tiny-cuda-nn does not read TORCH_CUDA_ARCH_LIST
        if item.name == "tinycudann":
            told["TCNN_CUDA_ARCHITECTURES"] = tcnn(builds.architectures)
    if tools is not None and tools.compiler_accepted is False:
        chosen = {"CC": tools.accepted_c, "CXX": tools.accepted_cxx}
        told |= {name: value for name, value in chosen.items() if isinstance(value, str)}
    return told


def _missing(
    environment: Environment, builds: BuildInputs, source: RecordedSource | None, *, cuda: bool
) -> tuple[str, ...]:
    """Return the build requirements that are not installed: the project's own, else setuptools and wheel."""
    named = source.requires if source is not None and source.requires is not None else (builds.setuptools, "wheel")
    # without ninja, torch's builder compiles one file after another, which takes hours for kernels
    ninja = ("ninja",) if cuda and (builds.toolchain is None or builds.toolchain.ninja is None) else ()
    return tuple(dict.fromkeys(_not_installed((*named, *ninja), environment)))


def _not_installed(wanted: Iterable[str], environment: Environment) -> Iterable[str]:
    # Builds run without isolation, in the environment: an isolated build would compile against a torch of its own.
    for text in wanted:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(requirement.name)
        if requirement.marker is None and name not in FAMILY and environment.distribution(name) is None:
            yield str(requirement)
