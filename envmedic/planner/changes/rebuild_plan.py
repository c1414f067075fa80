"""Whether a distribution can be built again from its source here, and the step that does it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic.errors import NoSolution
from envmedic.model.facts import Distribution, Environment, RecordedSource
from envmedic.model.plan import Rebuild
from envmedic.model.playbook import FactValue
from envmedic.owner import STORE
from envmedic.planner.changes.removal import reference
from envmedic.planner.family.family_query import FAMILY

Values = Mapping[str, FactValue]


def step(name: str, environment: Environment, values: Values) -> tuple[Rebuild, tuple[str, ...]]:
    """The step that builds `name` again, and the requirements of the build that are not installed.

    `values` are the derived facts. Raises `NoSolution`, with the reason, where the build cannot work.
    """
    item = _installed(name, environment)
    source = _recorded(item, environment)
    cuda = _compiles_cuda(item, source, environment)
    _require_tools(item, values, cuda=cuda)
    real = PurePosixPath(environment.real_prefix)
    made = Rebuild(
        distribution=reference(item),
        source=item.origin,
        workshop=str(real.parent / STORE / "build" / real.name / item.name),
        variables=_cuda_variables(item, values) if cuda else {},
    )
    return made, _missing(environment, values, source, cuda=cuda)


def _installed(name: str, environment: Environment) -> Distribution:
    item = environment.distribution(canonicalize_name(name))
    if item is None or item.outside_prefix:
        raise NoSolution(
            f"{name} cannot be built again: it is not installed in the environment",
            hint="Install it, or name the environment that holds it",
        )
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
    """Whether the build has to compile GPU code: its source has some, or the installed copy does."""
    if environment.torch is None or environment.torch.cuda is None:
        return False
    known = (*environment.libraries, *environment.extensions)
    built = (library.uses_cuda for library in known if library.distribution == item.name)
    return (source is not None and source.cuda) or any(built)


def _require_tools(item: Distribution, values: Values, *, cuda: bool) -> None:
    reason = _lacking(values, cuda=cuda)
    if reason is not None:
        raise NoSolution(
            f"{item.name} {item.version} cannot be built again on this machine",
            cause=reason,
            hint="Install what is missing, or a wheel of it that was built for the installed torch",
        )


def _lacking(values: Values, *, cuda: bool) -> str | None:
    if "toolchain.compiler" in values and values["toolchain.compiler"] is None:
        return "there is no C++ compiler"
    if values.get("toolchain.python-headers") is False:
        return f"the C headers of Python {values.get('env.python')} are not installed"
    if not cuda:
        return None
    if values.get("toolchain.matching-home") is None:
        there = values.get("toolchain.toolkits") or ()
        found = f"found: {', '.join(there)}" if isinstance(there, tuple) and there else "no nvcc is found"
        return f"it has GPU code, and there is no CUDA toolkit of torch's version {values.get('torch.cuda')} ({found})"
    if values.get("toolchain.compiler-accepted") is False and values.get("toolchain.accepted-cxx") is None:
        return f"nvcc does not accept the C++ compiler {values.get('toolchain.compiler')}, and there is no other"
    return None


def _cuda_variables(item: Distribution, values: Values) -> dict[str, str]:
    """What builds of GPU code are told: that they are to make it, with which toolkit, and for which GPUs."""
    listed = values.get("variables.arch-list-right")
    told: dict[str, FactValue] = {
        "CUDA_HOME": values.get("toolchain.matching-home"),
        "FORCE_CUDA": "1",
        "TORCH_CUDA_ARCH_LIST": listed,
    }
    if isinstance(listed, str) and item.name == "tinycudann":
        told["TCNN_CUDA_ARCHITECTURES"] = listed.replace("+PTX", "").replace(".", "")
    if values.get("toolchain.compiler-accepted") is False:
        told |= {"CC": values.get("toolchain.accepted-c"), "CXX": values.get("toolchain.accepted-cxx")}
    return {name: value for name, value in told.items() if isinstance(value, str)}


def _missing(environment: Environment, values: Values, source: RecordedSource | None, *, cuda: bool) -> tuple[str, ...]:
    """Requirements of the build that are not installed: those that the project names, else setuptools and wheel."""
    setuptools = values.get("toolchain.setuptools-wanted")
    usual = (setuptools if isinstance(setuptools, str) else "setuptools", "wheel")
    named = source.requires if source is not None and source.requires is not None else usual
    ninja = ("ninja",) if cuda and values.get("toolchain.ninja") is None else ()
    return tuple(dict.fromkeys(_not_installed((*named, *ninja), environment)))


def _not_installed(wanted: Iterable[str], environment: Environment) -> Iterable[str]:
    for text in wanted:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(requirement.name)
        if requirement.marker is None and name not in FAMILY and environment.distribution(name) is None:
            yield str(requirement)
