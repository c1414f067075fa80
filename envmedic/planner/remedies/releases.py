"""Remedies for requirements between installed distributions: releases that all of them accept."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import Requirement

from envmedic.analysis.packages.requirement_faults import (
    RequirementFaults,
    foreign_torchcodec,
    requirement_faults,
)
from envmedic.analysis.text_statements import asked_by_extras, of_former_standard, of_known_name
from envmedic.compat import couplings
from envmedic.compat.import_names import FORMER_STANDARD
from envmedic.compat.installed_requirements import Demand, satisfying
from envmedic.compat.versions import version
from envmedic.errors import NoSolution
from envmedic.planner.moves.conflict_graph import Conflicts, conflicts
from envmedic.planner.remedies.drift import drifted, held, newer, owner_of, with_drift
from envmedic.planner.remedies.remedy import MOVED_TOGETHER, Remedy, Situation, moving

_ACCEPTED = "all that require these accept them"


def missing_requirement(situation: Situation) -> Remedy:
    """Install required distributions that are missing, what continues a module that Python had, or what is known to bring one.

    Raises NoSolution where nothing says which distribution brings the missing module.
    """
    found = requirement_faults(situation.environment, situation.host)
    extras = asked_by_extras(situation.environment, situation.host, situation.groups)
    optional = _in_accord([item for item in extras if item.found is None], found.every)
    former = of_former_standard(situation.environment, situation.groups)
    lacking = found.missing
    # a library may use what it does not ask for, and what others used to bring along
    known = () if lacking or optional or former else of_known_name(situation.environment, situation.groups)
    module = situation.groups.get("module")
    if module is not None and module not in FORMER_STANDARD and not (lacking or optional or former or known):
        raise _nobody_brings(module)
    # another release of what lacks something may be asked for anyway, and lack nothing
    refused = tuple(
        item for item in (*found.hugging_face, *found.conflicts) if item.name in {of.by.name for of in lacking}
    )
    return moving(
        conflicts(
            situation.environment,
            (*lacking, *refused),
            found.every,
            wanted=(*former, *known, *optional),
            unstated=found.unstated,
        ),
        why=_ACCEPTED,
        otherwise="nothing is missing of which a release would do for all",
    )


def _in_accord(optional: Sequence[Demand], every: Sequence[Demand]) -> tuple[str, ...]:
    """One requirement on each distribution that extras ask for, by as many of these as agree with each other and with `every`.

    Nobody has asked for the extras. They tell which release would do, and move nothing. Those of distributions that
    nothing requires, which somebody has chosen, go first.
    """
    required = {item.name for item in every}
    kept: list[Demand] = []
    for item in sorted(optional, key=lambda item: item.by.name in required):
        if satisfying(item.name, (*every, *kept, item)) is not None:
            kept.append(item)
    return tuple(satisfying(name, (*every, *kept)) or name for name in dict.fromkeys(item.name for item in optional))


def _nobody_brings(module: str) -> NoSolution:
    return NoSolution(
        f"Nothing here says which distribution brings {module}",
        cause="no installed distribution asks for it, and the name of a module need not be that of its distribution",
        hint="`envmedic uv pip install NAME`, with the name in its documentation, installs it and sees that all else still works",
    )


def unmet_requirement(situation: Situation) -> Remedy:
    """Install other releases of the distributions that are out of step with the others."""
    found = requirement_faults(situation.environment, situation.host)
    return moving(
        _conflicts(situation, found, (*found.of_torch, *found.conflicts)),
        why=_ACCEPTED,
        otherwise="nothing is wrong of which another release would do for all",
    )


def protobuf_version(situation: Situation) -> Remedy:
    """Install a protobuf that all accept."""
    found = requirement_faults(situation.environment, situation.host)
    unmet = (*found.protobuf, *(item for item in found.generated if not item.met))
    every = (*found.every, *found.generated)
    return moving(
        conflicts(situation.environment, unmet, every, unstated=(*found.unstated, *found.generated)),
        why=_ACCEPTED,
        otherwise="no other protobuf would do for all that require it",
    )


def transformers_family(situation: Situation) -> Remedy:
    """Install other releases of the libraries around transformers that are out of step with the others."""
    found = requirement_faults(situation.environment, situation.host)
    return moving(
        _conflicts(situation, found, found.hugging_face),
        why="these libraries compare each other's versions when they are imported",
        otherwise="the libraries around transformers fit each other",
    )


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


def _conflicts(situation: Situation, found: RequirementFaults, violated: tuple[Demand, ...]) -> Conflicts:
    """Return the conflicts of violated requirements, and of what the text asks for.

    What two packages are at odds about without a word in their metadata stands behind them.
    """
    # where an installed distribution requires it too, that one may move instead
    known = {item.name for item in violated}
    lacking = _lacking(situation)
    if lacking is not None and lacking.name not in known:
        violated, unstated = (*violated, lacking), (*found.unstated, lacking)
        stated = conflicts(situation.environment, violated, found.every, unstated=unstated)
        return with_drift(stated, situation, found.every)
    wanted = _stated(situation, found.every)
    asked = tuple(text for text in wanted if Requirement(text).name not in known)
    stated = conflicts(situation.environment, violated, found.every, wanted=asked, unstated=found.unstated)
    return with_drift(stated, situation, found.every)


def _lacking(situation: Situation) -> Demand | None:
    """Return what a package asks of another one that lacks a name, None where the text names no two packages.

    The name came with a newer release of the one, or went, and a newer release of the other does without it: either
    may move.
    """
    wanted, holds = held(situation)
    if wanted is None or holds is None or wanted.module is None or wanted.name is None:
        return None
    owner, caller = (owner_of(situation, module) for module in (wanted.module, situation.importing or ""))
    newest = version(owner.public) if owner is not None else None
    if owner is None or caller is None or newest is None or caller.name == owner.name:
        return None
    if {owner.name, caller.name} & MOVED_TOGETHER:
        return None
    return Demand(caller, owner.name, f">{owner.public},<{newest.major + 1}", owner.public)


def _stated(situation: Situation, every: Sequence[Demand]) -> tuple[str, ...]:
    """Return the requirement that the text states, where it is unmet here and all others accept it.

    A name that a module lacks may be in a newer release; the check on the name shows whether it is.
    """
    wanted, holds = held(situation)
    if wanted is None or holds is None:
        return ()
    if wanted.requirement is None:
        return () if drifted(situation, every) else newer(situation, wanted.module or "", every)
    requirement = Requirement(wanted.requirement)
    # torch moves with all that is bound to it, by playbooks of its own
    if requirement.name in MOVED_TOGETHER:
        return ()
    found = satisfying(requirement.name, every, str(requirement.specifier))
    return (found,) if found is not None else ()
