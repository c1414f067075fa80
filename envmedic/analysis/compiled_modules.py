"""Compiled modules: builds for another torch, and the version label of a build for the installed one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from envmedic.model.facts import Distribution, Environment, Library, TorchBuild, UnresolvedSymbol

Owner = Literal["torch", "own", "other"]
TOLERANT = frozenset({"torchao"})
"""Distributions that compare torch's version and skip their modules where it does not fit."""
TORCH_LIBRARY = re.compile(r"lib(?:torch|c10|caffe2|shm|ATen)\w*\.so")
# Itanium C++ mangling: T for vtables and typeinfo, G for guards, Th for thunks, then N and the qualifiers K, V, R, O
_NESTED = r"_Z(?:T[IVSTC]|G[VR]|Th\w{1,6}_)?N[KVRO]{0,3}"
_TORCH = re.compile(
    rf"{_NESTED}(?:3c10|2at|5torch|6caffe2|4c10d)"
    r"|(?:_Z\d{1,2})?_?(?:THP|THC|THGenerator|THArg|THError)[A-Z_]?\w|aoti_torch_|torch_\w+_v?\d*"
)
_OWN = re.compile(rf"_Z\d|{_NESTED}\d")
# namespaces of the C++ run time, of header-only libraries and of cuDNN: never the module's own
_NOT_OWN = re.compile(rf"{_NESTED}(?:10__cxxabiv1|9__gnu_cxx|8pybind11|5cudnn|6thrust|3cub)")
# pt24cu124 (torch-scatter and its kind), torch2.4.0cu124, and cu12torch2.4cxx11abiFALSE (flash-attn)
_LABELS = (
    re.compile(r"^pt(?P<major>\d)(?P<minor>\d+)(?P<variant>cu\d+|cpu)$"),
    re.compile(r"^torch(?P<torch>\d+\.\d+(?:\.\d+)?)(?P<variant>cu\d+|cpu)$"),
    re.compile(r"^cu(?P<cuda>\d+)torch(?P<torch>\d+\.\d+)(?P<abi>cxx11abi(?:true|false))?$", re.IGNORECASE),
)


def owner_of(symbol: str) -> Owner:
    """Expected owner of a symbol, by its name."""
    # torch first: its namespaces are nested names as well, which the pattern of own symbols would take
    if _TORCH.match(symbol):
        return "torch"
    return "own" if _OWN.match(symbol) and not _NOT_OWN.match(symbol) else "other"


def symbols(library: Library, owner: Owner) -> list[UnresolvedSymbol]:
    """Return the undefined symbols that `owner` should define."""
    return [item for item in library.unresolved if owner_of(item.symbol) == owner]


def links_torch(library: Library) -> bool:
    """Whether the loader loads torch's libraries with it."""
    # without such an entry a module relies on an earlier `import torch`, or opens the libraries itself
    return any(map(TORCH_LIBRARY.match, library.needed))


def label_torch(label: str | None) -> str | None:
    """The torch that a local version label names: 2.4 for ``pt24cu124`` and ``cu12torch2.4cxx11abiFALSE``."""
    for pattern in _LABELS:
        match = pattern.match(label or "")
        if match:
            parts = match.groupdict()
            return parts.get("torch") or f"{parts['major']}.{parts['minor']}"
    return None


def requirement_on_torch(distribution: Distribution) -> Requirement | None:
    """Its own unconditional requirement on torch."""
    for text in distribution.requires:
        try:
            found = Requirement(text)
        except InvalidRequirement:
            continue
        # a marker may be about an extra or another platform: such a requirement binds nothing here
        if found.name.lower() == "torch" and found.marker is None:
            return found
    return None


def pinned_torch(distribution: Distribution) -> str | None:
    """Return the release of torch that its metadata pins."""
    found = requirement_on_torch(distribution)
    pins = [item.version for item in found.specifier if item.operator == "=="] if found is not None else []
    return pins[0].removesuffix(".*") if pins else None


def distributions(environment: Environment, libraries: Iterable[Library]) -> list[Distribution]:
    """Return the installed distributions of `libraries`, each once."""
    names = dict.fromkeys(item.distribution for item in libraries if item.distribution is not None)
    found = (environment.distribution(name) for name in names)
    return [item for item in found if item is not None]


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _label_for(label: str | None, build: TorchBuild, torch: Version) -> str | None:
    """The label that a build for the installed torch has where this one was built for another; None: no such label."""
    matches = ((pattern, pattern.match(label or "")) for pattern in _LABELS)
    found = next((match.groupdict() for _, match in matches if match), None)
    if found is None or build.variant is None:
        return None
    return _filled_label(found, build, torch)


def _filled_label(found: Mapping[str, str | None], build: TorchBuild, torch: Version) -> str | None:
    if found.get("major") is not None:
        return f"pt{torch.major}{torch.minor}{build.variant}"
    # as many parts of the release as the other label had: torch2.4 or torch2.4.0
    digits = (found["torch"] or "").count(".")
    release = ".".join(map(str, torch.release[: digits + 1]))
    if found.get("cuda") is None:
        return f"torch{release}{build.variant}"
    if build.cuda is None:
        return None
    major = build.cuda.partition(".")[0]
    # flash-attn's older releases name the CUDA release (cu118), later ones its major version (cu12): keep the form
    cuda = major if len(found["cuda"] or "") < len("118") else (build.variant or "").removeprefix("cu")
    abi = f"cxx11abi{str(build.cxx11_abi).lower()}" if found.get("abi") and build.cxx11_abi is not None else ""
    return f"cu{cuda}torch{release}{abi}"


def missing_torch_symbols(environment: Environment) -> list[Library]:
    """Return the modules that link torch and need symbols which the installed torch does not define."""
    # only modules that link torch: in others the undefined symbols may come from a library opened at run time
    return [item for item in strict(environment) if symbols(item, "torch") and links_torch(item)]


def missing_torch_libraries(environment: Environment) -> list[Library]:
    """Return the modules that need a library which the installed torch does not bring."""
    return [item for item in strict(environment) if any(map(TORCH_LIBRARY.match, item.missing))]


def strict(environment: Environment) -> list[Library]:
    """Return the modules that fail with a torch of the wrong version, without those of tolerant distributions."""
    return [item for item in environment.extensions if item.distribution not in TOLERANT]


def for_other_torch(environment: Environment) -> list[Distribution]:
    """Return the distributions with modules that were built for another torch."""
    return distributions(environment, (*missing_torch_symbols(environment), *missing_torch_libraries(environment)))


def other_label(item: Distribution, build: TorchBuild | None) -> str | None:
    """Return the local label of `item`'s build for the installed torch, None where it has it or none names torch."""
    torch = _version(build.version) if build is not None else None
    label = _label_for(item.local, build, torch) if build is not None and torch is not None else None
    return None if label is None or label.lower() == (item.local or "").lower() else label


def names_other_torch(item: Distribution, build: TorchBuild | None) -> bool:
    """Whether the local label of `item`, or its requirement on torch, is for another torch than the installed one."""
    torch, accepted = _version(build.version) if build is not None else None, requirement_on_torch(item)
    # nightly builds of torch are pre-releases, which a specifier refuses unless asked
    refuses = accepted is not None and torch is not None and not accepted.specifier.contains(torch, prereleases=True)
    return refuses or other_label(item, build) is not None
