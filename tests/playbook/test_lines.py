from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.playbook.lines import LINE_LIMIT, WINDOW_OVERLAP, cleaned, segments, squeezed

MESSAGE = "RuntimeError: operator torchvision::nms does not exist"


@pytest.mark.parametrize(
    "line",
    [
        f"  {MESSAGE}  ",
        f"E       {MESSAGE}",
        f"> > {MESSAGE}",
        f"2024-11-05 12:33:01,123 {MESSAGE}",
        f"[2024-11-05T12:33:01.123456Z] {MESSAGE}",
        f"2024-11-05T12:33:01.123456789+01:00 stderr F {MESSAGE}",
        f"12:33:01.5 {MESSAGE}",
        f"Nov  5 12:33:01 node-7 train.py[4711]: {MESSAGE}",
        f"[rank0]: {MESSAGE}",
        f"[default3]: {MESSAGE}",
        f"[1,0]<stderr>:{MESSAGE}",
        f"(RayTrainWorker pid=4711, ip=10.0.0.7) {MESSAGE}",
        f"#12 34.567 {MESSAGE}",
        f"  123| {MESSAGE}",
        f"123: {MESSAGE}",
        f"│ {MESSAGE}        │",
        f"| {MESSAGE} |",
        f"\x1b[1;31m{MESSAGE}\x1b[0m",
        f"\x1b]0;a title\x07{MESSAGE}",
        "RuntimeError: operator \x1b]8;;http://x\x1b\\torchvision::nms\x1b]8;;\x1b\\ does not exist",
        f"2024-11-05 12:33:01 [rank0]: \x1b[31m│ {MESSAGE} │\x1b[0m",
        f"\x00\x07{MESSAGE}\x08",
    ],
)
def test_what_surrounds_a_message_is_removed(line: str) -> None:
    assert cleaned(line.encode()) == MESSAGE


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run \u2018a::b\u2019 with `c`", "run 'a::b' with 'c'"),
        (r"{\"error\": \"Could not run \'a\'\"}", '{"error": "Could not run \'a\'"}'),
        ("Could not run &#39;a&#39; &lt;x&gt; &amp;", "Could not run 'a' <x> &"),
        ("Fehler \xff\xfe".encode("latin-1").decode("latin-1"), "Fehler \xff\xfe"),
    ],
)
def test_quotes_that_were_replaced_on_the_way_are_put_back(line: str, expected: str) -> None:
    assert cleaned(line.encode()) == expected


def test_invalid_utf8_is_replaced() -> None:
    assert cleaned(b"a\xff\xfeb") == "a\ufffd\ufffdb"


def test_overwritten_progress_is_kept_as_segments() -> None:
    assert segments(b" 5%\r 50%\r\rerror: x\r") == [b" 5%", b" 50%", b"error: x"]


def test_a_long_line_is_cut_into_windows_that_overlap() -> None:
    line = bytes(index % 251 + 1 for index in range(300_000)).replace(b"\r", b"x")
    windows = segments(line)
    assert max(map(len, windows)) == LINE_LIMIT
    assert windows[0] + b"".join(window[WINDOW_OVERLAP:] for window in windows[1:]) == line


@given(st.binary(max_size=200))
def test_an_ascii_word_of_a_cleaned_line_survives_squeezing(line: bytes) -> None:
    text = cleaned(line)
    for word in text.split():
        if word.isascii() and word.isprintable():
            assert squeezed(word.encode()) in squeezed(line)


@pytest.mark.parametrize(
    "unit", [b"\x1b]", b"\x1b[", b"\x1b", b"&amp;", b"> ", b"12:33:01 ", b" |", b"\\'", b"| \x1b[0m"]
)
def test_hostile_lines_take_linear_time(unit: bytes) -> None:
    started = time.perf_counter()
    cleaned(unit * (LINE_LIMIT // len(unit)))
    squeezed(unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - started < 5
