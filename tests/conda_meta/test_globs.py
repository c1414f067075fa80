"""Patterns of specs, of which a hostile package writes both sides."""

from __future__ import annotations

import contextlib
import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.conda_meta import history, specs
from envmedic.installers.conda.configuration import spec_matching
from envmedic.model.conda import CondaPackage


def package(build: str, version: str = "1") -> CondaPackage:
    return CondaPackage(name="a", version=version, build=build, record="conda-meta/a.json")


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", min_size=1, max_size=12))
def test_globs_are_those_of_shells(pattern: str, value: str) -> None:
    assert spec_matching.matches(f"a[build='{pattern}']", package(value)) == fnmatch.fnmatchcase(value, pattern)


@pytest.mark.parametrize(
    "spec",
    [
        f"a[build='{'*a' * 400}b']",
        "a[build='^(a+)+$']",
        "a[build='^((a{1,30}){1,30}){1,30}b$']",
        r"a[build='^((a)+)+\2b$']",
        "a[version='^(1+)+$']",
    ],
)
@pytest.mark.parametrize("length", [63, 900, 20_000])
def test_patterns_that_backtracking_would_never_finish(spec: str, length: int) -> None:
    began = time.process_time()
    for found in (package("a" * length + "_"), package("a", "1" * length + "x")):
        with contextlib.suppress(ValueError):  # longer than conda allows, or no expression that is read
            assert not spec_matching.matches(spec, found)
    assert time.process_time() - began < 5


def test_expressions_begin_where_the_text_does() -> None:
    assert spec_matching.matches("a[build='^1[.]2.*$']", package("1.25"))
    assert not spec_matching.matches("a[build='^2.*$']", package("1.25"))


@pytest.mark.parametrize("pattern", [r"^(?=a)$", r"^(a)\1$", "^($"])
def test_what_is_no_expression_is_told(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"regular expression|regex"):
        spec_matching.matches(f"a[build='{pattern}']", package("a"))


@pytest.mark.parametrize("text", ["a" * 100_000, "a[" + "x" * 50_000, "[" * 50_000, "a " + "(" * 5000])
def test_specs_longer_than_any_are_none(text: str) -> None:
    for read in (specs.name_of, lambda spec: spec_matching.matches(spec, package("a"))):
        with pytest.raises(ValueError, match="is no spec"):
            read(text)


def test_nested_constraints_are_refused() -> None:
    with pytest.raises(ValueError, match="constraint"):
        spec_matching.matches("a " + "(" * 1000, package("a"))
    assert spec_matching.matches("a " + "(" * 500 + "1" + ")" * 500, package("a"))


def test_a_history_of_spaces_and_commas_is_read_soon() -> None:
    revision = "==> 2024 <==\n# cmd: conda install a\n# update specs: " + "a,=1" * 100_000 + "\n"
    assert history.read("==>" + " " * 200_000 + "x\n" + revision)[0].date == "2024"
