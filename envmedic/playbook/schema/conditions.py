"""Evaluation of conditions over facts and match groups, in Kleene's three-valued logic.

None is the third value: a deciding fact was not observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from envmedic.model.checks import Confirmation
from envmedic.model.playbook import Condition, FactValue
from envmedic.model.vocabulary.fact_kind import FactType
from envmedic.model.vocabulary.names import LISTED_PACKAGES, described, fact_kind, fact_source, package_fact
from envmedic.playbook.matching.patterns import compiled
from envmedic.playbook.schema.template import fill, placeholders, shown

Truth = bool | None
Values = Mapping[str, FactValue]
"""Facts and match groups by name. A missing name was not observed; the value None was observed to be absent."""

UNARY = frozenset({"exists", "missing"})
OPERATORS: dict[FactType, frozenset[str]] = {
    "bool": frozenset({"is", "is-not", "==", "!="}) | UNARY,
    "int": frozenset({"is", "is-not", "==", "!=", "<", "<=", ">", ">="}) | UNARY,
    "string": frozenset({"is", "is-not", "==", "!=", "in", "not-in", "contains", "matches"}) | UNARY,
    "version": frozenset({"is", "is-not", "==", "!=", "<", "<=", ">", ">=", "in", "not-in", "matches"}) | UNARY,
    "strings": frozenset({"contains", "is", "is-not", "==", "!="}) | UNARY,
}
"""Operators for each type of fact. Match groups are strings."""

LIST_OPERATORS = frozenset({"in", "not-in"})
_NEGATED = {"is-not": "is", "!=": "==", "not-in": "in", "missing": "exists"}


class Leaf(msgspec.Struct, frozen=True):
    """One comparison with its result."""

    name: str
    truth: Truth
    text: str
    """The observation in words, such as ``number of visible GPUs: 2``."""


class Evaluation(msgspec.Struct, frozen=True):
    """The value of a condition, and the comparisons that decided it."""

    truth: Truth
    leaves: tuple[Leaf, ...]
    """The deciding comparisons; for None, those whose facts were not observed."""


def evaluate(condition: Condition, values: Values) -> Evaluation:
    """Return the truth of a validated `condition` over `values`."""
    if condition.negated is not None:
        inner = evaluate(condition.negated, values)
        return Evaluation(negation(inner.truth), inner.leaves)
    if condition.all is not None:
        return _combined([evaluate(part, values) for part in condition.all], conjunction)
    if condition.any is not None:
        return _combined([evaluate(part, values) for part in condition.any], disjunction)
    leaf = _leaf(condition, values)
    return Evaluation(leaf.truth, (leaf,))


def weighed(found: Evaluation, condition: Condition, values: Values, *, here: bool) -> Evaluation:
    """Return what `found`, the result of `condition` over `values`, says of a text: undecided where it rests on too little.

    What could be otherwise on the host of the text, unless it was written `here`, and what metadata leave unstated
    refute no text. The comparisons of `found` stay.
    """
    if found.truth is not False:
        return found
    weak = {"metadata"} if here else {"host", "metadata"}
    left = {name: value for name, value in values.items() if fact_source(name) not in weak}
    return found if evaluate(condition, left).truth is False else Evaluation(None, found.leaves)


def mentions(condition: Condition | None, fact: str) -> bool:
    """Whether a comparison of `condition` is with `fact`."""
    return fact in named(condition)


def named(condition: Condition | None) -> Iterator[str]:
    """Yield the names that comparisons of `condition` are with: facts, and groups of a text."""
    if condition is None:
        return
    if condition.fact is not None:
        yield condition.fact
    for part in (*(condition.all or ()), *(condition.any or ()), condition.negated):
        yield from named(part)


def confirms(asked: Confirmation, facts: Values) -> Evaluation:
    """Evaluate whether `facts` confirm a fault."""
    return evaluate(asked.when, _all_values(asked, facts))


def refutes(asked: Confirmation, facts: Values) -> bool:
    """Whether `facts` refute a text's fault."""
    values = _all_values(asked, facts)
    return weighed(evaluate(asked.when, values), asked.when, values, here=False).truth is False


def _all_values(asked: Confirmation, facts: Values) -> Values:
    # in this order: the texts of vars use groups and facts
    values: dict[str, FactValue] = {**facts, **asked.groups}
    return values | {name: fill(text, values) for name, text in asked.vars.items()}


def negation(truth: Truth) -> Truth:
    """Not; unknown stays unknown."""
    return None if truth is None else not truth


def conjunction(truths: Sequence[Truth]) -> Truth:
    """All: False as soon as one is False, else unknown if one is."""
    if any(truth is False for truth in truths):
        return False
    return None if any(truth is None for truth in truths) else True


def disjunction(truths: Sequence[Truth]) -> Truth:
    """Any: True as soon as one is True, else unknown if one is."""
    return negation(conjunction([negation(truth) for truth in truths]))


def _combined(parts: Sequence[Evaluation], combine: Callable[[Sequence[Truth]], Truth]) -> Evaluation:
    truth = combine([part.truth for part in parts])
    # only parts with the same value explain the result: of a false `all`, the false ones
    return Evaluation(truth, tuple(leaf for part in parts if part.truth is truth for leaf in part.leaves))


def _leaf(condition: Condition, values: Values) -> Leaf:
    name, operator = condition.fact or "", condition.operator or "exists"
    if not _was_observed(name, values):
        return Leaf(name, None, f"{described(name)}: not observed")
    observed = values.get(name)
    wanted, missing = (condition.value, None) if operator == "matches" else _wanted(condition.value, values)
    if missing:
        return Leaf(name, None, f"{described(missing)}: not observed")
    kind = fact_kind(name)
    positive = _NEGATED.get(operator, operator)
    truth = _positive(positive, "string" if kind is None else kind.type, observed, wanted)
    # negated in three values: `is-not` of an unknown comparison stays unknown
    if positive != operator:
        truth = negation(truth)
    return Leaf(name, truth, _observation(name, observed, values))


def _was_observed(name: str, values: Values) -> bool:
    """Whether `name` was observed, with a value or as absent."""
    # `values` has facts of installed distributions only: with the list complete, any other package is absent
    return name in values or (LISTED_PACKAGES in values and package_fact(name))


def _observation(name: str, observed: FactValue, values: Values) -> str:
    """Describe an observation, with the value of its detail fact if there is one."""
    found = "absent" if observed is None else shown(observed) or "empty"
    kind = fact_kind(name)
    detail = values.get(kind.detail) if kind is not None and kind.detail is not None else None
    more = f": {shown(detail)}" if detail else ""
    return f"{described(name)}: {found}{more}"


def _wanted(value: FactValue, values: Values) -> tuple[FactValue, str | None]:
    """Return the value to compare with, placeholders filled in, or the name of an unobserved placeholder."""
    texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
    for text in texts:
        unknown = next((name for name in placeholders(text) if values.get(name) is None), None)
        if unknown is not None:
            return None, unknown
    if isinstance(value, str):
        return fill(value, values), None
    return (tuple(fill(text, values) for text in value) if isinstance(value, tuple) else value), None


def _positive(operator: str, kind: FactType, observed: FactValue, wanted: FactValue) -> Truth:
    if operator == "exists":
        return observed is not None and observed != ()
    # observed to be absent: equal to no value, and without an order
    if observed is None:
        return False if operator in {"is", "==", "in"} else None
    if operator in {"is", "==", "in"}:
        options = wanted if operator == "in" and isinstance(wanted, tuple) else (wanted,)
        return disjunction([_equal(operator, kind, observed, option) for option in options])
    if operator == "contains":
        return str(wanted) in observed if isinstance(observed, str | tuple) else None
    if operator == "matches":
        return compiled(str(wanted)).search(str(observed).encode()) is not None
    return _ordered(operator, kind, observed, wanted)


def _equal(operator: str, kind: FactType, observed: FactValue, wanted: FactValue) -> Truth:
    if kind == "version":
        # `is` compares the local label too (2.5.1+cu124 is not 2.5.1), `==` compares as a requirement does
        return _same_version(str(observed), str(wanted)) if operator == "is" else _fits("==", observed, wanted)
    if kind == "strings" and isinstance(wanted, str):
        return observed == (wanted,)
    # the types first, since True == 1 in Python
    return type(observed) is type(wanted) and observed == wanted


def _ordered(operator: str, kind: FactType, observed: FactValue, wanted: FactValue) -> Truth:
    if kind == "version":
        return _fits(operator, observed, wanted)
    if not isinstance(observed, int | float) or not isinstance(wanted, int | float):
        return None
    comparisons = {
        "<": observed < wanted, "<=": observed <= wanted, ">": observed > wanted, ">=": observed >= wanted,
    }  # fmt: skip
    return comparisons[operator]


def _same_version(observed: str, wanted: str) -> Truth:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(observed) == Version(wanted)
    except InvalidVersion:
        return None


def _fits(operator: str, observed: FactValue, wanted: FactValue) -> Truth:
    """Compare as a requirement does: a local label counts only if the wanted version has one."""
    from packaging.specifiers import InvalidSpecifier, Specifier
    from packaging.version import InvalidVersion, Version

    try:
        # prereleases=True: an installed nightly build must compare too, although a resolver would skip it
        return Specifier(f"{operator}{wanted}").contains(Version(str(observed)), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return None
