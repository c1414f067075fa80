"""Remedies for requirements between installed distributions: releases that all of them accept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envmedic.analysis.requirement_faults import foreign_torchcodec, requirement_faults
from envmedic.compat import couplings
from envmedic.compat.installed_requirements import Demand, satisfying
from envmedic.planner.remedies.remedy import Remedy, Situation

_ACCEPTED = "all that require these accept them"


def missing_requirement(situation: Situation) -> Remedy:
    """Install required distributions that are missing."""
    found = requirement_faults(situation.environment, situation.host)
    install = _accepted(found.missing, found.every)
    return Remedy(
        install=install, why=_ACCEPTED if install else "nothing is missing of which a release would do for all"
    )


def unmet_requirement(situation: Situation) -> Remedy:
    """Install other releases of distributions in a wrong version, torch's own dependencies first."""
    found = requirement_faults(situation.environment, situation.host)
    install = _accepted((*found.of_torch, *found.conflicts), found.every)
    return Remedy(
        install=install, why=_ACCEPTED if install else "nothing is wrong of which another release would do for all"
    )


def protobuf_version(situation: Situation) -> Remedy:
    """Install a protobuf that all accept."""
    found = requirement_faults(situation.environment, situation.host)
    unmet = (*found.protobuf, *(item for item in found.generated if not item.met))
    install = _accepted(unmet, (*found.every, *found.generated))
    return Remedy(install=install, why=_ACCEPTED if install else "no other protobuf would do for all that require it")


def transformers_family(situation: Situation) -> Remedy:
    """Install what transformers and the libraries around it require of each other.

    Where two libraries exclude each other on a third one, the one that is not satisfied is upgraded.
    """
    found = requirement_faults(situation.environment, situation.host)
    stuck = [item.by for item in found.hugging_face if satisfying(item.name, found.every) is None]
    # no version satisfies both sides, so the side that is not satisfied today moves
    upgrades = dict.fromkeys(f"{by.name}>{by.version}" for by in stuck)
    if not found.hugging_face:
        return Remedy(why="the libraries around transformers fit each other")
    install = (*_accepted(found.hugging_face, found.every), *upgrades)
    return Remedy(install=install, why="these libraries compare each other's versions when they are imported")


def triton_version(situation: Situation) -> Remedy:
    """Install the triton that torch requires."""
    asked = requirement_faults(situation.environment, situation.host).asked_of_triton(situation.environment)
    if asked is None:
        return Remedy(why="the installed torch requires no triton")
    if asked.met:
        return Remedy(why="the installed triton is the one that torch requires")
    return Remedy(install=(f"{asked.name}{asked.specifier}",), why="torch and triton are compiled for one another")


def xformers_build(situation: Situation) -> Remedy:
    """Install the xformers that was built for the installed torch, where the data knows one."""
    torch = situation.torch("no build of xformers can be chosen for it")
    if situation.environment.distribution("xformers") is None:
        return Remedy(why="xformers is not installed here")
    asked = requirement_faults(situation.environment, situation.host).asked("xformers", "torch")
    fitting = couplings.xformers_for(torch.public)
    if fitting is None or asked is None or asked.met:
        return Remedy(why=f"no other xformers is known to be built for torch {torch.version}")
    return Remedy(install=(f"xformers=={fitting}",), why=f"it was built for torch {torch.version}")


def torch_companions(situation: Situation) -> Remedy:
    """Install the torchcodec for the installed torch. torchtext and torchdata have no release for a newer torch."""
    torch = situation.torch("no companion can be chosen for it")
    codec = foreign_torchcodec(situation.environment, torch)
    minor = couplings.torchcodec_for(torch.public) if codec is not None else None
    if minor is None:
        return Remedy(why=f"no release of another companion is known to be made for torch {torch.version}")
    return Remedy(
        install=(f"torchcodec=={minor}.*",), why=f"it is the torchcodec that was made for torch {torch.version}"
    )


def _accepted(unmet: Iterable[Demand], every: Sequence[Demand]) -> tuple[str, ...]:
    """Return for each name one requirement that combines all demands on it, where one exists."""
    found = (satisfying(name, every) for name in dict.fromkeys(item.name for item in unmet))
    return tuple(item for item in found if item is not None)
