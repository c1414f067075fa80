"""Remedies for the consumers of NVIDIA's libraries other than torch: one set of libraries that serves all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.analysis.consumer_faults import ConsumerFaults, consumer_faults, extras_of, kinds, right_build, too_new
from envmedic.analysis.nvidia_wheels import wheels
from envmedic.analysis.packages.requirement_faults import requirement_faults
from envmedic.compat import consumer_kinds as known
from envmedic.compat.installed_requirements import Demand, satisfying
from envmedic.compat.torch_family.rules import minimum_driver
from envmedic.compat.versions import dotted
from envmedic.errors import NoSolution
from envmedic.model.facts import Environment
from envmedic.planner.moves.conflict_graph import conflicts
from envmedic.planner.remedies.remedy import Remedy, Situation, moving

NEWEST_CUDA = "12"
"""The release that a build for the GPU is taken for where nothing tells: drivers from 525 on serve it."""


def consumer_libraries(situation: Situation) -> Remedy:
    """Install the libraries of NVIDIA that the consumers lack, in releases that all of them accept."""
    found = consumer_faults(situation.environment, situation.host)
    lacking = found.lacking or found.lacking_for_gpu
    wanted = tuple(dict.fromkeys(item.requirement for item in lacking if item.requirement is not None))
    if not wanted:
        why = "no wheel brings what is lacking" if lacking else "every library that is opened is there"
        return Remedy(why=why)
    return _serving(situation, found, wanted, "the programs that are installed open exactly these")


def consumer_versions(situation: Situation) -> Remedy:
    """Install releases of NVIDIA's libraries that all consumers accept, or consumers that share one."""
    found = consumer_faults(situation.environment, situation.host)
    wanted = tuple(dict.fromkeys(item.name for item in found.wrong))
    if not wanted:
        return Remedy(why="every consumer accepts the libraries that are installed")
    return _serving(situation, found, wanted, "one release of each library serves all that open it")


def _serving(situation: Situation, found: ConsumerFaults, wanted: Iterable[str], why: str) -> Remedy:
    """One set for all: each library as all accept it; where they exclude each other, the consumer moves, not torch."""
    environment = situation.environment
    of_torch = _of_torch(situation)
    install: list[str] = []
    gone: list[str] = []
    moved: list[str] = []
    for text in wanted:
        parsed = Requirement(text)
        name = canonicalize_name(parsed.name)
        asked = [*of_torch, *(item for item in found.stated if item.name == name)]
        shared = satisfying(name, asked, str(parsed.specifier))
        if shared is None:
            # torch pins each library to one release, and its own extensions are built for it: what yields is the other
            shared = satisfying(name, [item for item in of_torch if item.name == name]) or name
            moved += (item.by.name for item in found.stated if item.name == name)
        install.append(shared)
        if environment.distribution(name) is not None:
            gone.append(name)
    install += _freed(environment, moved)
    return Remedy(purge=tuple(gone), leftovers=bool(gone), install=tuple(dict.fromkeys(install)), why=why)


def moved_along(situation: Situation, names: Iterable[str]) -> tuple[str, ...]:
    """Return what lets the consumers move that refuse the release of these distributions which torch pins."""
    found = consumer_faults(situation.environment, situation.host)
    of_torch = _of_torch(situation)
    refusing = [
        item.by.name
        for item in found.stated
        if item.name in {*names}
        and satisfying(item.name, [item, *(one for one in of_torch if one.name == item.name)]) is None
    ]
    return tuple(_freed(situation.environment, refusing))


def _of_torch(situation: Situation) -> tuple[Demand, ...]:
    """What torch requires of NVIDIA's distributions."""
    environment = situation.environment
    torch, found = environment.distribution("torch"), wheels(situation.host, environment)
    if torch is None or found is None:
        return ()
    return tuple(Demand(torch, item.name, str(item.requirement.specifier), None) for item in found.required.values())


def _freed(environment: Environment, moved: Sequence[str]) -> Iterator[str]:
    """Requirements that let the consumers of these distributions take a release which accepts what stays.

    With their extras, and without a version: the resolver holds all else, and takes the newest that fits.
    """
    for kind, consumer in kinds(environment):
        cuda = consumer.cuda or ""
        parts = [known.filled(part, cuda) for part in kind.parts]
        if not {*parts} & {*moved}:
            continue
        extras = extras_of(kind, cuda)
        for part in parts:
            if environment.distribution(part) is not None:
                yield f"{part}[{','.join(extras[part])}]" if part in extras else part


def consumer_parts(situation: Situation) -> Remedy:
    """Bring the parts of a consumer to one release, so that as little as possible moves."""
    environment = situation.environment
    found = consumer_faults(environment, situation.host)
    every = requirement_faults(environment, situation.host)
    return moving(
        conflicts(environment, found.parts, (*every.every, *found.every_part), unstated=every.unstated),
        why="its parts are compiled for one another",
        otherwise="the parts of every consumer are of one release",
    )


def consumer_twice(situation: Situation) -> Remedy:
    """Remove all but one of the builds that exclude each other, with their own parts."""
    environment = situation.environment
    gone: list[str] = []
    kept: list[str] = []
    for group in consumer_faults(environment, situation.host).twice:
        right = right_build(environment, situation.host, group)
        if right is not None:
            gone += (part for name in group if name != right for part in (name, *_alongside(environment, name)))
            kept.append(right)
    if not gone:
        return Remedy(why="no two builds of one library are installed")
    stays = [item for item in map(environment.distribution, kept) if item is not None]
    # what they wrote over each other comes back with the one that stays
    return Remedy(
        purge=tuple(dict.fromkeys([*gone, *kept])),
        leftovers=True,
        install=tuple(f"{item.name}=={item.version}" for item in stays),
        why="one environment has one of them, and the others take its place unasked",
    )


def _alongside(environment: Environment, name: str) -> Iterator[str]:
    """The other parts of a build that goes: those that name the same release of CUDA."""
    for kind in known.consumers():
        for pattern in kind.exclusive:
            for matched in known.matching(pattern, [name]) if "{cuda}" in pattern else ():
                numbered = (known.filled(part, matched.cuda) for part in kind.parts if "{cuda}" in part)
                yield from (part for part in numbered if part != name and environment.distribution(part) is not None)


def consumer_gpu_build(situation: Situation) -> Remedy:
    """Put a build for the GPU in the place of one for the CPU, in the same release."""
    environment = situation.environment
    named = situation.groups.get("consumer")
    gone: list[str] = []
    install: list[str] = []
    for kind, consumer in kinds(environment):
        if consumer.build is not None or not kind.gpu_build or named not in {None, "", kind.name}:
            continue
        cuda = _wanted_cuda(situation)
        text = kind.gpu_build.replace("{cuda}", cuda).replace("{version}", consumer.version)
        gone += [name for name in kind.cpu if environment.distribution(name) is not None]
        install.append(text)
    if not install:
        raise NoSolution(
            "No library here is a build for the CPU that one for the GPU could replace",
            cause=f"{environment.prefix} has none of {', '.join(_replaceable())} as a build for the CPU",
            hint="Name the environment of the program that failed with -p PREFIX",
        )
    return Remedy(purge=tuple(gone), leftovers=bool(gone), install=tuple(install), why="its release stays")


def _replaceable() -> list[str]:
    return [kind.title for kind in known.consumers() if kind.gpu_build]


def _wanted_cuda(situation: Situation) -> str:
    """The CUDA release of what is installed beside it, else one that the driver serves."""
    environment = situation.environment
    if environment.torch is not None and environment.torch.cuda:
        return environment.torch.cuda.partition(".")[0]
    return next((item.cuda for _, item in kinds(environment) if item.cuda and item.cuda.isdigit()), NEWEST_CUDA)


def consumer_older_cuda(situation: Situation) -> Remedy:
    """Install the same release for a CUDA release that the driver serves."""
    environment, driver = situation.environment, situation.host.driver_version
    gone: list[str] = []
    install: list[str] = []
    stuck: list[str] = []
    for kind, consumer in too_new(environment, situation.host):
        served = _served(int(consumer.cuda or 0), driver or "")
        if served is None or "{cuda}" not in kind.gpu_build:
            stuck.append(f"{consumer.build} has no build for an older CUDA release")
            continue
        numbered = (known.filled(part, name.cuda) for part, name in _numbered(environment, kind))
        gone += [name for name in numbered if environment.distribution(name) is not None]
        install.append(kind.gpu_build.replace("{cuda}", served).replace("{version}", consumer.version))
    if not install:
        raise NoSolution(
            "No build for an older CUDA release can take the place of what is installed",
            cause="; ".join(stuck) or "the driver serves all that is installed",
            hint="Upgrade the driver of this host, or install an older release of the library",
        )
    return Remedy(purge=tuple(gone), leftovers=True, install=tuple(install), why="the driver serves this CUDA release")


def _numbered(environment: Environment, kind: known.ConsumerKind) -> Iterator[tuple[str, known.Matched]]:
    """The parts of a consumer that are installed and name a CUDA release."""
    names = [item.name for item in environment.distributions]
    for part in kind.parts:
        if "{cuda}" in part:
            yield from ((part, matched) for matched in known.matching(part, names))


def _served(cuda: int, driver: str) -> str | None:
    """The newest major release of CUDA before that one that a driver serves."""
    for major in range(cuda - 1, 10, -1):
        needed = minimum_driver(f"{major}.0")[0]
        if needed is not None and dotted(driver) >= dotted(needed):
            return str(major)
    return None


def consumer_newer_release(situation: Situation) -> Remedy:
    """Install a newer release of what has no code for a visible GPU."""
    found = consumer_faults(situation.environment, situation.host)
    builds = [text.partition(" has code for ")[0].split(" ") for text in found.without_code]
    return Remedy(
        install=tuple(f"{name}>{version}" for name, version in builds),
        why="later releases have code for later GPUs" if builds else "all that is installed has code for the GPUs here",
    )
