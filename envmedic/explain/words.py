"""Wording of a playbook's conditions, steps and checks."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.model.playbook import (
    AdviseStep,
    CommandStep,
    Condition,
    FactValue,
    InstallStep,
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
from envmedic.model.registries.check_kinds import CHECK_NAMES
from envmedic.model.registries.remedies import REMEDIES
from envmedic.model.vocabulary.names import FACTS

_OPERATORS = {
    "is": "is", "==": "is", "is-not": "is not", "!=": "is not", "in": "is one of", "not-in": "is none of",
    "contains": "contains", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least",
    "matches": "matches", "exists": "is there", "missing": "is not there",
}  # fmt: skip
# groups of a match are no facts: "is there" would be about the environment
_OF_TEXT = {"exists": "the text tells", "missing": "the text does not tell"}
_POLICIES = {
    "keep-torch": "the installed torch stays",
    "keep-release": "its release stays, in another CUDA variant",
    "keep-cuda-variant": "its CUDA variant stays",
    "default-index": "the newest set that the default index has for one CUDA",
    "newest": "the newest set that fits driver, GPUs and Python",
}


def condition_lines(condition: Condition, indent: str = "") -> Iterator[str]:
    """One line for each comparison; a group of them has a heading."""
    if condition.fact is not None:
        yield indent + _comparison(condition)
        return
    if condition.negated is not None:
        yield indent + "not:"
        yield from condition_lines(condition.negated, indent + "  ")
        return
    parts = condition.all if condition.all is not None else condition.any or ()
    if len(parts) == 1:  # a heading over one line would only indent it
        yield from condition_lines(parts[0], indent)
        return
    yield indent + ("all of:" if condition.all is not None else "one of:")
    for part in parts:
        yield from condition_lines(part, indent + "  ")


def _comparison(condition: Condition) -> str:
    name, operator = condition.fact or "", condition.operator or "exists"
    kind = FACTS.get(name)
    if kind is None:  # a group of the text's match
        if operator in _OF_TEXT:
            return f"{_OF_TEXT[operator]} `{name}`"
        subject, where = f"`{name}` in the text", ""
    else:
        # descriptions end in "…, None without one" for authors, which reads as part of the comparison here
        subject, where = kind.doc.partition(", None ")[0], f" [{name}]"
    if isinstance(condition.value, bool) and operator in {"is", "=="}:
        return f"{subject}: {'yes' if condition.value else 'no'}{where}"
    value = "" if condition.value is None else f" {_shown(condition.value)}"
    return f"{subject}: {_OPERATORS[operator]}{value}{where}"


def _shown(value: FactValue) -> str:
    if isinstance(value, bool):  # str() would give Python's words
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def step_line(step: PlaybookStep) -> str:
    """What a step of a playbook does. Placeholders stay: facts fill them when a plan is made."""
    if isinstance(step, PurgeStep):
        parts = [f"{', '.join(step.distributions)}, every copy"] if step.distributions else []
        parts += ["leftovers of interrupted removals"] if step.leftovers else []
        return "remove " + ", and ".join(parts)
    if isinstance(step, InstallStep):
        where = f" in the CUDA variant {step.variant}" if step.variant else ""
        return f"install {', '.join(step.requirements)}{where}"
    if isinstance(step, TorchFamilyStep):
        ways = "; else ".join(_POLICIES[policy] for policy in step.policy)
        return f"bring {', '.join(step.members)} to a set that belongs together: {ways}"
    if isinstance(step, RebuildStep):
        return f"build {step.distribution} anew from its recorded source, for the installed torch and the GPUs present"
    if isinstance(step, ReinstallStep):
        return f"reinstall conda packages, without the wheels that overwrote them: {', '.join(step.packages)}"
    if isinstance(step, SetEnvStep):
        return "keep in the environment: " + " ".join(f"{name}={value}" for name, value in step.variables.items())
    if isinstance(step, UnsetEnvStep):
        return f"unset when the environment is activated: {' '.join(step.names)}"
    if isinstance(step, ReplaceStep):
        return f"replace {step.distribution} by {step.by}"
    if isinstance(step, PinStep):
        return f"keep constraints in the environment: {', '.join(step.constraints)}"
    return f"tell you: {step.text}" if isinstance(step, AdviseStep) else _named_line(step)


def _named_line(step: RemedyStep | CommandStep) -> str:
    return f"run {' '.join(step.argv)}" if isinstance(step, CommandStep) else REMEDIES[step.name].does


def check_line(name: str) -> str:
    """What a check of a playbook proves."""
    return f"{name}: {CHECK_NAMES[name]}"
