"""Distributions whose binaries fit one torch only: they cannot stay when torch changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from envmedic.compat import tables, versions
from envmedic.model.facts import Distribution, Environment
from envmedic.planner.family.family_query import FAMILY

_TORCH_LIBRARY = re.compile(r"lib(torch|c10)[\w]*\.so")


def bound(environment: Environment) -> Iterator[tuple[Distribution, str]]:
    """Return each installed distribution that is compiled for the installed torch, with how that is known.

    By the data on CUDA extensions, and by libraries that link torch's own. A library with the stable
    ABI may link torch and stay; the data says from which version.
    """
    known = (*environment.libraries, *environment.extensions)
    linked = {item.distribution for item in known if any(map(_TORCH_LIBRARY.match, item.needed))}
    for item in environment.distributions:
        if item.name in FAMILY:
            continue
        row = tables.extensions().get(item.name)
        stable = row is not None and row.stable_abi_from is not None and _at_least(item.version, row.stable_abi_from)
        if row is not None and row.compiled_for_torch and not stable:
            yield item, "its binaries are compiled for one torch"
        elif item.name in linked and not stable:
            yield item, "its libraries link those of torch"


def _at_least(installed: str, first: str) -> bool:
    parsed = versions.version(installed)
    return parsed is not None and parsed >= Version(first)
