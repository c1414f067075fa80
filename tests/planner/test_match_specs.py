"""Requirements as match specs: conda accepts what the requirement does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from envmedic.installers.conda.configuration import spec_matching
from envmedic.planner.conda_split import match_specs
from tests.planner.conda_support import package

VERSIONS = ("0.9", "1.0", "1.0.1", "1.2", "1.2.5", "1.26.4", "2.0", "2.0.1", "2.1.3", "3.0")


@given(
    parts=st.lists(
        st.tuples(st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), st.sampled_from(VERSIONS)),
        max_size=3,
        unique=True,
    ),
    wild=st.sampled_from(("", "==1.*", "!=1.2.*", "==2.0.*", "~=1.2", "~=1.2.3")),
)
def test_conda_and_pip_accept_the_same_versions(parts: list[tuple[str, str]], wild: str) -> None:
    text = ",".join([*(operator + version for operator, version in parts), *([wild] if wild else [])])
    requirement = Requirement(f"thing{text}")
    spec = match_specs.spec("thing", requirement)
    for version in VERSIONS:
        assert spec_matching.matches(spec, package("thing", version)) == requirement.specifier.contains(version), (
            spec,
            version,
        )


@pytest.mark.parametrize(
    ("requirement", "spec"),
    [
        ("torch==2.5.1+cu121", "pytorch ==2.5.1"),
        ("torch", "pytorch"),
        ("torch>=2,<3,!=2.1", "pytorch !=2.1,>=2,<3"),
    ],
)
def test_a_spec_reads_as_people_write_it(requirement: str, spec: str) -> None:
    assert match_specs.spec("pytorch", Requirement(requirement)) == spec


def test_a_pin_is_one_version() -> None:
    assert match_specs.pins(Requirement("torch==2.5.1+cu121"), "2.5.1")
    assert match_specs.pins(Requirement("a==1.0"), "1.0.0")
    assert not match_specs.pins(Requirement("a==1.0.*"), "1.0")
    assert not match_specs.pins(Requirement("a>=1.0"), "1.0")
    assert str(match_specs.joined("a", map(Requirement, ("a>=1", "a<2", "a>=1")))) == "a<2,>=1"
