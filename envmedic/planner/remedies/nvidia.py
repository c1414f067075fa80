"""Remedies for NVIDIA's libraries: the wheels that torch requires, and search paths to other copies."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from packaging.utils import canonicalize_name

from envmedic.analysis.consumer_faults import consumer_faults, kinds
from envmedic.analysis.nvidia_wheels import Wanted, cuda_folders, other_majors, preloaded_compilers, wheels
from envmedic.model.facts import Environment
from envmedic.planner.remedies.consumers import moved_along
from envmedic.planner.remedies.remedy import Remedy, Situation


def nvidia_wheels(situation: Situation) -> Remedy:
    """Remove the wheels that torch does not find as it requires them, with what overwrote them, and install its own."""
    environment = situation.environment
    if environment.distribution("torch") is None and any(kinds(environment)):
        return Remedy(why="no torch is installed here")
    situation.torch("there is no CUDA release to install libraries for")
    found = wheels(situation.host, environment)
    if found is None:
        return Remedy(why="conda's torch is served by conda's libraries, which are no wheels")
    if not found.broken:
        return Remedy(why="torch finds exactly the libraries that it requires")
    # other consumers open the same files: one that refuses torch's release moves to a release that accepts it
    others = moved_along(situation, found.broken)
    there = (name for name in found.broken if environment.distribution(name) is not None)
    return Remedy(
        purge=(*there, *_intruders(environment, found.clobbered)),
        leftovers=True,
        install=(*(_requirement(name, found.required, environment) for name in found.broken), *others),
        why="torch is linked with exactly these releases",
    )


def nvidia_shadowed(situation: Situation) -> Remedy:
    """Take the directories of libraries that hide the environment's own out of LD_LIBRARY_PATH."""
    environment = situation.environment
    shadowed = [item.path for item in environment.cuda_libraries if item.instead_of is not None and item.path]
    others = consumer_faults(environment, situation.host).shadowed
    shadowed += [text.partition(" from ")[2].partition(", before ")[0] for text in others]
    hiding = {posixpath.dirname(posixpath.join(environment.prefix, path)) for path in shadowed}
    kept = [entry for entry in _entries(situation) if posixpath.normpath(entry) not in hiding]
    return Remedy(variables={"LD_LIBRARY_PATH": ":".join(kept)}, why="the loader takes what it finds there first")


def cuda_library_unseen(situation: Situation) -> Remedy:
    """Put the directories of the environment's CUDA libraries first in LD_LIBRARY_PATH."""
    folders = dict.fromkeys([*cuda_folders(situation.environment), *_entries(situation)])
    return Remedy(
        variables={"LD_LIBRARY_PATH": ":".join(folders)}, why="some programs look for the libraries there only"
    )


def nvrtc_preloaded(situation: Situation) -> Remedy:
    """Take the libraries that replace torch's own run-time compiler out of LD_PRELOAD."""
    hiding = preloaded_compilers(situation.facts, situation.environment)
    kept = [entry for entry, own in hiding.items() if not own]
    return Remedy(variables={"LD_PRELOAD": ":".join(kept)}, why="torch's own run-time compiler is then loaded")


def _entries(situation: Situation) -> list[str]:
    # ld.so accepts both separators, and reads an empty entry as the working directory, which no remedy should keep
    return [entry for entry in re.split("[:;]", situation.variable("LD_LIBRARY_PATH")) if entry]


def _requirement(name: str, required: Mapping[str, Wanted], environment: Environment) -> str:
    """Return torch's requirement on a wheel, or a pin to the installed version where torch does not require it."""
    if name in required:
        return required[name].text
    installed = environment.distribution(name)
    return f"{name}=={installed.version}" if installed is not None else name


def _intruders(environment: Environment, clobbered: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Wheels that overwrote torch's libraries and that nothing else needs, with those that need only them."""
    others = {item.name for item in other_majors(environment)}
    guilty = {
        name
        for conflict in environment.conflicts
        for name in conflict.distributions
        if set(conflict.distributions) & clobbered.keys() and name not in clobbered
    } & others
    needed = {
        canonicalize_name(name)
        for item in environment.distributions
        if item.name not in others
        for name in _names_of(item.requires)
    }
    # a library that another distribution requires stays: its removal would trade one fault for another
    going = guilty - needed
    for item in environment.distributions:
        if item.name in others - needed and going & {canonicalize_name(name) for name in _names_of(item.requires)}:
            going.add(item.name)
    return tuple(sorted(going))


def _names_of(requires: Iterable[str]) -> Iterator[str]:
    for text in requires:
        match = re.match(r"[A-Za-z0-9][\w.-]*", text)
        if match is not None and "extra ==" not in text:
            yield match[0]
