"""Which compiled modules know the binary interface of NumPy 1 only, read from the texts inside them.

A module gets NumPy's functions at run time, by importing the module that exports them and reading its
``_ARRAY_API``. What was compiled with NumPy 2 tries ``numpy._core``, the name since NumPy 2; what was
compiled with NumPy 1 has ``numpy.core`` alone, and is refused by NumPy 2. Modules that ask only when an
array comes along are left out: those that use pybind11's header, whose few functions NumPy 2 still hands
out, and those written in Rust.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from envmedic.model.facts import NumpyModule
from envmedic.probe import layout
from envmedic.probe.elf.dynamic import Elf, ElfError
from envmedic.probe.packages.distributions import Installed, Scan

_FAMILY = re.compile(r"(?:numpy|torch|torchvision|torchaudio|triton|nvidia-.*)")
"""Distributions that are not read: NumPy itself, torch, of which a table tells it, and what is large and never asks."""
_INTERFACE, _NEW_NAME, _OLD_NAME = b"_ARRAY_API", b"numpy._core", b"numpy.core."
_AT_IMPORT = b"module compiled against A"
"""From the text of the check that `import_array` makes when a module is imported."""
_RUST = b"RUST_BACKTRACE"
BUDGET_BYTES = 48 << 20
"""Constants that are read for one distribution at most, from the smallest module on."""


def observe(scans: Sequence[Scan], prefix: Path) -> tuple[NumpyModule, ...] | None:
    """One module of each distribution that knows NumPy 1 only; None where no NumPy 2 or later is installed."""
    installed = [item for scan in scans for item in scan.installed]
    numpy = next((item.distribution for item in installed if item.distribution.name == "numpy"), None)
    if numpy is None or numpy.version.partition(".")[0] in {"0", "1"}:
        return None
    found = (_shows(item, scan.site, prefix) for scan in scans for item in scan.installed)
    return tuple(module for module in found if module is not None)


def _shows(item: Installed, site: Path, prefix: Path) -> NumpyModule | None:
    """The first module of a distribution that asks NumPy, if it knows NumPy 1 only.

    One is enough: a distribution's modules are compiled together.
    """
    if _FAMILY.fullmatch(item.distribution.name):
        return None
    left = BUDGET_BYTES
    for path in _modules(item, site):
        verdict, size = _read(path)
        if verdict is not None:
            own = item.distribution
            shown = layout.relative(path, prefix)
            return NumpyModule(distribution=own.name, version=own.version, path=shown) if verdict else None
        left -= size
        if left < 0:
            return None
    return None


def _modules(item: Installed, site: Path) -> Iterator[Path]:
    """Its compiled modules, smallest first; bundled libraries (``lib*.so.1``) are none."""
    paths = (site / path for path in item.paths if path.endswith(".so"))
    return (path for _, path in sorted((_size(path), path) for path in paths))


def _size(path: Path) -> int:
    """In bytes; 0 for a file that is recorded and gone, which the comparison with RECORD tells."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path) -> tuple[bool | None, int]:
    """The verdict on a module, and its constants' bytes; nothing for an unreadable one: the load check reports it."""
    try:
        with closing(Elf(path)) as elf:
            part = next((item for item in elf.sections() if item.name == ".rodata"), None)
            if part is None:
                return None, 0
            start, size = min(part.offset, len(elf.data)), min(part.size, BUDGET_BYTES)
            end = min(start + size, len(elf.data))  # headers may state anything
            return _verdict(elf.data, start, end), end - start
    except (OSError, ElfError):
        return None, 0


def _verdict(data: mmap.mmap, start: int, end: int) -> bool | None:
    """Whether a module knows NumPy 1 only; None when it does not ask NumPy for its functions while it is imported.

    Its constants are searched where they lie: a copy would take ten times as long.
    """

    def has(text: bytes) -> bool:
        return data.find(text, start, end) >= 0

    if not has(_INTERFACE) or has(_RUST):
        return None
    if has(_NEW_NAME):
        return False
    return True if has(_OLD_NAME) and has(_AT_IMPORT) else None
