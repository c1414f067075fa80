"""Flat facts for the conditions of playbooks, derived from the observed ones.

A name is absent when its value could not be observed, and None when it was looked for and does not exist.
Conditions distinguish the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from envmedic.compat.torch_family.problems import problems as family_problems
from envmedic.diagnosis.areas import AREAS
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import CompanionBuild, Distribution, Environment, Facts, Host, Library

Companion = Literal["torchvision", "torchaudio"]
COMPANIONS: tuple[Companion, ...] = ("torchvision", "torchaudio")
_OPERATOR_LIBRARY = {"torchvision": "_C", "torchaudio": "_torchaudio"}
"""Prefix of the file names of the libraries that register a companion's operators."""


def derive(facts: Facts) -> Derived:
    """Every fact of `model.vocabulary` with a value in `facts`."""
    derived = _host(facts.host)
    for area in AREAS:
        derived |= area(facts)
    environment = facts.environment
    if environment is None:
        return derived
    derived |= _environment(environment)
    derived |= _packages(environment)
    derived |= _torch(environment)
    problems = family_problems(environment, facts.host)
    derived["family.coherent"] = not problems
    derived["family.problems"] = tuple(problem.summary for problem in problems)
    for name in COMPANIONS:
        derived |= _companion(environment, name)
        if environment.distribution(name) is not None:
            derived[f"{name}.coherent"] = all(problem.member != name for problem in problems)
    return derived


def _host(host: Host) -> Derived:
    visible = host.visible_gpus()
    capabilities = _ascending(gpu.compute_capability for gpu in visible)
    derived: Derived = {
        "host.system": host.system,
        "host.machine": host.machine,
        "host.container": host.container,
        "host.wsl": host.wsl,
        "driver.version": host.driver_version,
        "driver.cuda": host.driver_cuda,
        "gpu.count": len(visible),
        "gpu.names": tuple(gpu.name for gpu in visible),
        "toolkit.count": len(host.toolkits),
        "toolkit.versions": tuple(toolkit.version for toolkit in host.toolkits if toolkit.version),
    }
    if host.glibc is not None:
        derived["host.glibc"] = host.glibc
    # one GPU of unknown capability would make both ends of the range wrong, so the three are known or absent together
    if all(gpu.compute_capability for gpu in visible):
        derived["gpu.capabilities"] = capabilities
        derived["gpu.lowest-capability"] = capabilities[0] if capabilities else None
        derived["gpu.highest-capability"] = capabilities[-1] if capabilities else None
    return derived


def _ascending(versions: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(
        sorted(
            {version for version in versions if version}, key=lambda text: [int(x) for x in _numbers(text)]
        )  # 10.0 after 9.0
    )


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def _environment(environment: Environment) -> Derived:
    kinds = {path.kind for path in environment.import_paths}
    derived: Derived = {
        "env.kind": environment.kind,
        "env.interpreter": environment.interpreter.path,
        "env.python-starts": environment.interpreter.starts,
        "env.duplicates": environment.duplicates,
        "env.leftovers": tuple(leftover.path for leftover in environment.leftovers),
        "env.system-site": environment.include_system_site,
        "env.user-site": "user-site" in kinds,
        "env.pythonpath-set": "PYTHONPATH" in kinds,
        "env.ld-library-path-set": "LD_LIBRARY_PATH" in kinds,
        "env.ld-preload-set": "LD_PRELOAD" in kinds,
    }
    if environment.interpreter.version is not None:
        derived["env.python"] = environment.interpreter.version
    return derived


def _packages(environment: Environment) -> Derived:
    """The facts of each installed distribution; of several copies, those of the one that is imported first."""
    derived: Derived = {}
    # distributions are in the order of sys.path: written last, the first copy wins
    for item in reversed(environment.distributions):
        derived[f"package.{item.name}.version"] = item.version
        derived[f"package.{item.name}.owner"] = item.owner
    names = dict.fromkeys(item.name for item in environment.distributions)
    return derived | {"env.packages": tuple(sorted(names))}


def _torch(environment: Environment) -> Derived:
    build, installed = environment.torch, environment.distribution("torch")
    version = build.version if build is not None else installed.version if installed is not None else None
    derived: Derived = {
        "torch.version": version,
        "torch.owner": installed.owner if installed is not None else None,
        "torch.copies": _copies(environment, "torch"),
    }
    derived |= _components("torch", version)
    if build is not None:
        derived |= {
            "torch.cuda": build.cuda,
            "torch.cuda-major": _major(build.cuda),
            "torch.cuda-build": build.cuda is not None,
            "torch.arch-list": build.arch_list,
        }
        if build.variant is not None:
            derived["torch.variant"] = build.variant
    return derived


def _components(name: str, version: str | None) -> Derived:
    if version is None:
        return {}
    try:
        parsed = Version(version)
    except InvalidVersion:
        return {}
    return {f"{name}.major": parsed.major, f"{name}.minor": parsed.minor}


def _major(version: str | None) -> int | None:
    numbers = _numbers(version or "")
    return int(numbers[0]) if numbers else None


def _copies(environment: Environment, name: str) -> int:
    return sum(distribution.name == name for distribution in environment.distributions)


def _companion(environment: Environment, name: Companion) -> Derived:
    installed, build = environment.distribution(name), environment.companion(name)
    version = installed.version if installed is not None else build.version if build is not None else None
    derived: Derived = {
        "version": version,
        "owner": installed.owner if installed is not None else None,
        "copies": _copies(environment, name),
        "leftovers": sum(leftover.name == name for leftover in environment.leftovers),
    }
    if version is not None:
        derived |= _build(build, environment)
        derived |= _libraries(environment, name)
        derived |= _requirement(build, installed, environment)
    return {f"{name}.{key}": value for key, value in derived.items()}


def _build(build: CompanionBuild | None, environment: Environment) -> Derived:
    derived: Derived = {}
    if build is None:
        return derived
    if build.variant is not None:
        derived["variant"] = build.variant
    majors = [_major(build.cuda), _major(environment.torch.cuda if environment.torch is not None else None)]
    # None, not absent: a CPU build was looked at and has no CUDA
    derived["same-cuda-major"] = None if None in majors else majors[0] == majors[1]
    if build.cuda is not None:
        derived |= {"cuda": build.cuda, "cuda-major": majors[0]}
    if build.has_gpu_code is not None:
        derived["has-gpu-code"] = build.has_gpu_code
    return derived


def _libraries(environment: Environment, name: Companion) -> Derived:
    """Facts from the ELF headers of a companion's libraries; none where no library was read."""
    own = [library for library in environment.libraries if _belongs(library, name)]
    operators = [library for library in own if _file(library).startswith(_OPERATOR_LIBRARY[name])]
    if not environment.libraries:
        return {}
    unreadable = tuple(library.path for library in operators if library.error is not None)
    derived: Derived = {"operator-libraries": len(operators), "unreadable-libraries": unreadable}
    # an image library without libjpeg lacks libjpeg's symbols, which says nothing about torch
    telling = [library for library in own if library in operators or not library.missing]
    symbols = [symbol for library in telling for symbol in library.unresolved]
    missing = tuple(dict.fromkeys(soname for library in operators for soname in library.missing))
    count = sum(library.unresolved_count for library in telling)
    # an unreadable library may lack more: what was found is certain, but an empty result would be a false all-clear
    if missing or not unreadable:
        derived["missing-libraries"] = missing
    if count or not unreadable:
        derived["unresolved-symbols"] = count
        derived["first-unresolved"] = (symbols[0].demangled or symbols[0].symbol) if symbols else None
    return derived


def _file(library: Library) -> str:
    return PurePosixPath(library.path).name


def _belongs(library: Library, name: str) -> bool:
    # by its path as well: a library may be on no distribution's record
    return library.distribution == name or f"/{name}/" in f"/{library.path}"


def _requirement(build: CompanionBuild | None, installed: Distribution | None, environment: Environment) -> Derived:
    text = build.requires_torch if build is not None else None
    if text is None and installed is not None:
        # the lookahead keeps torchvision and torch-geometric out
        text = next((item for item in installed.requires if re.match(r"torch(?![\w.-])", item)), None)
    derived: Derived = {"requires-torch": text}
    accepted = _accepts(text, environment)
    if accepted is not None or text is None:
        derived["accepts-torch"] = accepted
    return derived


def _accepts(requirement: str | None, environment: Environment) -> bool | None:
    """Whether a requirement on torch accepts the installed one; None where either is not known."""
    installed = environment.distribution("torch")
    version = installed.version if installed is not None else environment.torch.version if environment.torch else None
    if requirement is None or version is None:
        return None
    try:
        # nightly builds of torch are pre-releases, which a specifier refuses unless asked
        return Requirement(requirement).specifier.contains(Version(version), prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return None
