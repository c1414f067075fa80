"""Sets of distributions that are bound to torch: whether wheels of all of them exist for one torch. Pure.

What each release needs of torch is known from its own metadata, from a document of its project where metadata say nothing,
or not at all; a release that uses torch's stable interface goes with later releases too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import guides, tables, versions
from envmedic.compat.table_rows import Coupling
from envmedic.model.base import Model

_COMPANIONS = ("torchvision", "torchaudio")
_MOST = 6
"""Members of a set that are looked at; more would take too long to combine."""


class SetPlace(Model, frozen=True, kw_only=True):
    """Where a set must work."""

    platform: str
    """``linux_x86_64``."""
    python: str
    """Tag such as ``3.12``."""


class Candidate(Model, frozen=True, kw_only=True):
    """A release of a member, with the torch releases that wheels of it are for."""

    name: str
    version: str
    torch: frozenset[str]
    requires: dict[str, str] = {}
    """What it needs of other members."""
    where: str = ""
    """Where its wheels are, for those that the default index lacks."""
    source: str = ""


class CommonSet(Model, frozen=True, kw_only=True):
    """A set with a wheel of each member."""

    torch: str
    members: tuple[Candidate, ...]

    def pins(self) -> tuple[str, ...]:
        """The exact versions, torch first."""
        return (f"torch=={self.torch}", *(f"{item.name}=={item.version}" for item in self.members))


class Lacking(Model, frozen=True, kw_only=True):
    """Why there is no set."""

    names: tuple[str, ...]
    """The member without any wheel here, or the two members that have none together."""
    reason: str
    source: str = ""


class SetAnswer(Model, frozen=True, kw_only=True):
    """What is known of a set."""

    found: CommonSet | None = None
    """The newest set that meets every requirement."""
    lacking: tuple[Lacking, ...] = ()
    nearest: CommonSet | None = None
    """The newest set of the same distributions in other versions, where `found` is None."""
    to_build: str | None = None
    """The member without which the others have wheels for one torch as they are asked for, so that it alone must be built."""
    beside: CommonSet | None = None
    """That set of the others."""
    without_wheel: tuple[str, ...] = ()
    """Members that have no wheel here in any version, and must be built or left out."""


def known(name: str) -> bool:
    """Whether the tables have releases of a distribution, or say where its wheels are."""
    return name in _releases() or name in _COMPANIONS or bool(_documented(name))


def answer(requirements: Sequence[Requirement], place: SetPlace) -> SetAnswer:
    """Say whether wheels of all that is asked for exist for one torch. Other requirements than known ones are left out."""
    asked = {str(canonicalize_name(item.name)): str(item.specifier) for item in requirements}
    torch = [item for item in tables.releases() if versions.allows(asked.get("torch", ""), item)][::-1]
    names = tuple(name for name in asked if known(name))[:_MOST]
    if not names:
        return SetAnswer()
    fitting = {name: _candidates(name, asked[name], place) for name in names}
    found = _set(fitting, torch)
    if found is not None:
        return SetAnswer(found=found)
    every = {name: _candidates(name, "", place) for name in names}
    bare = tuple(name for name in names if not every[name])
    rest = {name: found for name, found in every.items() if found}
    newest_first = list(tables.releases())[::-1]
    lacking = tuple(_lacking(asked, fitting, every, torch, place))
    to_build, beside = _built(lacking, fitting, torch)
    return SetAnswer(
        lacking=lacking,
        to_build=to_build,
        beside=beside,
        nearest=_nearest(asked, fitting, rest, newest_first) if len(rest) + ("torch" in asked) > 1 else None,
        without_wheel=bare,
    )


def _built(
    lacking: Sequence[Lacking], fitting: Mapping[str, tuple[Candidate, ...]], torch: Sequence[str]
) -> tuple[str | None, CommonSet | None]:
    """Return the member that a build would have to bring, one with a guide to its build first, and the set of the others."""
    named = [name for item in lacking for name in item.names if name != "torch"]
    known = guides.guides()
    for name in sorted(dict.fromkeys(named), key=lambda name: (bool(fitting[name]), not _is_built(known.get(name)))):
        others = {other: found for other, found in fitting.items() if other != name}
        beside = _set(others, torch) if others and all(others.values()) else None
        if beside is not None:
            return name, beside
    return next(iter(named), None), None


def _is_built(guide: guides.Guide | None) -> bool:
    """Whether a distribution has no wheel on the default index, so that its users build it or fetch it elsewhere."""
    return guide is not None and not any(row.python for row in _releases().get(guide.name, ()))


def _nearest(
    asked: Mapping[str, str],
    fitting: Mapping[str, tuple[Candidate, ...]],
    every: Mapping[str, tuple[Candidate, ...]],
    torch: Sequence[str],
) -> CommonSet | None:
    """Return the set in which as many members as possible are as they were asked for, the newest of those."""
    for kept in range(len(every), -1, -1):
        for names in combinations(every, kept):
            mixed = {name: fitting[name] if name in names else every[name] for name in every}
            within = [item for item in torch if versions.allows(asked.get("torch", ""), item)]
            found = _set(mixed, within) or _set(mixed, torch)
            if found is not None:
                return found
    return None


def _lacking(
    asked: Mapping[str, str],
    fitting: Mapping[str, tuple[Candidate, ...]],
    every: Mapping[str, tuple[Candidate, ...]],
    torch: Sequence[str],
    place: SetPlace,
) -> Iterator[Lacking]:
    for name, found in fitting.items():
        if not found:
            what = f"no release of {name}{asked[name]}" if every[name] else f"no release of {name}"
            where = f"Python {place.python} on {place.platform.replace('_', ' ', 1)}"
            yield Lacking(names=(name,), reason=f"{what} is known to have a wheel for {where}")
        elif "torch" in asked and not any(item.torch & set(torch) for item in found):
            yield Lacking(
                names=(name, "torch"),
                reason=f"{_span(name, found)}, and torch{asked['torch']} is asked for",
                source=_sources(found),
            )
    for one, other in combinations((name for name in fitting if fitting[name]), 2):
        pair = {name: fitting[name] for name in (one, other)}
        if _set(pair, torch) is None:
            told = "; ".join(_span(name, pair[name]) for name in pair)
            yield Lacking(
                names=(one, other),
                reason=f"{one}{asked[one]} and {other}{asked[other]} have no wheels for one torch: {told}",
                source=_sources((*pair[one][:1], *pair[other][:1])),
            )


def _sources(found: Iterable[Candidate]) -> str:
    return "; ".join(dict.fromkeys(item.source for item in found if item.source))


def _span(name: str, found: Sequence[Candidate]) -> str:
    """Say which torch the candidates are for: they are sorted, the newest first."""
    order = list(tables.releases())
    places = sorted({order.index(item) for candidate in found for item in candidate.torch})
    first, last = found[-1].version, found[0].version
    which = f"{name} {first}" if first == last else f"{name} {first} to {last}"
    if not places:
        return f"{which}: for no torch that the tables know"
    low, high = order[places[0]], order[places[-1]]
    where = f", on {found[0].where}" if found[0].where else ""
    return f"wheels of {which} are for torch {low if low == high else f'{low} to {high}'}{where}"


def _set(members: Mapping[str, tuple[Candidate, ...]], torch: Iterable[str]) -> CommonSet | None:
    """Return the set with the newest torch, and of each member the newest release for that, as far as they agree."""
    for release in torch:
        fitting = [tuple(item for item in members[name] if release in item.torch) for name in members]
        if all(fitting):
            chosen = _agreeing(fitting, ())
            if chosen is not None:
                return CommonSet(torch=release, members=chosen)
    return None


def _agreeing(left: Sequence[tuple[Candidate, ...]], taken: tuple[Candidate, ...]) -> tuple[Candidate, ...] | None:
    if not left:
        return taken
    for candidate in left[0]:
        if all(_agree(candidate, other) for other in taken):
            found = _agreeing(left[1:], (*taken, candidate))
            if found is not None:
                return found
    return None


def _agree(one: Candidate, other: Candidate) -> bool:
    first, second = one.requires.get(other.name), other.requires.get(one.name)
    return (first is None or versions.allows(first, other.version)) and (
        second is None or versions.allows(second, one.version)
    )


def _candidates(name: str, spec: str, place: SetPlace) -> tuple[Candidate, ...]:
    """Return the releases with a wheel here, the newest first."""
    if name in _COMPANIONS:
        found = list(_companions(name, place))
    else:
        found = [item for row in _releases().get(name, ()) if (item := _candidate(row, place)) is not None]
    listed = {item.version for item in found}
    found += [item for item in _documented(name) if item.version not in listed and place.platform == "linux_x86_64"]
    accepted = (item for item in found if versions.allows(spec, item.version))
    return tuple(sorted(accepted, key=lambda item: versions.parsed(item.version), reverse=True))


def _releases() -> Mapping[str, tuple[Coupling, ...]]:
    found: dict[str, tuple[Coupling, ...]] = {}
    for row in tables.coupling_tables().releases:
        found[row.name] = (*found.get(row.name, ()), row)
    return found


def _candidate(row: Coupling, place: SetPlace) -> Candidate | None:
    if not {place.python, "py3"} & set(row.python.get(place.platform, ())):
        return None
    rest = {name: spec for name, spec in row.requires.items() if name != "torch"}
    return Candidate(
        name=row.name, version=row.version, torch=torch_of(row), requires=rest, source="; ".join(row.source)
    )


def release_for(name: str, torch: str, place: SetPlace) -> Candidate | None:
    """Return the newest release with a wheel on the default index for a torch, by its metadata or libraries."""
    rows = (row for row in _releases().get(name, ()) if row.requires.get("torch") or row.interface == "stable")
    found = [item for row in rows if (item := _candidate(row, place)) is not None and torch in item.torch]
    return max(found, key=lambda item: versions.parsed(item.version), default=None)


def torch_of(row: Coupling) -> frozenset[str]:
    """Return the torch releases that a release goes with: by its metadata, else by a document, else by its day.

    A release that uses torch's C++ interface was built for one torch, and one that uses the stable interface goes with
    that torch and later ones: where nothing states it, the torch that was the newest on its day.
    """
    accepted = [item for item in tables.releases() if versions.allows(row.requires.get("torch", ""), item)]
    if row.interface not in {"torch", "stable"}:
        return frozenset(accepted)
    told = [one.torch for one in _rows(row.name) if one.release and _is_of(one.release, row.version)]
    if told:
        return frozenset(item for item in accepted if any(guides.covers(words, item) for words in told))
    day = tuple(_of_its_day(row, accepted))
    if row.interface == "torch":
        return frozenset(day)
    stated = bool(row.requires.get("torch"))
    return frozenset(item for item in accepted if stated or not day or versions.parsed(item) >= versions.parsed(day[0]))


def _of_its_day(row: Coupling, accepted: Sequence[str]) -> Iterator[str]:
    """Yield the newest torch on the day of a release, with the other patch releases of its minor one."""
    known = tables.releases()
    before = [item for item in accepted if (known[item].release_date or "9999") <= (row.release_date or "")]
    newest = max(before, key=versions.parsed, default=None)
    yield from (item for item in accepted if newest is not None and versions.same_minor(item, newest))


def _is_of(words: str, version: str) -> bool:
    """Whether the words of a document for releases of a package cover one: ``0.12 to 0.16``, ``2.8.3, 2.8.3.post1``."""
    public = versions.dotted(re.sub(r"\.?(?:post|dev|rc)\d+", "", version))
    exact = [word.strip(" ,") for word in words.split(",")]
    return (
        version in exact
        or (" to " in words and guides.covers(words, version))
        or (bool(public) and any(versions.dotted(word) == public[: len(versions.dotted(word))] != () for word in exact))
    )


def _rows(name: str) -> tuple[guides.Row, ...]:
    guide = guides.guides().get(name)
    return guide.rows if guide is not None else ()


def _documented(name: str) -> list[Candidate]:
    """Return releases whose wheels are on a page of the project, by its documents."""
    guide = guides.guides().get(name)
    if guide is None or guide.url is None or name in _COMPANIONS:
        return []
    where = re.sub(r"^https?://([^/]+).*", r"\1", guide.url)
    # a row that names no release tells of the project's last one
    last = [row.version for row in _releases().get(name, ())][-1:]
    found: dict[str, frozenset[str]] = {}
    for row in guide.rows:
        torch = frozenset(item for item in tables.releases() if guides.covers(row.torch, item))
        for version in (re.findall(r"\d[\w.]*\d", row.release) if row.release else last) if torch else ():
            found[version] = found.get(version, frozenset()) | torch
    return [
        Candidate(name=name, version=version, torch=torch, where=where, source=guide.source)
        for version, torch in found.items()
    ]


def _companions(name: str, place: SetPlace) -> Iterator[Candidate]:
    for row in tables.companions(name).values():
        if not row.yanked and {place.python, "py3"} & set(row.python.get(place.platform, ())):
            torch = frozenset(item for item in tables.releases() if item in row.torch)
            yield Candidate(name=name, version=row.version, torch=torch, source="; ".join(row.source))
