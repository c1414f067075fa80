"""CUDA libraries that torch's own libraries load: their paths, and whether they match each other."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from envmedic.model.facts import CudaLibrary
from envmedic.probe import layout
from envmedic.probe.binaries.family_files import Package
from envmedic.probe.binaries.libraries import SHOWN_SYMBOLS, nvidia_libraries
from envmedic.probe.elf.demangle import demangle
from envmedic.probe.elf.dynamic import ElfError
from envmedic.probe.elf.loader import Loaded, Process
from envmedic.probe.readable import is_file

_CUDA = re.compile(
    r"lib(cudart|cublas(Lt)?|cudnn\w*|nvrtc|cupti|nccl|cufftw?|curand|cusolver\w*|cusparse(Lt)?|nvJitLink|nvToolsExt"
    r"|cufile\w*|nvshmem\w*|cudss\w*)\.so\.\d"
)
_OPENED_LATER = re.compile(r"libcudnn_\w+\.so\.\d+")
"""Parts that cuDNN opens by name when it is first used: by LD_LIBRARY_PATH, then beside itself (DT_RUNPATH)."""
_COMPILER = re.compile(r"libnvrtc\.so\.\d")
_COMPILER_USER = "libcaffe2_nvrtc.so"
"""torch's library that is opened when the first kernel is compiled, and needs NVRTC."""


def observe(prefix: Path, torch: Package | None, process: Process) -> tuple[CudaLibrary, ...]:
    """List the CUDA libraries in `process`, which has opened torch's libraries."""
    if torch is None:
        return ()
    own = nvidia_libraries(torch.folder.parent)
    loaded = process.every()
    found = [_found(prefix, item, own, process) for item in loaded if _CUDA.match(_name(item))]
    later = (*_opened_later(prefix, own, process), *_compiler(prefix, torch, own, process))
    return (*found, *_missing(prefix, loaded), *(item for item in later if item not in found))


def _name(library: Loaded) -> str:
    return library.elf.soname or library.path.name


def _found(prefix: Path, library: Loaded, own: Mapping[str, Path], process: Process) -> CudaLibrary:
    name = _name(library)
    unresolved = process.unresolved_of(library)
    shown = [symbol.decode("utf-8", "replace") for symbol in unresolved[:SHOWN_SYMBOLS]]
    readable = demangle(shown) if shown else {}
    return CudaLibrary(
        soname=name,
        path=layout.relative(_plain(library.path), prefix),
        instead_of=_instead_of(prefix, library.path, own.get(name)),
        unresolved=tuple(readable.get(symbol) or symbol for symbol in shown),
        unresolved_count=len(unresolved),
    )


def _plain(path: Path) -> Path:
    """Without the ``..`` of a search path, links kept."""
    return Path(os.path.normpath(path))


def _instead_of(prefix: Path, found: Path, own: Path | None) -> str | None:
    if own is None or os.path.realpath(found) == os.path.realpath(own):
        return None
    return layout.relative(own, prefix)


def _missing(prefix: Path, loaded: tuple[Loaded, ...]) -> Iterator[CudaLibrary]:
    """Each library that is not found once, with the first that asks for it."""
    asked = {name: item for item in reversed(loaded) for name in item.missing if _CUDA.match(name)}
    for name, item in asked.items():
        yield CudaLibrary(soname=name, path=None, needed_by=layout.relative(_plain(item.path), prefix))


def _opened_later(prefix: Path, own: Mapping[str, Path], process: Process) -> Iterator[CudaLibrary]:
    """Parts of the environment's cuDNN that a directory of LD_LIBRARY_PATH has of another release."""
    main = process.loaded("libcudnn.so.9") or process.loaded("libcudnn.so.8")
    for name, path in own.items():
        if main is None or not _OPENED_LATER.fullmatch(name) or process.loaded(name) is not None:
            continue
        candidates = (Path(directory, name) for directory in process.search.library_path)
        other = next((item for item in candidates if is_file(item)), None)
        hidden = _instead_of(prefix, other, path) if other is not None else None
        # a copy of the same release does no harm, and its size shows it (see `_size`)
        if other is not None and hidden is not None and _size(other) != _size(path):
            yield CudaLibrary(soname=name, path=layout.relative(other, prefix), instead_of=hidden)


def _compiler(prefix: Path, torch: Package, own: Mapping[str, Path], process: Process) -> Iterator[CudaLibrary]:
    """The run-time compiler that torch gets where it is not the environment's own."""
    # torch opens it at the first run-time compilation, after everything else: the fork keeps it out of `process`
    child = process.fork()
    try:
        child.open(torch.folder / "lib" / _COMPILER_USER)
    except (OSError, ElfError):
        return  # a torch without it opens NVRTC by a name of its own
    for library in child.every():
        hidden = _instead_of(prefix, library.path, own.get(_name(library)))
        if hidden is not None and _COMPILER.match(_name(library)):
            yield CudaLibrary(
                soname=_name(library), path=layout.relative(_plain(library.path), prefix), instead_of=hidden
            )


def _size(path: Path) -> int | None:
    """Bytes of a file: two releases of a library never have the same."""
    try:
        return path.stat().st_size
    except OSError:
        return None
