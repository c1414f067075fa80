"""Placeholders in the texts of a playbook's steps: filled, or refused in words where one has no value.

Nothing else of the planner knows facts by their flat names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from envmedic.errors import NoSolution
from envmedic.model.findings import Finding
from envmedic.model.playbook import FactValue, LoadedPlaybook
from envmedic.model.vocabulary.names import LISTED_PACKAGES, fact_kind, package_fact
from envmedic.planner.remedies.remedy import THE_TORCH_ENVIRONMENT
from envmedic.playbook.schema.template import fill, placeholders, sole_placeholder

Values = Mapping[str, FactValue]
_OF_TORCH = ("torch.", "toolchain.matching-", "extensions.gpu-code")
"""How the names of facts begin that have no value without torch."""


def values_of(loaded: LoadedPlaybook, finding: Finding | None, facts: Values) -> dict[str, FactValue]:
    """Return what placeholders stand for: groups of the match before the playbook's variables before facts."""
    known: dict[str, FactValue] = {**facts}
    groups = finding.groups if finding is not None else {}
    variables = {name: filled(text, {**known, **groups}) for name, text in loaded.playbook.vars.items()}
    return {**known, **variables, **groups}


def filled(text: str, values: Values) -> str:
    """Return `text` with its placeholders filled. Raises `NoSolution`, in words, for those without a value."""
    missing = [name for name in placeholders(text) if values.get(name) is None]
    if missing:
        raise _refusal(missing, values)
    return fill(text, values)


def _refusal(missing: Sequence[str], values: Values) -> NoSolution:
    """Say what is missing without the names of facts, which are of use to authors of playbooks alone."""
    facts = [name for name in missing if fact_kind(name) is not None]
    said = [name for name in missing if fact_kind(name) is None]
    if not facts:
        return NoSolution(
            f"The error text has to say which {' and '.join(said)} it is about, and none was given that does",
            hint="Give the whole error text with --log FILE",
        )
    described = "; ".join(map(_described, facts))
    installed = values.get(LISTED_PACKAGES)
    no_torch = isinstance(installed, tuple) and "torch" not in installed
    if no_torch and all(name.startswith(_OF_TORCH) for name in facts):
        return NoSolution(
            f"No torch is installed here, so nothing is known of what this repair needs: {described}",
            hint=THE_TORCH_ENVIRONMENT,
        )
    looked_for = all(name in values for name in facts)
    return NoSolution(
        f"This repair depends on what {'is not here' if looked_for else 'could not be observed here'}: {described}",
        hint="`envmedic facts` shows what was found: put in place what is missing, or plan on the machine that has it",
    )


def _described(name: str) -> str:
    """Return what a fact is in words, without what its doc says of other cases."""
    kind = fact_kind(name)
    doc = (kind.doc if kind is not None else name).partition(", None ")[0].partition("; ")[0]
    return doc.replace("that distribution", name.split(".")[1]) if package_fact(name) else doc


def listed(texts: Iterable[str], values: Values) -> tuple[str, ...]:
    """Return the texts of a step's list, filled in; one that only names a list stands for each of its texts.

    A list that was looked for and is not there is empty. Raises `NoSolution` for what was not observed.
    """
    return tuple(dict.fromkeys(item for text in texts for item in _items(text, values)))


def _items(text: str, values: Values) -> tuple[str, ...]:
    name = sole_placeholder(text)
    if name is not None and name in values:
        value = values[name]
        if isinstance(value, tuple):
            return value
        if value is None and _is_list(name):
            return ()
    return (filled(text, values),)


def _is_list(name: str) -> bool:
    kind = fact_kind(name)
    return kind is not None and kind.type == "strings"
