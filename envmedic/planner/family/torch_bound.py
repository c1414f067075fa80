"""Distributions whose binaries fit only one torch, and which cannot stay when torch changes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from envmedic.compat import tables, versions
from envmedic.model.facts import Distribution, Environment
from envmedic.planner.family.family_query import FAMILY

_TORCH_LIBRARY = re.compile(r"lib(torch|c10)[\w]*\.so")


def bound(environment: Environment) -> Iterator[tuple[Distribution, str]]:
    """Yield each installed distribution that is compiled for the installed torch, with the evidence as a clause.

    The evidence is the data on CUDA extensions, or a library that links one of torch's. A library with the stable
    ABI may link torch and stay; the data give the first such version.
    """
    # the data first: an extension that loads torch's symbols at run time names no library of torch in its ELF header
    known = (*environment.libraries, *environment.extensions)
    linked = {item.distribution for item in known if any(map(_TORCH_LIBRARY.match, item.needed))}
    for item in environment.distributions:
        if item.name in FAMILY:
            continue
        row = tables.extensions().get(item.name)
        first = row.stable_abi_from if row is not None else None
        installed = versions.version(item.version)
        read = tables.coupling(item.name, versions.public(item.version))
        interface = read.interface if read is not None else None
        stable = interface == "stable" or (first is not None and installed is not None and installed >= Version(first))
        if row is not None and row.compiled_for_torch and not stable:
            yield item, "its binaries are compiled for one torch"
        elif (item.name in linked or interface == "torch") and not stable:
            yield item, "its libraries link those of torch"
