"""Facts on compiled modules, by the owner of the symbols that they miss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envmedic.analysis import compiled_modules
from envmedic.analysis.compiled_modules import (
    Owner,
    distributions,
    label_torch,
    names_other_torch,
    pinned_torch,
    symbols,
)
from envmedic.compat import tables
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, Environment, Facts, Library, TorchBuild

DRIVER = re.compile(r"lib(?:cuda|nvidia-\w+|nvcuvid|nvoptix|cudadebugger)\.so")
"""Libraries of the NVIDIA driver, absent on hosts without one."""
# std::string mangles as std::__cxx11::basic_string under _GLIBCXX_USE_CXX11_ABI=1 and as the abbreviation Ss under 0
_NEW_STRINGS = "NSt7__cxx11"
_OLD_STRINGS = re.compile(r"(?:[EKRIO]|\d_)Ss")
# torch 1.10 to 1.13 split libtorch_cuda in two; later releases joined it again
_SPLIT_CUDA = re.compile(r"libtorch_cuda_c(?:u|pp)\.so")
_RECORDED = frozenset({"vcs", "directory", "editable"})


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_extensions`."""
    environment = facts.environment
    if environment is None:
        return {}
    modules = compiled_modules.strict(environment)
    torch = compiled_modules.missing_torch_symbols(environment)
    # only certain ones: the module's own symbols may be in the library that was not found
    own = [item for item in modules if _certain(item) and symbols(item, "own")]
    lacking = compiled_modules.missing_torch_libraries(environment)
    wrong = compiled_modules.for_other_torch(environment)
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
        "extensions.names-other-torch": tuple(
            item.name for item in wrong if names_other_torch(item, environment.torch)
        ),
        "extensions.rebuildable": with_source(wrong),
        "extensions.own-rebuildable": with_source(distributions(environment, own)),
        "extensions.unreadable": tuple(f"{item.path}: {item.error}" for item in modules if item.error is not None),
    }
    halves = _without_gpu_half(environment)
    if halves is not None:
        derived["extensions.without-gpu-half"] = halves
    derived["extensions.half-rebuildable"] = halves or ()
    if environment.torch is not None and environment.torch.cxx11_abi is not None:
        derived["torch.cxx11-abi"] = environment.torch.cxx11_abi
    return derived


def _without_gpu_half(environment: Environment) -> tuple[str, ...] | None:
    """Distributions whose source has GPU code and whose modules use none, beside a CUDA build of torch.

    None where modules use none of which no source tells whether they should.
    """
    if environment.torch is None or environment.torch.cuda is None:
        return None
    bound = [item for item in environment.extensions if any(map(compiled_modules.TORCH_LIBRARY.match, item.needed))]
    using = {item.distribution for item in bound if item.uses_cuda or item.gpu_code}
    plain = [item for item in distributions(environment, bound) if item.name not in using]
    sources = environment.building.sources if environment.building is not None else ()
    known = {item.distribution for item in sources if item.cuda}
    known |= {name for name, row in tables.extensions().items() if row.gpu_build is not None}
    return with_source(item for item in plain if item.name in known) or (None if plain else ())


def _certain(library: Library) -> bool:
    """Whether every library that could define its symbols was found and read."""
    return not library.missing and library.error is None


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
    first = symbols(library, owner)[0]
    needs = f"{library.path} needs {first.demangled or first.symbol}"
    built = _built_for(library, environment) if owner == "torch" else None
    return f"{needs} (built for {built})" if built else needs


def _built_for(library: Library, environment: Environment) -> str | None:
    """The torch that a module was built for, by its distribution, or else by the libraries and symbols it needs."""
    distribution = environment.distribution(library.distribution) if library.distribution else None
    if distribution is not None:
        stated = label_torch(distribution.local) or pinned_torch(distribution)
        if stated is not None:
            return f"torch {stated}"
    if any(map(_SPLIT_CUDA.match, library.needed)):
        return "torch 1.10 to 1.13"
    return "a torch with the other form of C++ strings" if other_strings(library, environment.torch) else None


def other_strings(library: Library, torch: TorchBuild | None) -> bool:
    """Whether it misses symbols of torch with C++ strings of the other ABI."""
    if torch is None or torch.cxx11_abi is None:
        return False
    names = [item.symbol for item in symbols(library, "torch")]
    if torch.cxx11_abi:
        return any(_OLD_STRINGS.search(name) and _NEW_STRINGS not in name for name in names)
    return any(_NEW_STRINGS in name for name in names)


def _missing(modules: Iterable[Library]) -> Iterator[str]:
    for item in modules:
        yield from (f"{soname} ({item.path})" for soname in item.missing if not DRIVER.match(soname))


def with_source(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Names of the distributions that were built on this machine, from a recorded source or an index."""
    return tuple(item.name for item in distributions if _has_source(item))


def _has_source(distribution: Distribution) -> bool:
    """Whether it was built on this machine, so that it can be built again."""
    origin = distribution.origin
    if origin.kind == "archive":
        return origin.url is not None and not origin.url.partition("#")[0].endswith(".whl")
    if origin.kind == "index":
        # PyPI accepts Linux wheels with manylinux or musllinux tags only; a local build has plain linux_x86_64
        return bool(distribution.tags) and not any("many" in tag or "musl" in tag for tag in distribution.tags)
    return origin.kind in _RECORDED
