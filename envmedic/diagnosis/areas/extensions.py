"""Compiled modules: whose symbols they miss decides what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, Environment, Facts, Library, TorchBuild, UnresolvedSymbol

Owner = Literal["torch", "own", "other"]
TOLERANT = frozenset({"torchao"})
"""Distributions that look at torch's version and leave their modules out where it does not fit."""
DRIVER = re.compile(r"lib(?:cuda|nvidia-\w+|nvcuvid|nvoptix|cudadebugger)\.so")
"""Libraries that come with the NVIDIA driver, and are absent on hosts without one."""
TORCH_LIBRARY = re.compile(r"lib(?:torch|c10|caffe2|shm|ATen)\w*\.so")
_NESTED = r"_Z(?:T[IVSTC]|G[VR]|Th\w{1,6}_)?N[KVRO]{0,3}"
_TORCH = re.compile(
    rf"{_NESTED}(?:3c10|2at|5torch|6caffe2|4c10d)"
    r"|(?:_Z\d{1,2})?_?(?:THP|THC|THGenerator|THArg|THError)[A-Z_]?\w|aoti_torch_|torch_\w+_v?\d*"
)
_OWN = re.compile(rf"_Z\d|{_NESTED}\d")
_NOT_OWN = re.compile(rf"{_NESTED}(?:10__cxxabiv1|9__gnu_cxx|8pybind11|5cudnn|6thrust|3cub)")
_NEW_STRINGS = "NSt7__cxx11"
_OLD_STRINGS = re.compile(r"(?:[EKRIO]|\d_)Ss")
_SPLIT_CUDA = re.compile(r"libtorch_cuda_c(?:u|pp)\.so")
_RECORDED = frozenset({"vcs", "directory", "editable"})
_LABELS = (
    re.compile(r"^pt(?P<major>\d)(?P<minor>\d+)(?P<variant>cu\d+|cpu)$"),
    re.compile(r"^torch(?P<torch>\d+\.\d+(?:\.\d+)?)(?P<variant>cu\d+|cpu)$"),
    re.compile(r"^cu(?P<cuda>\d+)torch(?P<torch>\d+\.\d+)(?P<abi>cxx11abi(?:true|false))?$", re.IGNORECASE),
)


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_extensions`."""
    environment = facts.environment
    if environment is None:
        return {}
    modules = [item for item in environment.extensions if item.distribution not in TOLERANT]
    torch = [item for item in modules if _symbols(item, "torch") and _links_torch(item)]
    own = [item for item in modules if _certain(item) and _symbols(item, "own")]
    lacking = [item for item in modules if any(map(TORCH_LIBRARY.match, item.missing))]
    wrong = _distributions(environment, (*torch, *lacking))
    derived: Derived = {
        "extensions.count": environment.extension_count,
        "extensions.undefined": _owners(item for item in modules if item.unresolved and _certain(item)),
        "extensions.undefined-symbols": tuple(
            dict.fromkeys(symbol.symbol for item in modules if _certain(item) for symbol in item.unresolved)
        ),
        "extensions.undefined-torch": _owners(torch),
        "extensions.torch-symbols": tuple(_told(item, "torch", environment) for item in _firsts(torch)),
        "extensions.undefined-own": _owners(own),
        "extensions.own-symbols": tuple(_told(item, "own", environment) for item in _firsts(own)),
        "extensions.missing-torch-libraries": _owners(lacking),
        "extensions.missing-libraries": tuple(_missing(modules)),
        "extensions.other-cxx-abi": _owners(item for item in torch if other_strings(item, environment.torch)),
        "extensions.replacements": tuple(_replacements(wrong, environment)),
        "extensions.rebuildable": with_source(wrong),
        "extensions.own-rebuildable": with_source(_distributions(environment, own)),
        "extensions.unreadable": tuple(f"{item.path}: {item.error}" for item in modules if item.error is not None),
    }
    if environment.torch is not None and environment.torch.cxx11_abi is not None:
        derived["torch.cxx11-abi"] = environment.torch.cxx11_abi
    return derived


def owner_of(symbol: str) -> Owner:
    """Who should define a symbol, by its name."""
    if _TORCH.match(symbol):
        return "torch"
    return "own" if _OWN.match(symbol) and not _NOT_OWN.match(symbol) else "other"


def _symbols(library: Library, owner: Owner) -> list[UnresolvedSymbol]:
    return [item for item in library.unresolved if owner_of(item.symbol) == owner]


def _certain(library: Library) -> bool:
    """Whether what is undefined cannot be in a library that was not found."""
    return not library.missing and library.error is None


def _links_torch(library: Library) -> bool:
    """Whether the loader gives it torch's libraries. One that does not ask for them loads them in its own way, if ever."""
    return any(map(TORCH_LIBRARY.match, library.needed))


def _name(library: Library) -> str:
    return library.distribution or library.path.rpartition("site-packages/")[2]


def _owners(libraries: Iterable[Library]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_name, libraries)))


def _firsts(libraries: Iterable[Library]) -> Iterator[Library]:
    """The first library of each owner."""
    seen: set[str] = set()
    for item in libraries:
        if _name(item) not in seen:
            seen.add(_name(item))
            yield item


def _told(library: Library, owner: Owner, environment: Environment) -> str:
    first = _symbols(library, owner)[0]
    needs = f"{library.path} needs {first.demangled or first.symbol}"
    built = _built_for(library, environment) if owner == "torch" else None
    return f"{needs} (built for {built})" if built else needs


def _built_for(library: Library, environment: Environment) -> str | None:
    """The torch that a module was built for: its distribution says so, or what it needs tells."""
    distribution = environment.distribution(library.distribution) if library.distribution else None
    if distribution is not None:
        stated = label_torch(distribution.local) or _pinned_torch(distribution)
        if stated is not None:
            return f"torch {stated}"
    if any(map(_SPLIT_CUDA.match, library.needed)):
        return "torch 1.10 to 1.13"
    return "a torch with the other form of C++ strings" if other_strings(library, environment.torch) else None


def other_strings(library: Library, torch: TorchBuild | None) -> bool:
    """Whether the symbols of torch that it misses take C++ strings in the form that this torch has not."""
    if torch is None or torch.cxx11_abi is None:
        return False
    names = [item.symbol for item in _symbols(library, "torch")]
    if torch.cxx11_abi:
        return any(_OLD_STRINGS.search(name) and _NEW_STRINGS not in name for name in names)
    return any(_NEW_STRINGS in name for name in names)


def label_torch(label: str | None) -> str | None:
    """The torch that a local version label names: 2.4 for ``pt24cu124`` and ``cu12torch2.4cxx11abiFALSE``."""
    for pattern in _LABELS:
        match = pattern.match(label or "")
        if match:
            parts = match.groupdict()
            return parts.get("torch") or f"{parts['major']}.{parts['minor']}"
    return None


def _requirement(distribution: Distribution) -> Requirement | None:
    """Its own unconditional requirement on torch."""
    for text in distribution.requires:
        try:
            found = Requirement(text)
        except InvalidRequirement:
            continue
        if found.name.lower() == "torch" and found.marker is None:
            return found
    return None


def _pinned_torch(distribution: Distribution) -> str | None:
    found = _requirement(distribution)
    pins = [item.version for item in found.specifier if item.operator == "=="] if found is not None else []
    return pins[0].removesuffix(".*") if pins else None


def _missing(modules: Iterable[Library]) -> Iterator[str]:
    for item in modules:
        yield from (f"{soname} ({item.path})" for soname in item.missing if not DRIVER.match(soname))


def _distributions(environment: Environment, libraries: Iterable[Library]) -> list[Distribution]:
    names = dict.fromkeys(item.distribution for item in libraries if item.distribution is not None)
    found = (environment.distribution(name) for name in names)
    return [item for item in found if item is not None]


def with_source(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Those of them that were built here, from a source that is recorded or that an index has."""
    return tuple(item.name for item in distributions if _has_source(item))


def _has_source(distribution: Distribution) -> bool:
    """Whether it was built here. Wheels that projects publish carry the platform tag of manylinux or musllinux."""
    origin = distribution.origin
    if origin.kind == "archive":
        return origin.url is not None and not origin.url.partition("#")[0].endswith(".whl")
    if origin.kind == "index":
        return bool(distribution.tags) and not any("many" in tag or "musl" in tag for tag in distribution.tags)
    return origin.kind in _RECORDED


def _replacements(distributions: Iterable[Distribution], environment: Environment) -> Iterator[str]:
    """Another build of the same version by its label, or the version whose metadata accepts this torch."""
    build = environment.torch
    torch = _version(build.version) if build is not None else None
    for item in distributions:
        label = _label_for(item.local, build, torch) if build is not None and torch is not None else None
        accepted = _requirement(item)
        if label is not None and label.lower() != (item.local or "").lower():
            yield f"{item.name}=={item.public}+{label}"
        elif accepted is not None and torch is not None and not accepted.specifier.contains(torch, prereleases=True):
            yield item.name


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
    digits = (found["torch"] or "").count(".")
    release = ".".join(map(str, torch.release[: digits + 1]))
    if found.get("cuda") is None:
        return f"torch{release}{build.variant}"
    if build.cuda is None:
        return None
    major = build.cuda.partition(".")[0]
    cuda = major if len(found["cuda"] or "") < len("118") else (build.variant or "").removeprefix("cu")
    abi = f"cxx11abi{str(build.cxx11_abi).lower()}" if found.get("abi") and build.cxx11_abi is not None else ""
    return f"cu{cuda}torch{release}{abi}"
