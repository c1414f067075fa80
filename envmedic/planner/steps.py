"""The playbook's other steps: requirements to install, distributions to replace, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic.errors import NoSolution
from envmedic.model.findings import Finding
from envmedic.model.plan import Advise, Pin, SetEnv, Step, UnsetEnv
from envmedic.model.playbook import (
    AdviseStep,
    CommandStep,
    FactValue,
    InstallStep,
    LoadedPlaybook,
    PinStep,
    PlaybookStep,
    PurgeStep,
    RebuildStep,
    ReplaceStep,
    SetEnvStep,
    TorchFamilyStep,
    UnsetEnvStep,
)
from envmedic.playbook.filling import fill, placeholders

Values = Mapping[str, FactValue]


@dataclass
class Wanted:
    """What the steps of a playbook ask for, filled in and gathered."""

    family: TorchFamilyStep | None = None
    purged: list[str] = field(default_factory=list)
    leftovers: bool = False
    """Whether a purge step asks for leftovers as well."""
    replaced: list[str] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)
    index: str | None = None
    variant: str | None = None
    after: list[Step] = field(default_factory=list)


def values_of(loaded: LoadedPlaybook, finding: Finding, facts: Values) -> dict[str, FactValue]:
    """Return what placeholders stand for: groups of the match before the playbook's variables before facts."""
    known: dict[str, FactValue] = {**facts}
    variables = {name: filled(text, {**known, **finding.groups}) for name, text in loaded.playbook.vars.items()}
    return {**known, **variables, **finding.groups}


def filled(text: str, values: Values) -> str:
    """Return `text` with its placeholders filled. Raises `NoSolution` for one that was not observed."""
    missing = [name for name in placeholders(text) if values.get(name) is None]
    if missing:
        raise NoSolution(
            f"The playbook needs {' and '.join(missing)}, which was not observed",
            cause=f"the step says {text!r}",
            hint="Give the whole error text with --log FILE",
        )
    return fill(text, values)


def gather(loaded: LoadedPlaybook, values: Values) -> Wanted:
    """Interpret the steps. Raises `NoSolution` for kinds that are not carried out yet, listing them all."""
    unsupported = [_named(step) for step in loaded.playbook.steps if isinstance(step, RebuildStep | CommandStep)]
    if unsupported:
        raise NoSolution(
            f"Playbook {loaded.playbook.id} has steps that are not supported yet",
            cause="; ".join(unsupported),
            hint="Carry these out yourself, or choose another playbook",
            details=tuple(unsupported),
        )
    wanted = Wanted()
    for step in loaded.playbook.steps:
        _gather_one(step, wanted, values)
    return wanted


def _named(step: RebuildStep | CommandStep) -> str:
    return f"rebuild {step.distribution}" if isinstance(step, RebuildStep) else f"command {' '.join(step.argv)}"


def _gather_one(step: PlaybookStep, wanted: Wanted, values: Values) -> None:
    if isinstance(step, PurgeStep):
        wanted.purged += (canonicalize_name(filled(name, values)) for name in step.distributions)
        wanted.leftovers = wanted.leftovers or step.leftovers
    elif isinstance(step, TorchFamilyStep):
        wanted.family = step
    elif isinstance(step, InstallStep):
        _install(step, wanted, values)
    elif isinstance(step, ReplaceStep):
        wanted.replaced.append(canonicalize_name(filled(step.distribution, values)))
        wanted.pins.append(_requirement(filled(step.by, values)))
    else:
        wanted.after += _following(step, values)


def _install(step: InstallStep, wanted: Wanted, values: Values) -> None:
    wanted.pins += (_requirement(filled(text, values)) for text in step.requirements)
    wanted.index = filled(step.index, values) if step.index else wanted.index
    wanted.variant = filled(step.variant, values) if step.variant else wanted.variant


def _requirement(text: str) -> str:
    """Return `text` if it is a requirement. Raises `NoSolution` when it is not."""
    try:
        return str(Requirement(text))
    except InvalidRequirement as error:
        raise NoSolution(
            f"The playbook asks for {text!r}, which is no requirement",
            cause=str(error),
            hint="Correct the playbook's install or replace step",
        ) from error


def _following(step: PlaybookStep, values: Values) -> tuple[Step, ...]:
    """Return the step of the plan for one that neither removes nor installs."""
    if isinstance(step, SetEnvStep):
        return (SetEnv(variables={name: filled(text, values) for name, text in step.variables.items()}),)
    if isinstance(step, UnsetEnvStep):
        return (UnsetEnv(names=tuple(filled(name, values) for name in step.names)),)
    if isinstance(step, PinStep):
        return (Pin(constraints=tuple(filled(text, values) for text in step.constraints)),)
    if isinstance(step, AdviseStep):
        return (Advise(text=filled(step.text, values)),)
    return ()
