"""Remedies for programs that cannot be started, and for a moved environment."""

from __future__ import annotations

from envmedic.analysis import unstartable_programs
from envmedic.analysis.packages.doubled_files import pin, restorable
from envmedic.model.plan import MakeExecutable, ProgramScript, Purge, Relocate, ReplaceBase, WriteScripts
from envmedic.planner.remedies.remedy import Remedy, Situation


def moved_environment(situation: Situation) -> Remedy:
    """Rewrite the former path of the environment, and of the sources that moved with it."""
    former = unstartable_programs.moved(situation.environment)
    if former is None or former.names is None:
        return Remedy(why="the environment is where it was made")
    along = unstartable_programs.moved_along(situation.environment)
    step = Relocate(
        former=former.names,
        programs=tuple(item.path for item in along if item.kind == "program"),
        sources={item.names: item.now for item in along if item.kind != "program" and item.names and item.now},
    )
    return Remedy(steps=(step,), why="its files name the directory where it was made")


def base_python(situation: Situation) -> Remedy:
    """Lead the environment to a Python of the host with the release series of its packages."""
    python = situation.environment.interpreter.replacement
    if python is None:
        return Remedy(why="no Python of the host has the release series of the packages")
    dead = (item for item in situation.environment.defects if item.kind == "program" and item.names)
    own = (item.path for item in dead if str(item.names).startswith(f"{situation.environment.prefix}/bin/"))
    return Remedy(
        steps=(ReplaceBase(python=python, programs=tuple(own)),), why="its packages were made for that series"
    )


def make_executable(situation: Situation) -> Remedy:
    """Give programs their permission to execute back."""
    programs = tuple(item.path for item in unstartable_programs.not_executable(situation.environment))
    if not programs:
        return Remedy(why="every program of an installed distribution may be executed")
    return Remedy(steps=(MakeExecutable(programs=programs),), why="they are programs, and may not be executed")


def path_files(situation: Situation) -> Remedy:
    """Remove path files that are left of what was removed."""
    found = tuple(item.path for item in unstartable_programs.dead_path_files(situation.environment))
    if not found:
        return Remedy(why="every path file finds what it imports")
    return Remedy(steps=(Purge(leftovers=found),), why="they import what is gone, and no distribution lists them")


def scripts(situation: Situation) -> Remedy:
    """Write scripts again: from the entry point, else their first line; reinstall what brought others that are gone."""
    found = tuple(unstartable_programs.broken(situation.environment))
    written = tuple(
        ProgramScript(path=item.path, entry_point=item.entry_point) for item in found if item.entry_point or item.names
    )
    lost = dict.fromkeys(item.distribution for item in found if not item.entry_point and not item.names)
    owners = (situation.environment.distribution(name) for name in lost if name is not None)
    again = tuple(owner for owner in owners if owner is not None and restorable(owner))
    return Remedy(
        purge=tuple(item.name for item in again),
        install=tuple(map(pin, again)),
        steps=(WriteScripts(scripts=written),) if written else (),
        why="installed distributions bring these scripts"
        if written or again
        else "no script is broken that a distribution or an index could give again",
    )
