"""Compiled modules of every distribution: whether they would load, and for which GPUs they have code.

What Python imports is looked at, and what extensions for torch open by path (``_C.so`` without the interpreter's
tag). Other libraries matter only where one of those needs them: many wheels bring plugins for hardware or for
versions that are not there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from envmedic import forked
from envmedic.model.facts import Distribution, Library
from envmedic.probe.binaries import libraries
from envmedic.probe.elf.dynamic import Elf, ElfError, gnu_hash
from envmedic.probe.elf.loader import LoadCheck, Process
from envmedic.probe.packages.distributions import Installed, Scan
from envmedic.probe.packages.import_names import Modules
from envmedic.probe.readable import is_directory, names

FAMILY = frozenset({"torch", "torchvision", "torchaudio"})
"""Looked at by `libraries`."""
CXX_RUNTIME = "libstdc++.so.6"
TORCH_LIBRARY = re.compile(r"lib(?:torch|c10|caffe2|shm)\w*\.so")
_LIBRARY = re.compile(r"[^/]+\.so(?:\.[\w.]+)?")
_MOST_PROCESSES = 6
"""More would spend longer on reading the same libraries again than they save."""
_MOST_FOLDERS = 500
"""Directories of a source tree that are searched for the modules of an editable install."""


class Group(msgspec.Struct, frozen=True):
    """The compiled modules of one distribution."""

    owner: Distribution | None
    modules: tuple[Path, ...]
    libraries: tuple[Path, ...]
    """All its compiled files."""


class Extensions(msgspec.Struct, frozen=True):
    """What was found."""

    libraries: tuple[Library, ...] = ()
    """Those that use torch or CUDA, or that would not load."""
    count: int = 0
    cxx_runtime: Path | None = None
    """The copy of libstdc++ that the first module which needs one finds."""


def observe(prefix: Path, scans: Iterable[Scan], process: Process, soabi: str | None) -> Extensions:
    """Check the modules of every distribution in `process`, which has opened torch's libraries."""
    found = [group for scan in scans for group in groups(scan, Modules(soabi))]
    fallbacks = {path.name: path for group in reversed(found) for path in group.libraries}
    fallbacks |= {path.name: path for scan in scans for path in libraries.nvidia_libraries(scan.site).values()}
    # Half of the time of a diagnosis on one core. Each process of the model reads torch's own libraries once more.
    answers = forked.spread(
        lambda number: _checked(prefix, found[number], process, fallbacks), len(found), most=_MOST_PROCESSES
    )
    runtimes = [_path_of(process, CXX_RUNTIME), *(answer.runtime for answer in answers)]
    return Extensions(
        libraries=tuple(library for answer in answers for library in answer.libraries),
        count=sum(len(group.modules) for group in found),
        cxx_runtime=next((path for path in runtimes if path is not None), None),
    )


class _Checked(msgspec.Struct, frozen=True):
    """What came of a group."""

    libraries: list[Library]
    runtime: Path | None


def _checked(prefix: Path, group: Group, process: Process, fallbacks: Mapping[str, Path]) -> _Checked:
    child = process.fork()
    child.fallbacks = fallbacks
    kept = list(filter(_matters, (_observed(prefix, path, group, child) for path in group.modules)))
    return _Checked(kept, _path_of(child, CXX_RUNTIME))


def _path_of(process: Process, soname: str) -> Path | None:
    loaded = process.loaded(soname)
    return loaded.path if loaded is not None else None


def _matters(library: Library) -> bool:
    wrong = library.missing or library.unresolved_count or library.unmet_versions or library.error
    return bool(wrong) or library.gpu_code or any(map(TORCH_LIBRARY.match, library.needed))


def _observed(prefix: Path, path: Path, group: Group, process: Process) -> Library:
    def check(module: Path) -> LoadCheck:
        verdict = process.check(module)
        if not verdict.unresolved:
            return verdict
        return LoadCheck(verdict.missing, _elsewhere_undefined(verdict.unresolved, group), verdict.versions)

    return libraries.library(prefix, path, group.owner, process, check, share=0.0)


def _elsewhere_undefined(symbols: tuple[bytes, ...], group: Group) -> tuple[bytes, ...]:
    """Those that no other library of the distribution defines: packages open libraries for their modules."""
    left = symbols
    for path in group.libraries:
        left = _undefined_by(path, left)
    return left


def _undefined_by(path: Path, symbols: tuple[bytes, ...]) -> tuple[bytes, ...]:
    try:
        with closing(Elf(path)) as elf:
            return tuple(elf.lacking({name: gnu_hash(name) for name in symbols}))
    except (OSError, ElfError):
        return symbols


def groups(scan: Scan, modules: Modules) -> Iterator[Group]:
    """The compiled modules in one site-packages directory, by distribution, then those that nobody recorded."""
    recorded: set[str] = set()
    for item in scan.installed:
        paths = [path for path in item.paths if path.endswith(".so") or ".so." in path]
        recorded.update(paths)
        if item.distribution.name not in FAMILY:
            files = [scan.site / path for path in paths] or list(_unrecorded(scan.site, item))
            yield from _group(item.distribution, files, modules)
    stray = [scan.site / name for name in names(scan.site) if name.endswith(".so") and name not in recorded]
    yield from _group(None, stray, modules)
    for egg in names(scan.site):
        if egg.endswith(".egg") and is_directory(scan.site / egg):
            yield from _group(None, list(_walk(scan.site / egg)), modules)


def _group(owner: Distribution | None, files: list[Path], modules: Modules) -> Iterator[Group]:
    importable = tuple(path for path in files if path.name.endswith(".so") and is_module(path, modules))
    if importable:
        yield Group(owner, importable, tuple(files))


def is_module(path: Path, modules: Modules) -> bool:
    """Whether Python imports the file, or an extension for torch opens it by path.

    A name without a tag may be that of a mere library: what is in the file decides.
    """
    if path.name.count(".") > 1:
        return modules.name(path.name) is not None and os.path.exists(path)  # noqa: PTH110  # hundreds of files
    stem = path.name.partition(".")[0]
    try:
        with closing(Elf(path)) as elf:
            entry = f"PyInit_{stem}".encode()
            if elf.defines(entry, gnu_hash(entry)):
                return True
            return not stem.startswith("lib") and any(map(TORCH_LIBRARY.match, elf.needed))
    except OSError:
        return False
    except ElfError:
        return not stem.startswith("lib")


def _unrecorded(site: Path, item: Installed) -> Iterator[Path]:
    """Compiled files of a distribution without a list of them: in its packages, or in its source tree."""
    origin = item.distribution.origin
    if origin.kind == "editable" and origin.url is not None:
        yield from _walk(Path(unquote(urlsplit(origin.url).path)))
    elif not item.distribution.has_record:
        for name in item.distribution.import_names:
            yield from _walk(site.joinpath(*name.split(".")))


def _walk(folder: Path) -> Iterator[Path]:
    """Compiled files below `folder`, but for those in build directories and hidden ones."""
    for count, (where, directories, files) in enumerate(os.walk(folder)):
        if count >= _MOST_FOLDERS:
            return
        directories[:] = sorted(name for name in directories if name != "build" and not name.startswith("."))
        yield from (Path(where, name) for name in sorted(files) if _LIBRARY.fullmatch(name))
