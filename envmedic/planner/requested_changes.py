"""Changes that the steps of a playbook request, with placeholders filled and remedies decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from envmedic import limits
from envmedic.errors import NoSolution
from envmedic.model.plan import Advise, Pin, SetEnv, Step, UnsetEnv
from envmedic.model.playbook import (
    AdviseStep,
    CommandStep,
    InstallStep,
    LoadedPlaybook,
    PinStep,
    PlaybookStep,
    PurgeStep,
    RebuildStep,
    ReinstallStep,
    RemedyStep,
    ReplaceStep,
    SetEnvStep,
    TorchFamilyStep,
    UnsetEnvStep,
)
from envmedic.planner.moves.conflict_graph import Conflicts
from envmedic.planner.moves.hitting_sets import MoveSet
from envmedic.planner.placeholders import Values, filled, listed
from envmedic.planner.remedies import Situation, decide
from envmedic.playbook.schema.template import fill


@dataclass
class RequestedChanges:
    """The requested changes of all steps of a playbook."""

    family: TorchFamilyStep | None = None
    purged: list[str] = field(default_factory=list)
    leftovers: bool = False
    """Whether a purge step includes leftovers."""
    every_leftover: bool = False
    """Whether a purge step names no distribution, and so includes all leftovers."""
    replaced: list[str] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)
    """Requirements of every install and replace step, each once."""
    indexes: list[str] = field(default_factory=list)
    """URLs of the indexes that install steps name."""
    variant: str | None = None
    reinstalled: list[str] = field(default_factory=list)
    """Conda packages to be put in place again, and match specs of missing ones."""
    rebuilt: list[str] = field(default_factory=list)
    """Distributions to be built again from their source."""
    after: list[Step] = field(default_factory=list)
    sound: list[str] = field(default_factory=list)
    """Why remedies of the playbook change nothing."""
    conflicts: Conflicts | None = None
    """The conflicts that `pins` end in one of several ways."""


def gather(
    loaded: LoadedPlaybook, values: Values, situation: Situation, moves: MoveSet | None = None
) -> RequestedChanges:
    """Interpret the steps; remedies decide on the `situation`. `moves` is the way out of conflicts, None for the least.

    Raises `NoSolution` for unsupported kinds of steps, listing them all, and for remedies that cannot decide.
    """
    # all unsupported steps before any other error: the user learns at once whether this playbook is of any use
    unsupported = [f"command {' '.join(step.argv)}" for step in loaded.playbook.steps if isinstance(step, CommandStep)]
    if unsupported:
        raise NoSolution(
            f"Playbook {loaded.playbook.id} has steps that are not supported yet",
            cause="; ".join(unsupported),
            hint="Carry these out yourself, or choose another playbook",
            details=tuple(unsupported),
        )
    wanted = RequestedChanges()
    for step in loaded.playbook.steps:
        if isinstance(step, RemedyStep):
            _remedy(step, wanted, situation, moves)
        else:
            _gather_one(step, wanted, values)
    return wanted


def _gather_one(step: PlaybookStep, wanted: RequestedChanges, values: Values) -> None:
    if isinstance(step, PurgeStep):
        _add(wanted.purged, (canonicalize_name(name) for name in listed(step.distributions, values)))
        wanted.leftovers = wanted.leftovers or step.leftovers
        # a purge of leftovers without distributions means all of them: after an interrupted removal nobody knows the
        # names
        wanted.every_leftover = wanted.every_leftover or (step.leftovers and not step.distributions)
    elif isinstance(step, TorchFamilyStep):
        wanted.family = step
    elif isinstance(step, InstallStep):
        _install(step, wanted, values)
    elif isinstance(step, RebuildStep):
        _add(wanted.rebuilt, (canonicalize_name(name) for name in listed((step.distribution,), values)))
    elif isinstance(step, ReinstallStep):
        _add(wanted.reinstalled, listed(step.packages, values))
    elif isinstance(step, ReplaceStep):
        # A replacement is a removal and a requirement. Two names are not one upgrade: pip would keep the old one.
        _add(wanted.replaced, (canonicalize_name(filled(step.distribution, values)),))
        _add(wanted.pins, (_requirement(filled(step.by, values)),))
    else:
        wanted.after += _following(step, values)


def _remedy(step: RemedyStep, wanted: RequestedChanges, situation: Situation, moves: MoveSet | None) -> None:
    remedy = decide(step.name, situation)
    # no error: another step of the playbook may still have something to do
    if remedy.empty:
        wanted.sound.append(remedy.why)
    _add(wanted.purged, map(canonicalize_name, remedy.purge))
    wanted.leftovers = wanted.leftovers or remedy.leftovers
    wanted.conflicts = wanted.conflicts or remedy.conflicts
    chosen = moves.pins if moves is not None and remedy.conflicts is not None else remedy.install
    _add(wanted.pins, map(_requirement, chosen))
    if remedy.variables:
        wanted.after.append(SetEnv(variables=remedy.variables))
    wanted.after += remedy.steps


def _add(known: list[str], new: Iterable[str]) -> None:
    """Append new items, each once, in the order given."""
    known += [item for item in dict.fromkeys(new) if item not in known]


def _install(step: InstallStep, wanted: RequestedChanges, values: Values) -> None:
    requirements = [_requirement(text) for text in listed(step.requirements, values)]
    # its index and variant would otherwise steer the requirements of other steps
    if not requirements:
        return
    _add(wanted.pins, requirements)
    if step.index:
        _add(wanted.indexes, (filled(step.index, values),))
    if step.variant:
        variant = filled(step.variant, values)
        # all members of the family load one CUDA runtime, so a second variant cannot be meant
        if wanted.variant not in {None, variant}:
            raise NoSolution(
                f"The playbook asks for two CUDA variants: {wanted.variant} and {variant}",
                cause="one environment has one CUDA variant of torch",
                hint="Correct the playbook's install steps",
            )
        wanted.variant = variant


def _requirement(text: str) -> str:
    """Return `text` if it is a requirement. Raises `NoSolution` when it is not."""
    try:
        return str(limits.parsed(text))
    except InvalidRequirement as error:
        raise NoSolution(
            f"The playbook asks for {text!r}, which is no requirement",
            cause=str(error),
            hint="Correct the playbook's install or replace step",
        ) from error


def _variables(step: SetEnvStep, values: Values) -> dict[str, str]:
    """Return the variables, without those whose text only names an empty list."""
    chosen = {name: listed((text,), values) for name, text in step.variables.items()}
    return {name: ":".join(texts) for name, texts in chosen.items() if texts}


def _following(step: PlaybookStep, values: Values) -> tuple[Step, ...]:
    """Return the plan's step for one that neither removes nor installs; none where its list is empty."""
    if isinstance(step, SetEnvStep):
        variables = _variables(step, values)
        return (SetEnv(variables=variables),) if variables else ()
    if isinstance(step, UnsetEnvStep):
        names = listed(step.names, values)
        return (UnsetEnv(names=names),) if names else ()
    if isinstance(step, PinStep):
        constraints = tuple(_requirement(text) for text in listed(step.constraints, values))
        return (Pin(constraints=constraints),) if constraints else ()
    if isinstance(step, AdviseStep):
        # `fill`, not `filled`: a sentence may have a gap, a change may not
        return (Advise(text=fill(step.text, values)),)
    return ()
