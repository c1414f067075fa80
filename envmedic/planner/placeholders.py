"""Placeholders in the texts of a playbook's steps: filled, or refused with an explanation.

No other module of the planner knows the flat names of facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from envmedic.errors import NoSolution
from envmedic.model.findings import Finding
from envmedic.model.playbook import FactValue, LoadedPlaybook
from envmedic.model.vocabulary.names import LISTED_PACKAGES, described, fact_kind
from envmedic.planner.remedies.remedy import THE_TORCH_ENVIRONMENT
from envmedic.playbook.schema.template import fill, placeholders, sole_placeholder

Values = Mapping[str, FactValue]
_OF_TORCH = ("torch.", "toolchain.matching-", "extensions.gpu-code")
"""Prefixes of the names of facts that have no value without torch."""


def values_of(loaded: LoadedPlaybook, finding: Finding | None, facts: Values) -> dict[str, FactValue]:
    """Return the values of placeholders. Groups of the match precede the playbook's variables, and these facts."""
    known: dict[str, FactValue] = {**facts}
    groups = finding.groups if finding is not None else {}
    # the error text is about the failing process, which may have seen another environment than the facts describe
    variables = {name: filled(text, {**known, **groups}) for name, text in loaded.playbook.vars.items()}
    return {**known, **variables, **groups}


def filled(text: str, values: Values) -> str:
    """Return `text` with its placeholders filled. Raises `NoSolution`, with an explanation, for missing values."""
    missing = [name for name in placeholders(text) if values.get(name) is None]
    if missing:
        raise _refusal(missing, values)
    return fill(text, values)


def _refusal(missing: Sequence[str], values: Values) -> NoSolution:
    """Describe the missing values without the names of facts, which only authors of playbooks know."""
    # two different next steps: more of the error text for groups, another environment or host for facts
    facts = [name for name in missing if fact_kind(name) is not None]
    said = [name for name in missing if fact_kind(name) is None]
    if not facts:
        return NoSolution(
            f"The error text has to say which {' and '.join(said)} it is about, and none was given that does",
            hint="Give the whole error text with --log FILE",
        )
    told = "; ".join(map(described, facts))
    installed = values.get(LISTED_PACKAGES)
    # a list that was not observed is no proof that torch is missing
    no_torch = isinstance(installed, tuple) and "torch" not in installed
    if no_torch and all(name.startswith(_OF_TORCH) for name in facts):
        return NoSolution(
            f"No torch is installed here, so nothing is known of what this repair needs: {told}",
            hint=THE_TORCH_ENVIRONMENT,
        )
    # an observed absence has a value of None; a fact that was not observed has no entry
    looked_for = all(name in values for name in facts)
    return NoSolution(
        f"This repair depends on what {'is not here' if looked_for else 'could not be observed here'}: {told}",
        hint="`envmedic facts` shows what was found: put in place what is missing, or plan on the machine that has it",
    )


def listed(texts: Iterable[str], values: Values) -> tuple[str, ...]:
    """Return the filled texts of a step's list, each once. A text that only names a list stands for its items.

    A list that was observed as absent counts as empty. Raises `NoSolution` for one that was not observed.
    """
    found: list[str] = []
    for text in texts:
        name = sole_placeholder(text)
        value = values.get(name) if name is not None else None
        kind = fact_kind(name) if name is not None else None
        if isinstance(value, tuple):
            found += value
        # `in`, not `get`: None with an entry is an observed absence, which leaves the step nothing to do
        elif not (value is None and name in values and kind is not None and kind.type == "strings"):
            found.append(filled(text, values))
    return tuple(dict.fromkeys(found))
