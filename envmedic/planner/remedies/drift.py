"""Releases for two packages that are at odds without a word in their metadata: one lacks or refuses what the other asks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec

from envmedic.analysis.packages.requirement_faults import HUGGING_FACE
from envmedic.analysis.text_statements import Asked, asked, subject
from envmedic.compat.installed_requirements import Demand, satisfying
from envmedic.compat.versions import version
from envmedic.model.facts import Distribution, TextStatement
from envmedic.planner.moves.conflict_graph import Conflicts, conflicts
from envmedic.planner.remedies.remedy import MOVED_TOGETHER, Situation


def newer(situation: Situation, module: str, every: Sequence[Demand]) -> tuple[str, ...]:
    """Return a newer release of the distribution whose module lacks a name, and those around it that must follow."""
    owner = owner_of(situation, module)
    # within the major release: the next one takes away more names than it adds
    return () if owner is None or owner.name in MOVED_TOGETHER else _with_family(owner, every)


def with_drift(stated: Conflicts, situation: Situation, every: Sequence[Demand]) -> Conflicts:
    """Return the conflicts that metadata state, and behind them those that only the call of the text shows."""
    # newer releases of either are ways out of a name that one asks of the other in vain
    known = {item.by.name for item in stated.violated if not item.met and item.by.name in stated.newer}
    # whether a call is made still, the files of who makes it tell; what fails in its own statements, its import
    wanted = asked(situation.groups)
    silent = (wanted is None or wanted.call is None) and not {"caller", "said"} <= situation.groups.keys()
    shown = [
        msgspec.structs.replace(
            conflicts(situation.environment, (), every, wanted=way.wanted), unseen=way.moves == "caller" and silent
        )
        for way in drifted(situation, every)
        if way.moves == "asked back" or way.caller not in known
    ]
    first, *others = [stated, *shown] if stated.violated or stated.wanted or not shown else shown
    return msgspec.structs.replace(first, instead=tuple(others))


def held(situation: Situation) -> tuple[Asked | None, TextStatement | None]:
    """Return what the text states, and that it holds here; None for the latter where the files do not say so."""
    wanted = asked(situation.groups)
    return wanted, next((item for item in situation.facts.statements if item.holds and subject(item) == wanted), None)


class DriftEnd(NamedTuple):
    """Requirements that may end what two packages are at odds about."""

    wanted: tuple[str, ...]
    moves: Literal["caller", "asked", "asked back"]
    """Whether the package moves that asks or the one that is asked, and that one back."""
    caller: str
    """Name of the distribution that asks; empty for a program of the user."""


def drifted(situation: Situation, every: Sequence[Demand]) -> tuple[DriftEnd, ...]:
    """Return requirements that may each end the failure of what one package asks of another, likeliest first.

    Only a proof tells which of the two is out of step. Mostly the one that asks was made before the other changed, so a
    newer release of it comes first, within its major release if possible. Where there is none that works, the other
    goes back to an earlier release series, or on to the next where a name is missing that may be in it.
    """
    groups = situation.groups
    missing = "name" in groups or "part" in groups
    asks = owner_of(situation, groups.get("caller", ""))
    # who asks without being a package is a program of the user, which states no releases that it was written for
    holds = held(situation)[1]
    of_program = groups.get("module", "") if missing and "caller" not in groups and holds is not None else ""
    refusing = holds.refuses if holds is not None else None
    module = groups.get("asked") or refusing or of_program
    other = owner_of(situation, module)
    if asks is other or (asks is None and "caller" in groups):
        return ()
    by = asks.name if asks is not None else ""
    limits = (_newer(asks, within=True), _newer(asks)) if asks is not None else ()
    found = [DriftEnd(_moved(asks, every, limit), "caller", by) for limit in limits if asks is not None]
    if asks is not None:
        found.append(DriftEnd(_with_bound(asks, every), "caller", by))
    if other is not None:
        others = [
            DriftEnd(_moved(other, every, _older(other)), "asked back", by),
            DriftEnd(newer(situation, module, every), "asked", by),
        ]
        found += reversed(others) if missing else others
    return tuple(dict.fromkeys(item for item in found if item.wanted))


_FIXED = MOVED_TOGETHER - {"numpy"}
"""numpy may go back where a package that is no longer released needs it to: what is built against it shows its harm."""


def owner_of(situation: Situation, module: str) -> Distribution | None:
    """The distribution that brings a module."""
    top = module.partition(".")[0]
    return next((item for item in situation.environment.distributions if top in item.import_names), None)


def _newer(owner: Distribution, *, within: bool = False) -> str:
    parsed = version(owner.public)
    return "" if parsed is None else f">{owner.public}" + (f",<{parsed.major + 1}" if within else "")


def _older(owner: Distribution) -> str:
    """Return the limits of the release series before: the major release, or the minor one where that is 0."""
    parsed = version(owner.public)
    if parsed is None or not (parsed.major or parsed.minor):
        return ""
    return f"<{parsed.major},>={parsed.major - 1}" if parsed.major else f"<0.{parsed.minor}"


def _moved(owner: Distribution, every: Sequence[Demand], limit: str) -> tuple[str, ...]:
    """Return the distribution within a limit that all others accept."""
    found = satisfying(owner.name, every, limit) if limit and owner.name not in _FIXED else None
    return () if found is None else (found,)


def _with_family(owner: Distribution, every: Sequence[Demand]) -> tuple[str, ...]:
    """Return a newer release within the major one, and those around it that must follow."""
    along = {item.name for item in every if item.by.name == owner.name and item.found and item.name in HUGGING_FACE}
    return _with(along, owner, every, _newer(owner, within=True))


def _with_bound(owner: Distribution, every: Sequence[Demand]) -> tuple[str, ...]:
    """Return a newer release, and what the installed one binds to certain releases; nothing without any of these."""
    own = (item for item in every if item.by.name == owner.name and item.found and item.name not in MOVED_TOGETHER)
    along = {item.name for item in own if any(mark in item.specifier for mark in ("<", "==", "~="))}
    return _with(along, owner, every, _newer(owner)) if along else ()


def _with(along: Collection[str], owner: Distribution, every: Sequence[Demand], limit: str) -> tuple[str, ...]:
    """Return a distribution within a limit, with `along` in releases that all who stay accept."""
    found = _moved(owner, every, limit)
    others = [item for item in every if item.by.name not in {owner.name, *along}]
    follow = [satisfying(name, others) for name in sorted(along)]
    return () if not found or None in follow else (*found, *filter(None, follow))
