"""Load checks of all compiled files, in one model of a process that has imported torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from envmedic.model.consumers import Consumer
from envmedic.model.facts import CudaLibrary, CxxRuntime, Library
from envmedic.probe.binaries import consumer_libraries, cuda_libraries, cxx_runtime, extensions, libraries
from envmedic.probe.binaries.extensions import Extensions
from envmedic.probe.binaries.family_files import Package
from envmedic.probe.elf.loader import Search
from envmedic.probe.packages.distributions import Scan


class Compiled(msgspec.Struct, frozen=True):
    """Results of the load checks."""

    family: tuple[Library, ...]
    cuda: tuple[CudaLibrary, ...]
    extensions: Extensions
    cxx_runtimes: tuple[CxxRuntime, ...]
    consumers: tuple[Consumer, ...]


def observe(
    prefix: Path,
    python: Path,
    packages: Mapping[str, Package],
    search: Search,
    *,
    scans: Sequence[Scan],
    soabi: str | None,
    variables: Mapping[str, str],
) -> Compiled:
    """Check the torch family and every compiled module as a process of `python` would load them, torch first."""
    with closing(libraries.process_of(python, packages.get("torch"), search)) as process:
        family = libraries.family(prefix, packages, process)
        cuda = cuda_libraries.observe(prefix, packages.get("torch"), process)
        # after torch's libraries: extensions for torch are imported after it and use its symbols
        others = extensions.observe(prefix, scans, process, soabi)
        # other copies of libstdc++ matter only as a remedy, when some library asks for a newer version
        wanting = any(item.unmet_versions for item in (*family, *others.libraries))
        runtimes = cxx_runtime.observe(prefix, others.cxx_runtime, search, others=wanting)
        return Compiled(family, cuda, others, runtimes, consumer_libraries.observe(prefix, scans, search, variables))
