"""The compiled libraries of the torch family: what they need, whether they would load, and for which GPUs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from envmedic.model.facts import Distribution, Library, UnmetVersion, UnresolvedSymbol
from envmedic.probe import layout
from envmedic.probe.binaries.family_files import Package, operator_libraries, torch_extension, torch_gpu_libraries
from envmedic.probe.elf import fatbin
from envmedic.probe.elf.demangle import demangle
from envmedic.probe.elf.dynamic import ElfError
from envmedic.probe.elf.loader import LoadCheck, Process, Search
from envmedic.probe.readable import names

SHOWN_SYMBOLS = 20
_CUDA_LINKED = re.compile(r"libcudart|libtorch_cuda|libc10_cuda|libtorch_hip|libamdhip")


def observe(prefix: Path, python: Path, packages: Mapping[str, Package], search: Search) -> tuple[Library, ...]:
    """Read the libraries of torch, torchvision and torchaudio as a process of `python` would load them."""
    with closing(process_of(python, packages.get("torch"), search)) as process:
        return family(prefix, packages, process)


def family(prefix: Path, packages: Mapping[str, Package], process: Process) -> tuple[Library, ...]:
    """Check the libraries of the torch family in `process`, into which torch's own are opened."""
    torch = packages.get("torch")
    found = list(_torch_libraries(prefix, torch, process)) if torch else []
    for name in ("torchvision", "torchaudio"):
        if name in packages:
            found += _companion_libraries(prefix, packages[name], process)
    return tuple(found)


def process_of(python: Path, torch: Package | None, search: Search) -> Process:
    """A process that has started and opened the libraries that torch opens before anything else.

    Where one is missing, torch opens the copies in ``site-packages/nvidia`` itself and tries again.
    """
    process = _started(python, search)
    dependencies = torch.folder / "lib" / "libtorch_global_deps.so" if torch else None
    if torch is None or dependencies is None or not dependencies.exists():
        return process
    # the same two attempts as `_load_global_deps` in torch/__init__.py
    if not _open_everywhere(process, dependencies):
        process.close()
        # a new process: the failed attempt has left libraries in the first one, which dlopen would have unloaded
        process = _started(python, search)
        process.siblings = nvidia_libraries(torch.folder.parent)
        _open_everywhere(process, dependencies)
        process.siblings = {}
    return process


def _started(python: Path, search: Search) -> Process:
    process = Process(search)
    try:
        process.start(Path(os.path.realpath(python)))
    except (OSError, ElfError):
        process.close()  # no program: Python's own symbols cannot be looked up, and `check` leaves them out
        return Process(search)
    return process


def _open_everywhere(process: Process, path: Path) -> bool:
    """Open a library with RTLD_GLOBAL; whether all that it needs was found."""
    try:
        root = process.open(path, everywhere=True)
    except (OSError, ElfError):
        return False
    return not process.missing(root)


def nvidia_libraries(site: Path) -> dict[str, Path]:
    """The libraries of the nvidia wheels, by file name, which is their soname."""
    folders = [site / "nvidia" / name / "lib" for name in names(site / "nvidia")]
    return {name: folder / name for folder in folders for name in names(folder) if ".so." in name}


def _torch_libraries(prefix: Path, torch: Package, process: Process) -> Iterator[Library]:
    extension = torch_extension(torch)
    if extension is not None:
        # torch's own libraries come from one build: what can differ is the C interface of the CUDA libraries
        yield library(prefix, extension, torch.distribution, process, partial(process.check, mangled=False))
    for path in torch_gpu_libraries(torch):
        child = process.fork()
        yield library(prefix, path, torch.distribution, child, child.check_needs)


def _companion_libraries(prefix: Path, package: Package, process: Process) -> Iterator[Library]:
    paths = operator_libraries(package)
    for path in paths:
        child = process.fork()
        # torchaudio opens its own lib*.so before the extensions that need them
        child.siblings = {item.name: item for item in paths if item.name.startswith("lib") and item != path}
        yield library(prefix, path, package.distribution, child, child.check)


def library(
    prefix: Path,
    path: Path,
    owned_by: Distribution | None,
    process: Process,
    check: Callable[[Path], LoadCheck],
    *,
    share: float = fatbin.COMMON,
) -> Library:
    """The facts of one library, which `check` loads into `process`; a failure to read or load it becomes its error.

    `share` is that of the fat binaries in which an architecture must be to count.
    """
    shown = layout.relative(path, prefix)
    owner = owned_by.name if owned_by else None
    try:
        verdict = check(path)
        elf = process.file(path)
        code = fatbin.read(elf, share)
        needed = elf.needed
    except (OSError, ElfError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Library(path=shown, distribution=owner, error=reason)
    return Library(
        path=shown,
        distribution=owner,
        needed=needed,
        missing=verdict.missing,
        unresolved=_symbols(verdict.unresolved),
        unresolved_count=len(verdict.unresolved),
        unmet_versions=tuple(
            UnmetVersion(version=item.version, found=str(item.found), needed_by=layout.relative(item.needed_by, prefix))
            for item in verdict.versions
        ),
        sass=code.sass,
        ptx=code.ptx,
        gpu_code=code.found,
        uses_cuda=code.found or any(_CUDA_LINKED.match(name) for name in needed),
    )


def _symbols(names_: tuple[bytes, ...]) -> tuple[UnresolvedSymbol, ...]:
    symbols = [name.decode("utf-8", "replace") for name in names_[:SHOWN_SYMBOLS]]
    readable = demangle(symbols)
    return tuple(UnresolvedSymbol(symbol=item, demangled=readable[item]) for item in symbols)
