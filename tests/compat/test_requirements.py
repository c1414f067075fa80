from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envmedic.compat.installed_requirements import Demand, demands, markers, satisfying
from envmedic.model.facts import Distribution, Environment, Host, Interpreter, Origin

SITE = "lib/python3.11/site-packages"


def installed(name: str, version: str, *requires: str, outside: bool = False) -> Distribution:
    return Distribution(
        name=name, version=version, metadata_path=f"{SITE}/{name}-{version}.dist-info", site=SITE,
        origin=Origin(kind="index"), requires=requires, outside_prefix=outside,
    )  # fmt: skip


def environment(*items: Distribution) -> Environment:
    python = Interpreter(path="/env/bin/python", starts=True, version="3.11.7", implementation="cpython")
    return Environment(prefix="/env", real_prefix="/env", kind="venv", interpreter=python, distributions=items)


def asked(*items: Distribution) -> tuple[Demand, ...]:
    return demands(environment(*items), markers(environment(), Host()))


def test_what_is_asked_here_is_held_against_what_is_there() -> None:
    app = installed(
        "app", "1.0", "Torch (>=2.0)", "numpy>=1.26,<2; python_version >= '3.9'", "pywin32; sys_platform == 'win32'",
        "pytest; extra == 'test'", "lib[fast]~=1.2", "odd @ https://example.org/odd.whl", "not a requirement!",
    )  # fmt: skip
    found = asked(app, installed("numpy", "2.2.6"), installed("torch", "2.5.1+cu124"))
    assert [(item.name, item.specifier, item.found, item.met) for item in found] == [
        ("torch", ">=2.0", "2.5.1+cu124", True),
        ("numpy", ">=1.26,<2", "2.2.6", False),
        ("lib", "~=1.2", None, False),
    ]
    assert found[1].unmet().sentence() == "app 1.0 requires numpy>=1.26,<2, numpy 2.2.6 is installed"


def test_copies_outside_ask_nothing_and_of_two_copies_the_first_counts() -> None:
    found = asked(
        installed("app", "2.0", "lib"), installed("app", "1.0", "other"), installed("system", "1", "more", outside=True)
    )
    assert [item.name for item in found] == ["lib"]


@pytest.mark.parametrize(
    ("specifiers", "expected"),
    [
        ((">=0.20,<0.21", ""), "lib<0.21,>=0.20"),
        (("<4,>=3.20.2", "!=3.20.2"), "lib!=3.20.2,<4,>=3.20.2"),
        (("==1.13.1", ">=1.12"), "lib==1.13.1,>=1.12"),
        (("~=2.1", "==2.*"), "lib==2.*,~=2.1"),
        ((">1,<1.2",), "lib<1.2,>1"),
        ((">=2", "<2"), None),
        (("==1.0", "==1.1"), None),
        ((), "lib"),
    ],
)
def test_one_requirement_fulfils_all_or_there_is_none(specifiers: tuple[str, ...], expected: str | None) -> None:
    by = installed("app", "1.0")
    every = [Demand(by, "lib", specifier, "1.0") for specifier in specifiers]
    assert satisfying("lib", every) == expected


VERSIONS = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: f"{pair[0]}.{pair[1]}")
PARTS = st.tuples(st.sampled_from([">=", "<", "<=", "!=", "==", "~="]), VERSIONS).map("".join)


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_where_a_version_fulfils_all_there_is_a_requirement(parts: list[str]) -> None:
    every = [Demand(installed("app", "1.0"), "lib", part, None) for part in parts]
    candidates = [f"{major}.{minor}" for major in range(5) for minor in range(5)]
    if any(version in SpecifierSet(",".join(parts)) for version in candidates):
        assert satisfying("lib", every) is not None
