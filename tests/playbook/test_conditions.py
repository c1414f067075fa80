from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.model.playbook import Condition, FactValue
from envmedic.model.vocabulary.names import FACTS
from envmedic.playbook.schema.conditions import OPERATORS, Truth, conjunction, disjunction, evaluate, negation

TRUTHS = st.lists(st.sampled_from([True, False, None]), max_size=6)
LEAVES: dict[Truth, Condition] = {
    True: Condition(fact="gpu.count", operator="==", value=1),
    False: Condition(fact="gpu.count", operator="==", value=2),
    None: Condition(fact="torch.version", operator="exists"),
}
VALUES: dict[str, FactValue] = {"gpu.count": 1}


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[Condition, Truth]:
    """A condition with the truth that Kleene's tables give it."""
    kind = draw(st.sampled_from(["leaf", "all", "any", "not"] if depth else ["leaf"]))
    if kind == "leaf":
        truth = draw(st.sampled_from([True, False, None]))
        return LEAVES[truth], truth
    if kind == "not":
        inner, truth = draw(conditions(depth=depth - 1))
        return Condition(negated=inner), None if truth is None else not truth
    parts = draw(st.lists(conditions(depth=depth - 1), min_size=1, max_size=3))
    order = {False: 0, None: 1, True: 2}
    least, most = (pick((truth for _, truth in parts), key=order.__getitem__) for pick in (min, max))
    if kind == "all":
        return Condition(all=tuple(part for part, _ in parts)), least
    return Condition(any=tuple(part for part, _ in parts)), most


@given(conditions())
def test_conditions_follow_kleenes_tables(case: tuple[Condition, Truth]) -> None:
    condition, truth = case
    evaluation = evaluate(condition, VALUES)
    assert evaluation.truth is truth
    assert evaluation.leaves


@given(conditions())
def test_the_leaves_told_decide_alone(case: tuple[Condition, Truth]) -> None:
    condition, truth = case
    told = {leaf.name for leaf in evaluate(condition, VALUES).leaves}
    if truth is not None:
        assert told == {"gpu.count"}, "only what was observed decides"


@given(TRUTHS)
def test_de_morgan(truths: list[Truth]) -> None:
    assert negation(conjunction(truths)) is disjunction([negation(truth) for truth in truths])
    assert negation(disjunction(truths)) is conjunction([negation(truth) for truth in truths])


@given(TRUTHS, TRUTHS)
def test_conjunction_and_disjunction_are_associative_and_commutative(left: list[Truth], right: list[Truth]) -> None:
    for combine in (conjunction, disjunction):
        assert combine(left + right) is combine(right + left)
        assert combine(left + right) is combine([combine(left), combine(right)])


@given(TRUTHS)
def test_knowing_more_never_overturns_what_was_known(truths: list[Truth]) -> None:
    for combine in (conjunction, disjunction):
        before = combine(truths)
        for known in (True, False):
            after = combine([known if truth is None else truth for truth in truths])
            assert before is None or before is after


def truth_of(fact: str, operator: str, value: object, observed: FactValue) -> Truth:
    condition = msgspec.convert({"fact": fact, "operator": operator, "value": value}, Condition)
    return evaluate(condition, {fact: observed}).truth


@pytest.mark.parametrize(
    ("observed", "operator", "value", "expected"),
    [
        ("2.10.0", ">", "2.9", True),  # as text it would be less
        ("2.5.1+cu124", "==", "2.5.1", True),
        ("2.5.1+cu124", "==", "2.5.1+cpu", False),
        ("2.5.1+cu124", "is", "2.5.1", False),
        ("2.5.1+cu124", "is", "2.5.1+cu124", True),
        ("2.5.1+cu124", "<=", "2.5.1", True),
        ("2.5.1", "==", "2.5.*", True),
        ("2.5.1", "!=", "2.5.*", False),
        ("2.6.0.dev20240101", ">=", "2.5", True),
        ("2.5.1", "in", ("2.4.1", "2.5.1"), True),
        ("2.5.1", "not-in", ("2.4.1", "2.5.0"), True),
        ("2.5.1", "in", ("2.4.1",), False),
        ("a version that cannot exist", ">", "2.5", None),
        ("2.5.1", "matches", r"^2\.", True),
    ],
)
def test_versions_compare_as_versions(observed: str, operator: str, value: object, expected: Truth) -> None:
    assert truth_of("torch.version", operator, value, observed) is expected


@pytest.mark.parametrize(
    ("fact", "observed", "operator", "value", "expected"),
    [
        ("gpu.count", 2, ">", 1, True),
        ("gpu.count", 2, "<=", 1, False),
        ("gpu.count", 1, "is", 1, True),
        ("torch.cuda-build", True, "is", True, True),
        ("torch.cuda-build", False, "is-not", True, True),
        ("torch.variant", "cu124", "matches", "^cu1", True),
        ("torch.variant", "cu124", "contains", "u12", True),
        ("torch.variant", "cu124", "in", ("cpu", "cu124"), True),
        ("gpu.capabilities", ("8.0", "9.0"), "contains", "9.0", True),
        ("gpu.capabilities", ("8.0", "9.0"), "contains", "9", False),
        ("gpu.capabilities", ("9.0",), "is", ("9.0",), True),
        ("gpu.capabilities", (), "exists", None, False),
        ("gpu.capabilities", ("9.0",), "missing", None, False),
    ],
)
def test_other_types_compare_by_their_kind(
    fact: str, observed: FactValue, operator: str, value: object, expected: Truth
) -> None:
    assert truth_of(fact, operator, value, observed) is expected


def test_what_was_not_observed_is_unknown_and_what_is_absent_is_not() -> None:
    for operator in ("exists", "missing", "==", "!=", "<"):
        value = None if operator in {"exists", "missing"} else "2.5"
        condition = msgspec.convert({"fact": "torch.version", "operator": operator, "value": value}, Condition)
        assert evaluate(condition, {}).truth is None
    expected = {"exists": False, "missing": True, "==": False, "is": False, "!=": True, "is-not": True, "<": None}
    for operator, truth in expected.items():
        assert truth_of("torch.version", operator, None if operator in {"exists", "missing"} else "2.5", None) is truth


def test_a_fact_can_be_compared_with_another_fact() -> None:
    condition = Condition(fact="torchvision.variant", operator="is", value="{torch.variant}")
    values: dict[str, FactValue] = {"torchvision.variant": "cpu", "torch.variant": "cu124"}
    assert evaluate(condition, values).truth is False
    assert evaluate(condition, {"torchvision.variant": "cpu"}).truth is None
    assert evaluate(condition, {**values, "torchvision.variant": "cu124"}).truth is True


def test_a_group_of_the_match_can_be_compared() -> None:
    condition = Condition(fact="operator", operator="is", value="torchvision::nms")
    assert evaluate(condition, {"operator": "torchvision::nms"}).truth is True
    assert evaluate(condition, {}).truth is None


def test_evidence_says_what_was_observed_with_its_detail() -> None:
    condition = Condition(fact="torchvision.accepts-torch", operator="is", value=False)
    values: dict[str, FactValue] = {"torchvision.accepts-torch": False, "torchvision.requires-torch": "torch==2.3.1"}
    (leaf,) = evaluate(condition, values).leaves
    assert leaf.text == "torchvision: whether its own requirement on torch accepts the installed one: no: torch==2.3.1"


@given(st.sampled_from(sorted(FACTS)), st.data())
def test_every_operator_of_a_type_gives_a_truth_for_its_values(name: str, data: st.DataObject) -> None:
    kind = FACTS[name].type
    samples: dict[str, FactValue] = {
        "bool": True, "int": 3, "string": "text", "version": "2.5.1", "strings": ("a", "b"),
    }  # fmt: skip
    operator = data.draw(st.sampled_from(sorted(OPERATORS[kind])))
    wanted: object = {"in": ("2.5.1",), "not-in": ("2.5.1",), "exists": None, "missing": None}.get(
        operator, "2.5" if kind == "strings" else samples[kind]
    )
    assert truth_of(name, operator, wanted, samples[kind]) in {True, False}


PACKAGE_LEAVES: list[tuple[Condition, Truth, Truth]] = [
    (Condition(fact="package.tokenizers.version", operator="exists"), True, False),
    (Condition(fact="package.tokenizers.version", operator="missing"), False, True),
    (Condition(fact="package.tokenizers.version", operator="<", value="0.21"), True, None),
    (Condition(fact="package.tokenizers.version", operator="==", value="0.20.*"), True, False),
    (Condition(fact="package.tokenizers.owner", operator="is", value="pip"), True, False),
]


@pytest.mark.parametrize(("condition", "installed", "absent"), PACKAGE_LEAVES)
def test_a_distribution_that_was_not_found_is_absent_rather_than_unobserved(
    condition: Condition, installed: Truth, absent: Truth
) -> None:
    there: dict[str, FactValue] = {
        "env.packages": ("tokenizers",),
        "package.tokenizers.version": "0.20.3",
        "package.tokenizers.owner": "pip",
    }
    assert evaluate(condition, there).truth is installed
    assert evaluate(condition, {"env.packages": ()}).truth is absent
    assert evaluate(condition, {}).truth is None, "no environment was observed"
