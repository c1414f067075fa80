from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.playbook.matching.atoms import atoms
from envmedic.playbook.matching.lines import squeezed
from envmedic.playbook.matching.patterns import compiled


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("operator torchvision::nms", {b"operatortorchvision::nms"}),
        (r"custom C\+\+ ops", {b"customc++ops"}),
        ("Abcdef|ghijkl", {b"abcdef", b"ghijkl"}),
        ("(?:abc|efghij) klmn", {b"abcklmn", b"efghijklmn"}),
        ("(?P<name>abcdefg|hijklmn) o", {b"abcdefgo", b"hijklmno"}),
        ("(?i)HELLO world", {b"helloworld"}),
        ("(?i:HELLO)w", {b"hellow"}),
        ("(?:absent)?present", {b"present", b"absentpresent"}),
        ("(?:absent)*present", {b"present"}),
        ("(?:absent){0,3}present", {b"present"}),
        ("(?:twice){2}x", {b"twice"}),
        ("colou?r name", {b"colorname", b"colourname"}),
        (r"No module named '?(?P<name>(?:ab)?cd\.\w+)", {b"nomodulenamedcd", b"nomodulenamedabcd"}),
        (r"site-packages[/\\]{1,2}~\w", {b"sitepackages~"}),
        (r"[Ff]ailed in \d+ of x", {b"failedinofx"}),
        ("file (?:.* )?rarely seen", {b"rarelyseen"}),
        ("\u6bb5\u9519\u8bef", {b"\xe6\xe9\xe8"}),
        ("abcde+fgh", {b"abcde"}),
        (r"\bdets must", {b"detsmust"}),
        (r"[\]x]abcd[^]y]", {b"abcd", b"xabcd"}),
        (r"[[:alpha:]]abcd", {b"abcd"}),
        (r"\x41\x{42}\p{Lu}\pNabcd", {b"abcd"}),
        ("schräg: text", {b"schrg:text"}),
    ],
)
def test_the_literals_that_every_match_has_are_found(pattern: str, expected: set[bytes]) -> None:
    assert atoms(pattern) == frozenset(expected)


@pytest.mark.parametrize("pattern", ["a.b", "abcd|x", r"\d+", "(?:abcd)?", r"\Qabcdef\E", r"abcd\1", "[", "abcd)", ""])
def test_where_there_are_none_or_the_reader_is_unsure_there_is_no_prefilter(pattern: str) -> None:
    assert atoms(pattern) is None


@pytest.mark.parametrize(
    "listed", ["[a-c]", "[]-x]", "[+-]", r"[\[-a]", r"[\d-x]", "[^ab]", "[ab^]", r"[\x41b]", "[0-9,]"]
)
def test_members_of_a_class_are_alternatives(listed: str) -> None:
    found = atoms(f"first{listed}second")
    assert found is not None
    for member in filter(compiled(listed).search, (bytes([code]) for code in range(33, 127))):
        assert any(atom in squeezed(b"first" + member + b"second") for atom in found), member


LITERALS = st.text(string.ascii_letters + " :'", min_size=1, max_size=6)


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """A pattern with a text that it matches."""
    kind = draw(
        st.sampled_from(["literal", "sequence", "choice", "repeat", "class"] if depth else ["literal", "class"])
    )
    if kind == "literal":
        text = draw(LITERALS)
        return text, text
    if kind == "class":
        return "[a-z0-9_]", draw(st.sampled_from("az09_"))
    parts = draw(st.lists(patterns(depth=depth - 1), min_size=1, max_size=3))
    if kind == "sequence":
        return "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)
    if kind == "choice":
        return "(?:" + "|".join(pattern for pattern, _ in parts) + ")", draw(st.sampled_from(parts))[1]
    suffix, times = draw(
        st.sampled_from([("?", 0), ("?", 1), ("*", 0), ("*", 2), ("+", 1), ("+", 2), ("{2}", 2), ("{0,2}", 0)])
    )
    return f"(?:{parts[0][0]}){suffix}", parts[0][1] * times


@given(patterns(), st.text(string.printable, max_size=10), st.text(string.printable, max_size=10))
def test_whatever_a_pattern_matches_contains_one_of_its_atoms(case: tuple[str, str], before: str, after: str) -> None:
    pattern, text = case
    line = (before + text + after).encode()
    assert compiled(pattern).search(line) is not None
    found = atoms(pattern)
    assert found is None or any(atom in squeezed(line) for atom in found)
