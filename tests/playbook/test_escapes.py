"""What is found past escapes in raw bytes is no less than what is found once they are taken away."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envmedic.playbook.matching import gate
from envmedic.playbook.matching.blocks import Block
from envmedic.playbook.matching.escapes import beyond
from envmedic.playbook.matching.gate import Gate, gate_pattern
from envmedic.playbook.matching.lines import views

ATOMS = (b"operator", b"nvcc", b"text<in")
PIECES = (
    *(atom[start : start + 1] for atom in ATOMS for start in range(len(atom))),
    *ATOMS, b"\n", b" ", b"\\", b"\\\\", b"\\n", b"\\r\\n", b"\\t", b"n", b"r", b"m", b"[", b"31m",
    b"\x1b", b"\x1b[0m", b"\x1b[38;5;1m", b"\\u001b", b"\\u001b[31m", b"\\x1b[0m", b"\\033[1m", b"\x1b]0;title\x07",
    b"\x1b]8;;http://x\x1b\\", b"\x1b(B", b"\\u0022", b"\\u003c", b"\\u003e", b"\\u0026", b"\\u006f", b"\\u005c", b"\\u002f",
    b"\\u0020", b"<", b">", b"</", b"<b>", b"</b>", b"<span class=x>", b"&", b"&#110;", b"&lt;", b"lt;", b"#", b"&quot;",
    b"&amp;", b";", b"u00", b"6f", b"span", b"<br", b"/", b"\x07",
)  # fmt: skip


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
@example(b"nv\\\x1b[0mncc")
@example(b"nv\\\\u001b[0m\\ncc")
@example(b"<sp\x1b[0man>nv</span>cc")
@example(b"\x1b]0;\\u001b[nvcc\x07")
@example(b"text\\u003cin")
def test_no_line_is_passed_over_because_of_escapes(content: bytes) -> None:
    if beyond().search(content) is not None:
        return
    program = GATE._past_escapes()
    told = {number for number, _ in gate._begun(program, content)}
    expected = {number for view in views(content) for number, _ in gate._begun(GATE._program, view)}
    assert expected <= told, (expected, told)


GATE = Gate(gate_pattern(ATOMS))


@pytest.mark.parametrize(
    "line",
    [
        b"\x1b[32mINFO\x1b[0m \x1b]8;;http://host\x1b\\step\x1b]8;;\x1b\\ 3",
        b'{"log":"[00:05\\u003c10:03] a \\u0026 b\\r\\n","stream":"stderr"}',
        b'{"msg":"\\u001b[33mline \\"1\\", in \\u003cmodule\\u003e\\u001b[0m\\nfor C:\\\\new"}',
        b"\\\\x1b[0m <module> a <object at 0x1> GET /?a=1&b=2",
    ],
)
def test_common_escapes_are_passed_over(line: bytes) -> None:
    assert beyond().search(line) is None


@pytest.mark.parametrize("line", [b"<b>a</b>", b"a<br/>", b"&lt;", b"&#39;", b"\\u0061", b"\\u0026amp;", b"\\\x1b[0mn"])
def test_what_makes_other_text_is_not(line: bytes) -> None:
    assert beyond().search(line) is not None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"\x1b[31mnv\x1b[1mcc\x1b[0m", True),
        (b"nv\\\\ncc", True),
        (b"&lt;nvcc", True),
        (b"n&#118;cc", True),
        (b"n\\u0076cc", True),
        (b"\x1b[0mnv cnc", False),
    ],
)
def test_large_contents_with_escapes_are_searched_like_small_ones(line: bytes, *, expected: bool) -> None:
    before = b"\x1b[32mINFO\x1b[0m step\\n 1\n" * 20_000
    found = GATE.begun(before + line + b"\nend\n")
    assert found == (((20_000, len(before)),) if expected else ())


def test_lines_begin_where_they_are_told_to() -> None:
    content = b"nvcc\n\nn<b>v</b>cc\nx\nnvcc"
    assert GATE.begun(content) == ((0, 0), (2, 6), (4, 20))
    assert GATE.begun(b"a\nnvcc nvcc\nb\nnvcc") == ((1, 2), (3, 14))


def test_a_match_may_start_on_the_lines_before() -> None:
    block = Block(lambda: 1, b"a\nbb\nccc\ndddd\n", 14, None)
    assert block.starting([(3, 9)]) == [(1, 2), (2, 5), (3, 9)]
    assert block.starting([(0, 0), (1, 2), (3, 9)]) == [(0, 0), (1, 2), (2, 5), (3, 9)]
    assert list(block.every_line()) == [(0, 0), (1, 2), (2, 5), (3, 9)]
    assert block.window(2) == (b"bb", b"ccc", b"dddd")
    assert block.window(9) == (b"dddd", b"")
    assert Block(lambda: 1, b"a\nbb\nccc", 2, 5).starting([(1, 2)]) == [(0, 0)]


def test_a_line_too_long_to_be_joined_stands_alone() -> None:
    long = b"x" * 70_000
    block = Block(lambda: 1, b"a\n" + long + b"\nb\n", 5 + len(long))
    assert block.window(0) == (b"a",)
    assert block.window(2) == (long,)
