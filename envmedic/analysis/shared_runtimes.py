"""Run-time libraries that several packages contain: OpenMP and MKL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from packaging.utils import canonicalize_name

from envmedic.model.facts import Distribution, Environment, OpenMpRuntime

KMP_FAMILY = frozenset({"libiomp5", "libomp"})
"""Runtimes of which a second one aborts the process (``__KMP_REGISTERED_LIB``): Intel's is built from LLVM's source."""
RUNTIME_ONLY = frozenset({"intel-openmp", "llvm-openmp"})
"""Distributions that contain an OpenMP runtime and nothing else."""
MKL_WHEELS = ("mkl", "intel-openmp", "tbb", "tcmlib", "umf")
"""MKL's wheel and its requirements since release 2021."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def openmp_family(environment: Environment) -> tuple[OpenMpRuntime, ...]:
    """Return the OpenMP runtimes that exclude each other, each file once."""
    # `same_as` marks a link to a file that is listed too, which the loader maps once
    return tuple(item for item in environment.openmp if item.kind in KMP_FAMILY and item.same_as is None)


def mkl_wheels(environment: Environment) -> tuple[Distribution, ...]:
    """Return the installed wheels of MKL and of the runtimes that it needs."""
    return tuple(item for item in environment.distributions if item.name in MKL_WHEELS and item.owner != "conda")


def removable(environment: Environment, family: Sequence[OpenMpRuntime]) -> tuple[str, ...]:
    """Return the wheels that contain a runtime only and that nothing requires, if another runtime remains."""
    required = {name for item in environment.distributions for name in names_of(item.requires)}
    found = [
        item.distribution
        for item in family
        if item.distribution in RUNTIME_ONLY and item.distribution not in required and _is_wheel(environment, item)
    ]
    others = [item for item in family if item.distribution not in found]
    return tuple(dict.fromkeys(name for name in found if name)) if others else ()


def _is_wheel(environment: Environment, runtime: OpenMpRuntime) -> bool:
    installed = environment.distribution(runtime.distribution or "")
    return installed is not None and installed.owner != "conda"


def names_of(requires: Iterable[str]) -> Iterator[str]:
    """Return the names that requirements begin with, normalised."""
    matches = (_NAME.match(text) for text in requires)
    return (canonicalize_name(match[0]) for match in matches if match is not None)
