"""What is wrong with the consumers of NVIDIA's libraries: what they lack, what does not fit, what is there twice. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic import limits
from envmedic.analysis.nvidia_wheels import TOOLKIT, Wanted, holding, marker_environment
from envmedic.compat import consumer_kinds as known
from envmedic.compat import gpu
from envmedic.compat.consumer_kinds import ConsumerKind
from envmedic.compat.installed_requirements import Demand
from envmedic.compat.torch_family.rules import minimum_driver
from envmedic.compat.versions import allows, dotted
from envmedic.model.consumers import Consumer, OpenedLibrary
from envmedic.model.facts import Distribution, Environment, Host

_OF_TORCH = frozenset({"torch", "triton"})
"""Consumers that other facts are about."""


class LackingLibrary(msgspec.Struct, frozen=True):
    """A library that a consumer opens and that is nowhere."""

    consumer: Consumer
    library: OpenedLibrary
    requirement: str | None
    """What installs it, None where no wheel does."""
    other: str | None
    """The file of another major release that is there instead."""

    @property
    def text(self) -> str:
        """What is lacking, with who asks."""
        who = f"{self.consumer.name} {self.consumer.version}"
        instead = f", only {self.other} is there" if self.other else ""
        return f"{self.library.soname}, which {who} {_VERBS[self.library.how]}{instead}"


_VERBS = {"linked": "is linked with", "opened": "opens", "opened later": "opens when a function needs it"}


class ConsumerFaults(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of the consumers of one environment, torch apart."""

    lacking: tuple[LackingLibrary, ...]
    """Libraries that builds for the GPU alone cannot do without."""
    lacking_for_gpu: tuple[LackingLibrary, ...]
    """The same of wheels that serve the CPU too, and libraries that some functions need: missed where a text says so."""
    stated: tuple[Demand, ...]
    """What extras state on NVIDIA's distributions, met or not."""
    wrong: tuple[Demand, ...]
    """Those of `stated` that the installed version does not meet."""
    parts: tuple[Demand, ...]
    """What extras state on the parts of a consumer, and is not met: an installer checks it once, and never again."""
    every_part: tuple[Demand, ...]
    """The same, met or not."""
    twice: tuple[tuple[str, ...], ...]
    """Distributions of which one environment has one, and that are there together."""
    cpu_builds: tuple[str, ...]
    """Consumers that are installed as a build for the CPU."""
    shadowed: tuple[str, ...]
    """Libraries that LD_LIBRARY_PATH puts before the environment's own, each with who takes it."""
    old_driver: tuple[str, ...]
    """Consumers whose CUDA release needs a newer driver."""
    without_code: tuple[str, ...]
    """Consumers that have no code for some visible GPU."""


def kinds(environment: Environment) -> Iterator[tuple[ConsumerKind, Consumer]]:
    """Yield the consumers that facts of their own are about, each with its row of the registry."""
    for item in environment.consumers:
        kind = known.by_name().get(item.name)
        if kind is not None and item.name not in _OF_TORCH and not kind.beside_torch and kind.repaired:
            yield kind, item


def consumer_faults(environment: Environment, host: Host) -> ConsumerFaults:
    """Return the faults of the consumers in the environment on `host`."""
    found = [*kinds(environment)]
    stated = tuple(_stated(environment, host, found))
    of_nvidia = tuple(item for item in stated if _of_nvidia(item.name))
    of_extras = (item for item in stated if not _of_nvidia(item.name) and item.name != TOOLKIT)
    every_part = (*of_extras, *_equal(environment, found), *_between_parts(environment, host, found))
    lacking = [(kind, item) for kind, consumer in found for item in _lacking(consumer, environment, of_nvidia)]
    hard = tuple(item for kind, item in lacking if not kind.universal and item.library.how != "opened later")
    return ConsumerFaults(
        lacking=(*hard, *_begun(lacking, environment)),
        lacking_for_gpu=tuple(item for _, item in lacking if item not in hard),
        stated=of_nvidia,
        wrong=tuple(item for item in of_nvidia if item.found is not None and not item.met),
        parts=tuple(dict.fromkeys(item for item in every_part if not item.met)),
        every_part=every_part,
        twice=tuple(_twice(environment)),
        cpu_builds=tuple(
            item.name
            for kind, item in found
            if item.build is None and kind.gpu_build and _begun_release(kind, environment) is None
        ),
        shadowed=tuple(_shadowed(environment, found)),
        old_driver=tuple(
            f"{item.build} is built for CUDA {item.cuda}, which needs driver {driver_for(item)}; {host.driver_version} is there"
            for _, item in too_new(environment, host)
        ),
        without_code=tuple(_without_code(host, found)),
    )


def _of_nvidia(name: str) -> bool:
    return name.startswith("nvidia-")


def _stated(environment: Environment, host: Host, found: Iterable[tuple[ConsumerKind, Consumer]]) -> Iterator[Demand]:
    """The requirements that the extras of a build for the GPU state, with those of the toolkit's own extras."""
    marker = marker_environment(host, environment)
    toolkit = environment.distribution(TOOLKIT)
    for kind, consumer in found:
        cuda = consumer.cuda or _begun_release(kind, environment)
        for extra in kind.extras if cuda is not None else ():
            by = environment.distribution(known.filled(extra.distribution, cuda or ""))
            if by is None:
                continue
            wanted = [*holding(by.requires, marker, [known.filled(extra.extra, cuda or "")])]
            yield from (_demand(by, item, environment) for item in wanted)
            for item in wanted:
                if item.name == TOOLKIT and toolkit is not None:
                    more = holding(toolkit.requires, marker, item.requirement.extras)
                    yield from (_demand(toolkit, one, environment) for one in more)


def _begun_release(kind: ConsumerKind, environment: Environment) -> str | None:
    """The CUDA release of parts whose main one is gone."""
    names = [item.name for item in environment.distributions]
    numbered = (item.cuda for part in kind.parts if "{cuda}" in part for item in known.matching(part, names))
    return next(numbered, None)


def _demand(by: Distribution, item: Wanted, environment: Environment) -> Demand:
    installed = environment.distribution(item.name)
    specifier = str(item.requirement.specifier)
    return Demand(by, item.name, specifier, installed.version if installed is not None else None)


def _equal(environment: Environment, found: Iterable[tuple[ConsumerKind, Consumer]]) -> Iterator[Demand]:
    """The parts that compare their versions when they start, which no metadata state."""
    for kind, consumer in found:
        names = [known.filled(name, consumer.cuda or "") for name in kind.equal if consumer.build is not None]
        own = [item for item in map(environment.distribution, names) if item is not None]
        yield from (Demand(own[-1], item.name, f"=={own[-1].public}", item.version) for item in own[:-1])


def _between_parts(
    environment: Environment, host: Host, found: Iterable[tuple[ConsumerKind, Consumer]]
) -> Iterator[Demand]:
    """What the metadata of parts state on each other."""
    for kind, consumer in found:
        parts = {known.filled(part, consumer.cuda or "") for part in kind.parts}
        for name in parts:
            by = environment.distribution(name)
            wanted = holding(by.requires, marker_environment(host, environment)) if by is not None else ()
            yield from (_demand(by, item, environment) for item in wanted if by is not None and item.name in parts)


def _lacking(consumer: Consumer, environment: Environment, stated: Iterable[Demand]) -> Iterator[LackingLibrary]:
    for library in consumer.libraries:
        if library.path is None:
            plain = known.requirement(library.soname, consumer.cuda or "")
            yield LackingLibrary(consumer, library, _with(plain, stated), _other_major(library.soname, environment))


def _with(plain: str | None, stated: Iterable[Demand]) -> str | None:
    """The requirement on a library with what the extras say of its distribution."""
    if plain is None:
        return None
    parsed = Requirement(plain)
    name = canonicalize_name(parsed.name)
    said = next((item.specifier for item in stated if item.name == name and item.specifier), None)
    return f"{name}{said}" if said is not None else f"{name}{parsed.specifier}"


def _other_major(soname: str, environment: Environment) -> str | None:
    """A file of the same library in another major release."""
    stem = soname.partition(".so")[0]
    every = (item for consumer in environment.consumers for item in consumer.libraries)
    paths = (item.path for item in every if item.soname.partition(".so")[0] == stem and item.soname != soname)
    return next((path.rpartition("/")[2] for path in paths if path is not None), None)


def _begun(
    lacking: Iterable[tuple[ConsumerKind, LackingLibrary]], environment: Environment
) -> Iterator[LackingLibrary]:
    """What wheels for CPU and GPU lack where some of their libraries are installed: somebody wanted the GPU."""
    for kind, item in lacking:
        there = [one for one in item.consumer.libraries if one.path is not None and one.how != "opened later"]
        own = [one for one in there if one.seen and not (one.path or "").startswith("/")]
        shared = [other for other in environment.consumers if other.name != item.consumer.name and other.libraries]
        # libraries that another consumer brought say nothing of this one
        if kind.universal and own and not shared and item.library.how != "opened later":
            yield item


def _twice(environment: Environment) -> Iterator[tuple[str, ...]]:
    names = [item.name for item in environment.distributions if not item.outside_prefix and item.owner != "conda"]
    overwritten = {frozenset(item.distributions) for item in environment.conflicts}
    for kind in known.consumers():
        group = tuple(dict.fromkeys(item.name for part in kind.exclusive for item in known.matching(part, names)))
        # files of both in one place have a fault of their own
        if len(group) > 1 and not any(frozenset(pair) in overwritten for pair in combinations(group, 2)):
            yield group


def _shadowed(environment: Environment, found: Iterable[tuple[ConsumerKind, Consumer]]) -> Iterator[str]:
    for kind, consumer in found:
        wheels = {"rpath", "wheels"} & {*kind.looks}
        for item in consumer.libraries if wheels and kind.looks[0] == "LD_LIBRARY_PATH" else ():
            own = _own_copy(item.soname, environment)
            if item.path is not None and item.path.startswith("/") and item.seen and own is not None:
                yield f"{item.soname} from {item.path}, before {own}, for {consumer.name}"


def _own_copy(soname: str, environment: Environment) -> str | None:
    """The environment's own file of that name, as another consumer finds it."""
    every = (item for consumer in environment.consumers for item in consumer.libraries if item.soname == soname)
    return next((item.path for item in every if item.path is not None and not item.path.startswith("/")), None)


def too_new(environment: Environment, host: Host) -> Iterator[tuple[ConsumerKind, Consumer]]:
    """Yield the consumers whose CUDA release needs a newer driver than the known one of `host`."""
    drivers = [dotted(text) for text in (host.driver_version, host.driver_libraries) if text]
    for kind, consumer in kinds(environment):
        needed = driver_for(consumer)
        if host.driver_version is not None and needed is not None and max(drivers) < dotted(needed):
            yield kind, consumer


def driver_for(consumer: Consumer) -> str | None:
    """Return the oldest driver that serves a build; None for one for the CPU, and where the release is not known."""
    return minimum_driver(f"{consumer.cuda}.0")[0] if consumer.build and consumer.cuda else None


def _without_code(host: Host, found: Iterable[tuple[ConsumerKind, Consumer]]) -> Iterator[str]:
    devices = tuple(dict.fromkeys(item.compute_capability for item in host.visible_gpus() if item.compute_capability))
    driver = dotted(host.driver_version) if host.driver_version else ()
    for kind, consumer in found:
        if not kind.own_code or not (consumer.sass or consumer.ptx) or consumer.cuda is None:
            continue
        code = gpu.BuildGpuCode(sass=consumer.sass, ptx=consumer.ptx, cuda=f"{consumer.cuda}.0", source="")
        missing = gpu.uncovered(code, devices, driver)
        if missing:
            yield f"{consumer.build} has code for {', '.join((*consumer.sass, *(f'{item}+PTX' for item in consumer.ptx)))}, not for {', '.join(missing)}"


def extras_of(kind: ConsumerKind, cuda: str) -> Mapping[str, tuple[str, ...]]:
    """Return the extras that state what a build for the GPU needs, by distribution."""
    found: dict[str, list[str]] = {}
    for item in kind.extras:
        found.setdefault(known.filled(item.distribution, cuda), []).append(known.filled(item.extra, cuda))
    return {name: tuple(extras) for name, extras in found.items()}


def right_build(environment: Environment, host: Host, group: Sequence[str]) -> str | None:
    """Return the one of builds that exclude each other which is to stay; None where they are no builds of one consumer.

    A build for the GPU stays; of several the one that the driver serves, of the CUDA release of torch and of most
    libraries here, that its partners accept.
    """
    kind = next((kind for kind in known.consumers() if all(_one_of(kind.exclusive, name) for name in group)), None)
    if kind is None:
        return None
    build = environment.torch
    torch = build.cuda.partition(".")[0] if build is not None and build.cuda else None

    def rank(name: str) -> tuple[bool, bool, bool, bool, int, str]:
        matched = _one_of(kind.exclusive, name)
        cuda = known.major_of(matched.cuda) if matched is not None else ""
        needed = minimum_driver(f"{cuda}.0")[0] if cuda else None
        served = host.driver_version is None or needed is None or dotted(host.driver_version) >= dotted(needed)
        own = {
            item.requirement[cuda].partition(">")[0] for item in known.libraries().values() if cuda in item.requirement
        }
        count = sum(item.name in own for item in environment.distributions)
        return name in kind.keep, served, bool(cuda) and cuda == torch, _accepted(environment, name), count, cuda

    return max(group, key=rank)


def _one_of(patterns: Iterable[str], name: str) -> known.Matched | None:
    return next((item for pattern in patterns for item in known.matching(pattern, [name])), None)


def _accepted(environment: Environment, name: str) -> bool:
    """Whether what is installed names a build, in an extra too, and accepts its version."""
    own = environment.distribution(name)
    texts = (text for item in environment.distributions for text in item.requires if text.lower().startswith(name))
    parsed = (item for item in map(_parsed, texts) if item is not None)
    stated = [item for item in parsed if canonicalize_name(item.name) == name]
    return own is not None and bool(stated) and all(allows(str(item.specifier), own.version) for item in stated)


def _parsed(text: str) -> Requirement | None:
    try:
        return limits.parsed(text)
    except InvalidRequirement:
        return None  # invalid metadata binds nothing
