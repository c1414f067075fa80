"""What stands in for RE2 in the browser finds what RE2 finds."""

from __future__ import annotations

from typing import Any

import pytest
import re2

from envmedic.playbook.matching import forms, patterns
from tests.docs.howto import shipped
from tests.docs.paste.in_browser import re2 as stand_in

SIGNATURES = [(item.pattern, item.sample) for loaded in shipped() for item in loaded.playbook.signatures]


def _found(program: Any, text: str) -> Any:
    match = program.search(text.encode())
    return match and (match.start(), match.groups())


@pytest.mark.parametrize("pattern", [*(pattern for pattern, _ in SIGNATURES), *forms.patterns()])
def test_every_pattern_has_the_same_groups(pattern: str) -> None:
    program = stand_in.compile(pattern.encode(), stand_in.Options())
    assert program.groups == patterns.compiled(pattern).groups
    assert program.groupindex.keys() == patterns.group_numbers(pattern).keys()


def test_every_signature_finds_the_same_in_its_sample() -> None:
    options = stand_in.Options()
    options.case_sensitive = False
    for pattern, sample in SIGNATURES:
        program = stand_in.compile(pattern.encode(), options)
        for line in (
            *sample.splitlines(),
            f"[rank0]: {sample}".swapcase() if sample.isascii() else sample,
            f"{sample} \n",
        ):
            assert _found(program, line) == _found(patterns.compiled(pattern), line), (pattern, line)


def test_every_form_finds_the_same_in_all_samples() -> None:
    options = stand_in.Options()
    options.case_sensitive = False
    lines = [line for _, sample in SIGNATURES for line in sample.splitlines()]
    for pattern in forms.patterns():
        program, expected = stand_in.compile(pattern.encode(), options), patterns.compiled(pattern)
        for line in lines:
            assert _found(program, line) == _found(expected, line), (pattern, line)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("ends$", "ends\n"),
        (r"ends\z", "ends\n"),
        (r"\Qa.b\E+", "a.bb"),
        (r"\x{e9}t", "été"),
        (r"[\$z]", "$"),
        ("(?m)ends$", "ends\nx"),
    ],
)
def test_what_the_syntaxes_write_differently(pattern: str, text: str) -> None:
    assert _found(stand_in.compile(pattern.encode(), stand_in.Options()), text) == _found(
        re2.compile(pattern.encode()), text
    )
