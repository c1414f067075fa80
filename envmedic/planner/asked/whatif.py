"""Verdicts on requirements that are not installed yet, for one environment and host. Pure.

`ways` gives the questions to the installer, `answer` interprets its answer or refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic import limits
from envmedic.compat import guides, versions
from envmedic.compat.guides import Guide, Row
from envmedic.compat.torch_family import family
from envmedic.errors import InputError, NotAnEnvironment
from envmedic.model.answers.compatibility import Compatibility, Consideration, Verdict
from envmedic.model.answers.family import FamilyAnswer, FamilyQuery, FamilySet, Member
from envmedic.model.facts import Environment, Facts
from envmedic.model.plan import Change
from envmedic.model.ports import Resolution
from envmedic.planner.asked import binaries, together
from envmedic.planner.changes.requirement_checks import markers, meets, newly_unmet
from envmedic.planner.family import family_query
from envmedic.planner.family.torch_bound import bound
from envmedic.planner.proposals import WITH_TORCH

_EVERYTHING = ("*",)


@dataclass(frozen=True)
class Way:
    """One question to the installer: a solution for these pins in which all that is not `replaceable` stays."""

    title: str
    pins: tuple[str, ...]
    replaceable: tuple[str, ...] = ()
    found: FamilySet | None = None
    """The set of the torch family that the pins are from."""
    needs_variant_index: bool = False


@dataclass(frozen=True)
class WhatIfRequest:
    """The requirements in question, with the facts to judge them by."""

    facts: Facts
    environment: Environment
    texts: tuple[str, ...]
    requirements: tuple[Requirement, ...]
    """The requirements whose marker holds here."""

    @property
    def pending(self) -> tuple[Requirement, ...]:
        """The requirements that no installed distribution meets."""
        return tuple(item for item in self.requirements if not self._met(item))

    def _met(self, requirement: Requirement) -> bool:
        installed = self.environment.distribution(canonicalize_name(requirement.name))
        return installed is not None and requirement.url is None and meets(requirement, installed.version)


def parse_requests(facts: Facts, texts: Sequence[str]) -> WhatIfRequest:
    """Parse the requirements. Raises `InputError` for an invalid one, `NotAnEnvironment` without an environment."""
    if facts.environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    values = markers(facts.environment, facts.host)
    parsed = [_parsed(text) for text in texts]
    apply = tuple(item for item in parsed if item.marker is None or item.marker.evaluate(dict(values)))
    return WhatIfRequest(facts=facts, environment=facts.environment, texts=tuple(texts), requirements=apply)


def _parsed(text: str) -> Requirement:
    try:
        return limits.parsed(text)
    except InvalidRequirement as error:
        raise InputError(
            f"{text!r} is not a requirement",
            cause=str(error).partition("\n")[0],
            hint="Write it as pip does: 'flash-attn', 'torch>=2.7', 'transformers[torch]==4.46.3'",
        ) from error


def ways(state: WhatIfRequest) -> tuple[tuple[Way, ...], tuple[Consideration, ...]]:
    """Return the questions to the installer, smallest change first, and the objections to other ways."""
    pending = {canonicalize_name(item.name) for item in state.pending}
    members: set[str] = {name for name in family_query.FAMILY if name in pending}
    if members:
        # Resolvers see version limits only. The CUDA variant, the driver and the GPUs decide on members of the
        # family, so the compatibility rules choose the versions and the installer merely resolves the rest.
        return _family_ways(state, members)
    pins = _pins(state.pending)
    family_and_bound = {*family_query.FAMILY, *(item.name for item, _ in bound(state.environment))}
    others = tuple(item.name for item in state.environment.distributions if item.name not in family_and_bound)
    return (
        # each way frees more than the one before; the first that resolves is the smallest change
        Way("what is installed stays", pins),
        Way("the torch family stays", pins, replaceable=others),
        Way("anything may change", pins, replaceable=_EVERYTHING),
    ), ()


def _pins(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    return tuple(str(item) for item in requirements)


def _family_ways(state: WhatIfRequest, members: set[str]) -> tuple[tuple[Way, ...], tuple[Consideration, ...]]:
    query = _query(state, members)
    answer = family.answer(query)
    others = _pins(item for item in state.pending if canonicalize_name(item.name) not in family_query.FAMILY)
    found = tuple(_family_way(state, query, item, others) for item in answer.sets)
    # a new torch may require newer releases of what is installed, which only the index knows
    freer = (replace(item, replaceable=_EVERYTHING) for item in found)
    return (*found, *freer), _refusals(answer) if not found else ()


def _query(state: WhatIfRequest, members: set[str]) -> FamilyQuery:
    present = [name for name in family_query.FAMILY if name in members or state.environment.distribution(name)]
    # a companion alone still needs a set with torch in it: its wheel fits one torch
    needed: tuple[Member, ...] = tuple(dict.fromkeys(("torch", *present)))
    base = family_query.query(state.facts, state.environment, needed, ("keep-torch", "keep-cuda-variant", "newest"))
    wanted = {
        canonicalize_name(item.name): str(item.specifier)
        for item in state.requirements
        if canonicalize_name(item.name) in family_query.FAMILY
    }
    return msgspec.structs.replace(base, wanted=wanted)


def _refusals(answer: FamilyAnswer) -> tuple[Consideration, ...]:
    return tuple(
        Consideration(speaks="against", text=f"{item.title}: {item.reason}", source=item.source)
        for item in answer.rejected
    )


def _family_way(state: WhatIfRequest, query: FamilyQuery, found: FamilySet, others: tuple[str, ...]) -> Way:
    installed = {name: versions.public(text) for name, text in query.installed.items()}
    changed = [
        name
        for name in found.versions
        # triton has no CUDA variants, so its version alone tells whether it changes
        if installed.get(name) != found.versions[name] or (found.variant != query.variant and name != "triton")
    ]
    moves = "torch" in changed
    # torch's metadata pins its triton already
    pins = tuple(f"{name}=={found.versions[name]}" for name in changed if not (name == "triton" and moves))
    return Way(
        title=", ".join(f"{name} {found.versions[name]}" for name in changed) + f" ({found.variant})",
        pins=(*pins, *others),
        replaceable=(*WITH_TORCH, *_requirements_of_torch(state.environment)) if moves else (),
        found=found,
        needs_variant_index=not family.default_index_serves(found, changed, query),
    )


def _requirements_of_torch(environment: Environment) -> tuple[str, ...]:
    torch = environment.distribution("torch")
    names = (canonicalize_name(Requirement(text).name) for text in (torch.requires if torch else ()))
    return tuple(name for name in names if name not in family_query.FAMILY)


@dataclass(frozen=True)
class New:
    """A distribution that would be installed."""

    name: str
    version: str
    size_bytes: int | None = None


@dataclass(frozen=True)
class ResolvedWay:
    """The way that the installer found wheels for, or why it found none."""

    way: Way | None
    resolution: Resolution | None
    """None where no index could be asked: the compatibility data alone decide then."""
    refusals: tuple[str, ...] = ()
    """Why each way before it does not work."""
    index: str | None = None
    """URL of the index with wheels of the CUDA variant, None for the configured index."""


def answer(state: WhatIfRequest, found: ResolvedWay, considered: Sequence[Consideration]) -> Compatibility:
    """Return the verdict with its reasons."""
    too_old = _on_gpus(state)
    notes = [*considered, *_guided(state), *too_old]
    notes += (Consideration(speaks="against", text=text, source="the installer") for text in found.refusals)
    refused = bool(too_old)
    if not state.pending:
        return _made(state, "works", "installed already, in versions that meet it", notes)
    if found.way is None:
        return _without_wheels(state, notes, refused=refused)
    return _installable(state, found, notes, refused=refused)


def _without_wheels(state: WhatIfRequest, notes: list[Consideration], *, refused: bool) -> Compatibility:
    """Say which of it have no wheels together, and what comes nearest or what a build takes."""
    known = together.answer(state.facts, state.environment, state.pending)
    # the reasons by the tables first: the installer names versions one by one
    notes = [*together.considerations(known), *notes]
    guide = together.to_build(known, [canonicalize_name(item.name) for item in state.pending])
    build = together.build_of(guide, known, state.facts.host) if guide is not None else None
    summary = f"{guide.name} has no wheel that fits; {build}" if guide is not None else None
    if known.lacking:
        summary = known.lacking[0].reason
    # building from source does not help a GPU that the package does not support
    verdict: Verdict = "needs-build" if build is not None and not refused else "does-not-work"
    made = _made(state, verdict, summary or "there is no way to install it here", notes)
    return msgspec.structs.replace(made, together=together.together(known, build))


def _installable(
    state: WhatIfRequest, found: ResolvedWay, notes: list[Consideration], *, refused: bool
) -> Compatibility:
    new = _new(found)
    brought = {str(canonicalize_name(item.name)): item.version for item in new}
    # the rules have chosen the build of a set; any other torch is what the index has by default
    own = found.way is None or found.way.found is None
    unfit = binaries.refusals(state.facts, state.environment, brought) if own else ()
    notes = [*unfit, *binaries.doubts(state.facts, state.environment, brought), *notes]
    changes = _changes(state.environment, new)
    broken = _breaks(state, new)
    touched = [item for item in changes if item.kind == "change"]
    verdict: Verdict = "works-with-changes" if touched else "works"
    summary = "it can be installed beside what is there"
    if touched:
        summary = "it takes changes: " + ", ".join(f"{item.name} {item.before} -> {item.after}" for item in touched)
    if broken or refused or unfit:
        verdict = "does-not-work"
        summary = broken[0] if broken else unfit[0].text if unfit else "it does not run on the GPUs here"
    variant = found.way.found.variant if found.way and found.way.found else None
    return _made(
        state,
        verdict,
        summary,
        notes,
        changes=changes,
        breaks=broken,
        variant=variant,
        index=found.index,
        command=_command(state.environment.prefix, new, found.index) if verdict != "does-not-work" else (),
    )


def _made(
    state: WhatIfRequest,
    verdict: Verdict,
    summary: str,
    notes: Sequence[Consideration],
    *,
    changes: tuple[Change, ...] = (),
    breaks: tuple[str, ...] = (),
    variant: str | None = None,
    index: str | None = None,
    command: tuple[str, ...] = (),
) -> Compatibility:
    return Compatibility(
        prefix=state.environment.prefix,
        requirements=state.texts,
        verdict=verdict,
        summary=summary,
        considerations=tuple(dict.fromkeys(notes)),
        changes=changes,
        breaks=breaks,
        variant=variant,
        index=index,
        command=command,
    )


def _new(found: ResolvedWay) -> tuple[New, ...]:
    if found.resolution is not None:
        return tuple(New(item.name, item.version, item.size_bytes) for item in found.resolution.artifacts)
    # without a resolution only exact pins name a version; any other requirement stays open
    exact = (pin.partition("==") for pin in (found.way.pins if found.way else ()))
    return tuple(New(name, version) for name, equal, version in exact if equal)


def _changes(environment: Environment, artifacts: Sequence[New]) -> tuple[Change, ...]:
    rows = []
    for item in artifacts:
        old = environment.distribution(canonicalize_name(item.name))
        rows.append(
            Change(
                kind="change" if old else "install",
                name=item.name,
                before=old.version if old else None,
                after=item.version,
                owner=old.owner if old else "",
                size_bytes=item.size_bytes,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.kind, row.name)))


def _breaks(state: WhatIfRequest, artifacts: Sequence[New]) -> tuple[str, ...]:
    """Return the distributions that would lose a requirement, or are compiled for the replaced torch."""
    after: dict[str, str | None] = {canonicalize_name(item.name): item.version for item in artifacts}
    values = markers(state.environment, state.facts.host)
    broken = [item.sentence() for item in newly_unmet(state.environment, after, values=values)]
    torch = state.environment.distribution("torch")
    if torch is not None and after.get("torch", torch.version) != torch.version:
        broken += (
            f"{item.name} {item.version} is bound to the installed torch {torch.version}: {how}"
            for item, how in bound(state.environment)
            if item.name not in after
        )
    return tuple(broken)


def _command(prefix: str, artifacts: Sequence[New], index: str | None) -> tuple[str, ...]:
    pins = tuple(f"{item.name}=={item.version}" for item in artifacts)
    # an extra index, not the only one: the variant's own index has few of the other distributions
    # named: an installer takes the active environment otherwise, which may be another one
    words = ("uv", "pip", "install", "--python", f"{prefix}/bin/python")
    return (*words, *(("--extra-index-url", index) if index else ()), *pins) if pins else ()


def _guided(state: WhatIfRequest) -> list[Consideration]:
    """Notes from the extension data: for which torch the wheels are, and where they are published."""
    torch = state.environment.torch
    names = [canonicalize_name(item.name) for item in state.pending]
    notes = list(together.made_for(state.facts, state.environment, names))
    for guide in _guides(state):
        rows = guides.fitting(guide, torch.version) if torch is not None else ()
        notes += (Consideration(speaks="for", text=_row_text(guide, row), source=guide.source) for row in rows)
        if torch is not None and guide.rows and not rows:
            text = f"no release of {guide.name} with wheels for torch {torch.version} is known"
            notes.append(Consideration(speaks="note", text=text, source=guide.source))
        if guide.url is not None:
            notes.append(
                Consideration(
                    speaks="note", text=f"its wheels have addresses of this form: {guide.url}", source=guide.source
                )
            )
    return notes


def _row_text(guide: Guide, row: Row) -> str:
    release = f"{guide.name} {row.release}" if row.release else guide.name
    return f"{release} has wheels for torch {row.torch}" + (f" in {row.variants}" if row.variants else "")


def _guides(state: WhatIfRequest) -> list[Guide]:
    known = guides.guides()
    names = (canonicalize_name(item.name) for item in state.pending)
    return [known[name] for name in names if name in known and name not in family_query.FAMILY]


def _on_gpus(state: WhatIfRequest) -> list[Consideration]:
    """Objections: GPUs below the lowest compute capability that a package supports."""
    found = []
    for guide in _guides(state):
        for gpu in state.facts.host.visible_gpus():
            have, need = (
                versions.capability(gpu.compute_capability or ""),
                versions.capability(guide.capability_min or ""),
            )
            if have is not None and need is not None and have[:2] < need[:2]:
                text = f"{guide.name} needs compute capability {guide.capability_min}, {gpu.name} has {gpu.compute_capability}"
                found.append(Consideration(speaks="against", text=text, source=guide.source))
    return found
