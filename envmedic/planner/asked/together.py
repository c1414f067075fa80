"""Why what is asked for has no wheels together, and what comes nearest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import guides, versions
from envmedic.compat.guides import Guide
from envmedic.compat.torch_family import common_set
from envmedic.compat.torch_family.common_set import SetAnswer, SetPlace
from envmedic.model.answers.compatibility import Consideration, WheelsTogether
from envmedic.model.facts import Environment, Facts, Host
from envmedic.model.ports import ResolveRequest


def answer(facts: Facts, environment: Environment, requirements: Sequence[Requirement]) -> SetAnswer:
    """Return what is known of the set, for the machine of the facts and the Python of the environment."""
    return common_set.answer(requirements, _place(facts, environment))


def _place(facts: Facts, environment: Environment) -> SetPlace:
    python = environment.interpreter
    tag = ".".join((python.version or "").split(".")[:2]) + ("t" if python.free_threaded else "")
    return SetPlace(platform=f"{facts.host.system}_{facts.host.machine}", python=tag)


def made_for(facts: Facts, environment: Environment, names: Iterable[str]) -> Iterator[Consideration]:
    """Yield the newest release of each that has a wheel for the installed torch."""
    torch = environment.torch
    release = versions.public(torch.version) if torch is not None else ""
    for name in names:
        found = common_set.release_for(name, release, _place(facts, environment))
        if found is not None:
            text = f"{name} {found.version} has wheels for torch {release}"
            yield Consideration(speaks="for", text=text, source=found.source)


def reasons(facts: Facts, environment: Environment, request: ResolveRequest) -> tuple[str, ...]:
    """Return which of a plan's pins, and of what stays beside them, have no wheels together, a sentence each."""
    pins = [Requirement(pin) for pin in request.pins]
    named = {canonicalize_name(item.name) for item in pins}
    stays = [
        Requirement(f"{item.name}=={versions.public(item.version)}")
        for item in environment.distributions
        if item.name not in named and common_set.known(item.name) and versions.version(item.version) is not None
        if not any(fnmatchcase(item.name, pattern) for pattern in request.replaceable)
    ]
    found = answer(facts, environment, [*pins, *stays])
    return tuple(item.text for item in considerations(found))


def considerations(found: SetAnswer) -> tuple[Consideration, ...]:
    """Return the objections, and the nearest set as a note."""
    against = [Consideration(speaks="against", text=item.reason, source=item.source) for item in found.lacking]
    if found.nearest is not None:
        pins = ", ".join(found.nearest.pins())
        places = dict.fromkeys(f"{item.name} on {item.where}" for item in found.nearest.members if item.where)
        where = f" ({', '.join(places)})" if places else ""
        against.append(Consideration(speaks="note", text=f"the nearest set that has wheels: {pins}{where}"))
    return tuple(against)


def together(found: SetAnswer, build: str | None) -> WheelsTogether | None:
    """Return what a document says of it; None where there is nothing to say."""
    if not found.lacking:
        return None
    return WheelsTogether(
        lacking=tuple(item.reason for item in found.lacking),
        nearest=found.nearest.pins() if found.nearest is not None else (),
        without_wheel=found.without_wheel,
        build=build,
    )


def to_build(found: SetAnswer, asked: Iterable[str]) -> Guide | None:
    """Return the guide to what would have to be built; without a set in the tables, the first that needs a build."""
    known = guides.guides()
    names = [found.to_build] if found.to_build is not None else [*asked]
    return next((known[name] for name in names if name in known and known[name].needs), None)


def build_of(guide: Guide, found: SetAnswer, host: Host) -> str:
    """Return what a build takes, for which torch, and what of it is here."""
    toolkits = [item for item in host.toolkits if item.nvcc]
    have = f"nvcc {toolkits[0].version} is at {toolkits[0].path}" if toolkits else "no nvcc was found here"
    flags = f" with {' '.join(guide.flags)}" if guide.flags else ""
    beside = f" beside {', '.join(found.beside.pins())}" if found.beside is not None else ""
    return f"building {guide.name}{beside} takes {', '.join(guide.needs)}{flags} ({have})"
