"""Remedies for shared run-time libraries: OpenMP, MKL and the C++ library."""

from __future__ import annotations

import re

from envmedic.analysis.cxx_runtimes import LIBRARY_PATH, old_entries
from envmedic.analysis.shared_runtimes import MKL_WHEELS, mkl_wheels, names_of, openmp_family, removable
from envmedic.errors import NoSolution
from envmedic.planner.remedies.remedy import Remedy, Situation


def openmp_runtimes(situation: Situation) -> Remedy:
    """Remove wheels of an OpenMP runtime alone that nothing requires, as long as another runtime stays."""
    environment = situation.environment
    going = removable(environment, openmp_family(environment))
    if not going:
        return Remedy(why="no wheel brings nothing but a second OpenMP runtime, which others could do without")
    return Remedy(purge=going, why="two runtimes of this kind end the process in which they meet")


def mkl_libraries(situation: Situation) -> Remedy:
    """Install MKL's wheels again, or what torch requires of MKL where none is installed."""
    there = mkl_wheels(situation.environment)
    torch = situation.environment.distribution("torch")
    wanted = (text for text in (torch.requires if torch else ()) if set(names_of([text])) & set(MKL_WHEELS))
    install = tuple(f"{item.name}=={item.version}" for item in there) or tuple(wanted)
    if not install:
        return Remedy(why="no wheel of MKL is installed, and torch requires none")
    # a purge first: an installer sees the version as present and would not restore its files
    return Remedy(purge=tuple(item.name for item in there), install=install, why="torch is linked with these libraries")


def libstdcxx_library_path(situation: Situation) -> Remedy:
    """Take the entries that lead to too old a C++ library out of LD_LIBRARY_PATH."""
    value = situation.variable(LIBRARY_PATH)
    old = old_entries(situation.environment, value)
    if not old:
        raise NoSolution(
            "LD_LIBRARY_PATH leads to no C++ library here that is too old, so there is nothing to take out of it",
            cause="no entry of it has too old a copy of libstdc++ behind which a good one would be found",
            hint="Plan in the shell in which the program fails, or see `envmedic explain libstdcxx` for other causes",
        )
    kept = (entry for entry in re.split("[:;]", value) if entry and entry not in old)
    return Remedy(variables={LIBRARY_PATH: ":".join(kept)}, why="the next copy in line is new enough")
