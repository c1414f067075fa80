"""Patterns of specs, of which a hostile package writes both sides."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.conda_meta import history, specs, versions
from envmedic.conda_meta.globs import expression, globs
from envmedic.model.conda import CondaPackage


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_globs_are_those_of_shells(pattern: str, value: str) -> None:
    assert globs(pattern, value) == fnmatch.fnmatchcase(value, pattern)


def test_a_glob_that_backtracking_would_never_finish() -> None:
    assert not globs("*a" * 500 + "b", "a" * 20_000)


def test_an_expression_that_backtracking_would_never_finish() -> None:
    package = CondaPackage(name="a", version="1", build="a" * 900 + "!", record="conda-meta/a.json")
    assert not specs.matches("a[build='^(a+)+$']", package)
    assert not versions.satisfies("a" * 900 + "!", "^(a+)+$")


def test_expressions_begin_where_the_text_does() -> None:
    assert expression("^1[.]2.*$", "1.25")
    assert not expression("^2.*$", "1.25")


@pytest.mark.parametrize("pattern", [r"^(?=a)$", r"^(a)\1$", "^($"])
def test_what_is_no_expression_is_told(pattern: str) -> None:
    package = CondaPackage(name="a", version="1", build="a", record="conda-meta/a.json")
    with pytest.raises(ValueError, match="regular expression"):
        specs.matches(f"a[build='{pattern}']", package)


@pytest.mark.parametrize("text", ["a" * 100_000, "a[" + "x" * 50_000, "[" * 50_000, "a " + "(" * 5000])
def test_specs_longer_than_any_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no spec"):
        specs.parse(text)


def test_nested_constraints_are_refused() -> None:
    with pytest.raises(ValueError, match=r"constraint|nested"):
        versions.satisfies("1", "(" * 1000)


def test_a_history_of_spaces_and_commas_is_read_soon() -> None:
    revision = "==> 2024 <==\n# cmd: conda install a\n# update specs: " + "a,=1" * 100_000 + "\n"
    assert history.read("==>" + " " * 200_000 + "x\n" + revision)[0].date == "2024"
