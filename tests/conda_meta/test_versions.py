"""Versions and constraints are read as conda reads them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envmedic.installers.conda.configuration import spec_matching
from envmedic.model.conda import CondaPackage
from tests.conda_meta.conftest import Conda

# Versions in conda's order, from its documentation: each comes before the next.
_ASCENDING = [
    "0.4", "0.4.1.rc", "0.4.1", "0.5a1", "0.5b3", "0.5C1", "0.5", "0.9.6", "0.960923", "1.0", "1.1dev1", "1.1_",
    "1.1a1", "1.1.dev1", "1.1.a1", "1.1.0rc1", "1.1.0", "1.1.0post1", "1.1post1", "1996.07.12", "1!0.4.1",
    "1!3.1.1.6", "2!0.4.1",
]  # fmt: skip
_PARTS = st.sampled_from(["0", "1", "2", "10", "3", "a", "rc1", "dev", "post", "1a", "2post1", "b2", "2024a", ""])
_VERSIONS = st.builds(
    lambda epoch, parts, joint, local, tail: f"{epoch}{joint.join(parts)}{local}{tail}",
    st.sampled_from(["", "", "", "1!", "0!", "x!"]),
    st.lists(_PARTS, min_size=1, max_size=4),
    st.sampled_from([".", "_", "-"]),
    st.sampled_from(["", "", "+cu121", "+cpu", "+1.2", "+"]),
    st.sampled_from(["", "", ".0"]),
).filter(lambda text: not re.search(r"^([0-9]+!)?[_-]|[_-](\+|$)", text))
"""Without an underscore or a hyphen, which conda reads as an underscore, at the end: py-rattler places it before the
letters that it follows, and conda after; and without one at the start, which conda takes for an empty first part, and
py-rattler refuses."""
_TERMS = st.builds(
    lambda operator, version, star: f"{operator}{version}{star if operator in {'', '!='} else ''}",
    st.sampled_from(["", "", "=", "==", "!=", ">=", "<=", "<", ">", "=>"]),
    st.sampled_from(["1", "1.2", "1.2.3", "2.0a1", "2", "10", "1.2+cu121"]),
    st.sampled_from(["", "", ".*"]),
) | st.sampled_from(["*", "1*", "1.2*", "=1.2.*"])
"""py-rattler reads stars behind other operators otherwise than conda, which warns of them."""
_COMPATIBLE = st.sampled_from(["~=1.2", "~=1.2.3", "~=2.0a1", "~=1.2.*"])
"""A version without a dot is no series to be compatible with: conda says so only when it comes to it."""
_CONSTRAINTS = st.recursive(
    _TERMS | _COMPATIBLE,
    lambda inner: st.builds(
        lambda items, joint, around: around[0] + joint.join(items) + around[1],
        st.lists(inner, min_size=1, max_size=3),
        st.sampled_from([",", "|", ", "]),
        st.sampled_from([("", ""), ("(", ")")]),
    ),
    max_leaves=4,
)
_OFTEN = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def satisfies(version: str, constraint: str) -> bool:
    """Whether a package of that version is what ``a[version=…]`` asks for."""
    return spec_matching.matches(f"a[version='{constraint}']", CondaPackage(name="a", version=version, build="0"))


def compare(one: str, other: str) -> int:
    """Negative, zero or positive, as `one` comes before, with or after `other`."""
    return satisfies(one, f">{other}") - satisfies(one, f"<{other}")


@pytest.mark.parametrize(("earlier", "later"), list(pairwise(_ASCENDING)))
def test_documented_order(earlier: str, later: str) -> None:
    assert compare(earlier, later) < 0 < compare(later, earlier)


@pytest.mark.parametrize(("one", "other"), [("1.1", "1.1.0"), ("1.1.dev1", "1.1.0dev1"), ("0.4.1.rc", "0.4.1.RC")])
def test_documented_equals(one: str, other: str) -> None:
    assert compare(one, other) == 0


@_OFTEN
@given(one=_VERSIONS, other=_VERSIONS)
def test_order_is_condas(conda: Conda, one: str, other: str) -> None:
    try:
        ours: int | None = compare(one, other)
    except ValueError:
        ours = None
    theirs = conda.order(one, other)
    assert theirs is None or ours == theirs  # py-rattler reads more


@_OFTEN
@given(version=st.sampled_from(["1", "1.2", "1.2.3", "1.2.0", "1.20", "2.0", "2.0a1", "1.2+cu121", "10.1", "3"]),
       constraint=_CONSTRAINTS)  # fmt: skip
def test_constraints_are_condas(conda: Conda, version: str, constraint: str) -> None:
    try:
        ours: bool | None = satisfies(version, constraint)
    except ValueError:
        ours = None
    theirs = conda.satisfies(version, constraint)
    assert theirs is None or ours == theirs  # py-rattler reads more


@pytest.mark.parametrize("constraint", ["", ">=", "1.2,,3", "(1.2", "1.2)", "^1.2", "^[$", "<>1", "^1$"])
def test_what_is_no_constraint_is_refused(constraint: str) -> None:
    with pytest.raises(ValueError, match=r"constraint|operator|expression"):
        satisfies("1.2", constraint)
