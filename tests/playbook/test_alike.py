"""What lines that differ in numbers and addresses have in common, and what patterns make of that."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.playbook.matching import alike
from envmedic.playbook.matching.lines import cleaned, readings
from envmedic.playbook.matching.patterns import compiled


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"rank 12 of 1000, 3.5 s", b"rank 00 of 0000, 0.0 s"),
        (b"comm 0x7f3a91cd is broken", b"comm 0x00000000 is broken"),
        (b"comm 0x7f3a91cdef01, 0xab", b"comm 0x000000000000, 0x00"),
        (b"0xdeadbeefs and 0xFACE9", b"0xdeadbeefs and 0xFACE0"),
        (b"dead beef", b"dead beef"),
        (b"\xff\xfe9\n8", b"\xff\xfe0\n0"),
    ],
)
def test_numbers_and_addresses_become_zeros(line: bytes, expected: bytes) -> None:
    assert alike.masked(line) == expected


@given(
    st.lists(st.sampled_from([b"0x", b"7f", b"abcdef", b"12", b" ", b"\n", b"x", b"_", b"G", b"0xabcdefabcdef"])).map(
        b"".join
    )
)
def test_masking_keeps_every_length_and_is_the_same_for_lines_and_for_whole_texts(text: bytes) -> None:
    assert len(alike.masked(text)) == len(text)
    assert alike.masked(text).split(b"\n") == [alike.masked(line) for line in text.split(b"\n")]
    assert alike.masked(alike.masked(text)) == alike.masked(text)


@pytest.mark.parametrize(
    "line",
    [b"a\\u0031b", b"a\\x1b[31m", b"a\\033[1m", b"&#39;", b"&\\#39;", b"<h1>", b"</h1>", b"<\x1b[0mh1>", b"x:%20y"],
)
def test_digits_that_stand_for_characters_are_uncertain(line: bytes) -> None:
    assert alike.uncertain(alike.masked(line))


@pytest.mark.parametrize(
    "line", [b"rank 1: \\n2", b"in <module>", b"a & b", b"C:\\new\\t3", b"\x1b[31mno\x1b[0m 7", b"7%|#"]
)
def test_others_are_not(line: bytes) -> None:
    assert not alike.uncertain(alike.masked(line))


DIGITS = re.compile(rb"\d")
FORMS = st.sampled_from([
    "[rank{}]: oops {}", "2026-01-0{} 05:58:4{} oops", "{}: oops", "[{}.{}] oops", "#{} {} oops", "(Worker pid={}) oops {}",
    "E{}105 12:33:01.123456 4711 a/b.py:8{}] oops", "node-{} | oops 0x{}f", '{{"log":"oops {}\\n","time":"{}"}}', "| {} | oops {} |",
    "Nov  {} 12:33:0{} node-7 train.py[4711]: oops", "\x1b[3{}moops\x1b[{}m", "<b>oops {}</b> {}", "{}|oops", "oops {}% &amp; {}",
])  # fmt: skip


@given(FORMS, st.integers(0, 99999), st.integers(0, 99999))
def test_what_a_line_is_read_as_does_not_depend_on_its_digits(form: str, first: int, second: int) -> None:
    line = form.format(first, second).encode()
    if alike.uncertain(alike.masked(line)):
        return
    other = DIGITS.sub(b"4", line)
    shown = [(alike.masked(reading.text.encode()), reading.part) for reading in readings(line)]
    assert shown == [(alike.masked(reading.text.encode()), reading.part) for reading in readings(other)]
    assert alike.masked(cleaned(line).encode()) == alike.masked(cleaned(other).encode())


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"rank (?P<rank>\d+) of [0-9]{1,3}: .*\w[^:]", True),
        (r"(?i)no kernel image is available\b", True),
        (r"libcudart\.so\.1[12]", False),
        (r"error 80[34]\b", False),
        (r"[1-9]\d* bytes", False),
        (r"[[:digit:]]+ [[:alpha:]]", True),
        (r"\x31", False),
        (r"\Q1\E", False),
    ],
)
def test_patterns_that_tell_digits_apart_are_known(pattern: str, *, expected: bool) -> None:
    assert alike.indifferent(pattern) is expected


PATTERNS = st.sampled_from([
    r"error 80[34]\b", r"(?:30|804)+ left", r"\d{3}5 of x{2}", r"[a-f]+d is bad", r"(?i)FACE\w*", r"x.+9$", r"^[1-9]\d* at",
    r"(?:a|b\d)?7(?P<n>\d|c)8", r"\b0x[0-9a-f]{4,}d\b", r"(?:\d\d){2}1", r"e[^1]?2", r"(?:(?:1|2)3)*4 end", r"so\.1[12]",
])  # fmt: skip
PIECES = (
    "error ", "80", "3", "4", " left", "5 of xx", "0x", "7f3ad", " is bad", "face", "12", "9", " at", "a", "78", "so.1", "2",
    "\u00e9", "1234", " end", "e", ".",
)  # fmt: skip
WORDS = st.lists(st.sampled_from(PIECES)).map("".join)


@given(PATTERNS, WORDS)
def test_no_match_is_lost_by_masking_or_shortening(pattern: str, text: str) -> None:
    found = compiled(pattern).search(text.encode())
    shape = alike.masked(text.encode()).decode()
    if found is None:
        return
    for short, line in ((False, shape), (True, alike.shortened(shape))):
        program = alike.widened(pattern, short=short)
        assert program is not None
        wide = program.search(line.encode())
        assert wide is not None
        assert short or wide.start() < found.start() or (wide.start() == found.start() and wide.end() >= found.end())


def test_a_pattern_that_is_not_followed_may_match_anything() -> None:
    assert alike.widened(r"\Qa.b\E", short=False) is None
