from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.playbook.matching.lines import (
    LINE_LIMIT,
    WINDOW_OVERLAP,
    cleaned,
    masked,
    passing,
    readings,
    segment_readings,
    segments,
    squeezed,
    squeezed_literal,
    suspicious_segments,
)


def texts(line: bytes) -> list[str]:
    return [reading.text for reading in readings(line)]


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
        f"ERROR 05-07 05:58:46 core.py:291] {MESSAGE}",
        f"ERROR 05-07 05:58:46 [core.py:291] {MESSAGE}",
        f"(EngineCore_0 pid=4711) ERROR 11-05 12:33:01 [core.py:291] {MESSAGE}",
        f"E1105 12:33:01.123456 4711 site-packages/torch/distributed/elastic/api.py:826] {MESSAGE}",
        f"[rank0]:[E1105 12:33:01.123456789 ProcessGroupNCCL.cpp:542] {MESSAGE}",
        f"[ERROR|trainer.py:291] 2024-11-05 12:33:01,123 >> {MESSAGE}",
        f"[2024-11-05 12:33:01,123] [ERROR] [launch.py:321:sigkill_handler] {MESSAGE}",
        f"2024-11-05 12:33:01,123 - root - ERROR - {MESSAGE}",
        f"2024-11-05 12:33:01.123 | ERROR    | __main__:main:12 - {MESSAGE}",
        f"ERROR:root:{MESSAGE}",
        f"trainer-1  | {MESSAGE}",
        f"2024-11-05T12:33:01.1234567Z ##[error]{MESSAGE}",
        f"[   12.345678] {MESSAGE}",
        f"- {MESSAGE}",
        f"### {MESSAGE}",
        f"> * {MESSAGE}",
        f"----> 1 {MESSAGE}",
        '{"log":"' + MESSAGE + '\\n","stream":"stderr","time":"2024-11-05T12:33:01.123456789Z"}',
        '{"log":"\\u001b[31m' + MESSAGE + '\\u001b[0m\\r\\n","stream":"stderr","time":"2024-11-05T12:33:01Z"}',
        f"<code>{MESSAGE}</code><br>",
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
        ("&#x27;a&#34; &#8217;", "'a\" &#8217;"),
        ("undefined symbol\uff1a _Z1\uff08x\uff09", "undefined symbol: _Z1(x)"),
        ("\u00ab a \u00bb\u202f: \u2014gpu\u2013arch \u200bx", '" a " : --gpu-arch x'),
        ("\\u003cx\\u003e \\u0026 \\u0027", "<x> & '"),
        ("std::vector<a> and b<c>", "std::vector<a> and b<c>"),
        ("Fehler \xff\xfe".encode("latin-1").decode("latin-1"), "Fehler \xff\xfe"),
    ],
)
def test_quotes_that_were_replaced_on_the_way_are_put_back(line: str, expected: str) -> None:
    assert cleaned(line.encode()) == expected


def test_invalid_utf8_is_replaced() -> None:
    assert cleaned(b"a\xff\xfeb") == "a\ufffd\ufffdb"


def test_a_text_inside_of_json_is_read_as_a_whole_and_line_by_line() -> None:
    line = rb'{"error": "Traceback:\n  File \"x.py\", line 1\nImportError: undefined symbol: _Z1\n"}'
    found = texts(line)
    assert "ImportError: undefined symbol: _Z1" in found
    assert 'File "x.py", line 1' in found
    assert any("line 1 ImportError: undefined" in text for text in found)
    assert r"C:\new\torch\x.dll is missing" in texts(rb"C:\new\torch\x.dll is missing")
    assert "C:\\a\\torch\\x.dll state_dict" in texts(rb"C:\\a\\torch\\x.dll state\_dict")


def test_a_message_in_an_address_is_read_as_it_was_written() -> None:
    line = b"https://search.example/?q=undefined%20symbol:%20%22f(x)%22"
    assert 'https://search.example/?q=undefined symbol: "f(x)"' in [reading.text for reading in readings(line)]


def test_utf_16_that_was_copied_as_bytes_is_read_as_text() -> None:
    said = "2026-11-28 [E:boxes, lid.cc:18] FAIL : LoadLibrary failed"
    assert any(said in text for text in texts(b"this one: " + " ".join(said).encode()))
    assert texts(b"0 1 1 0 1 a b c") == ["0 1 1 0 1 a b c"], "a row of a few letters is what it is"


def test_cells_of_a_table_are_read_on_their_own() -> None:
    assert "ImportError: x" in texts(b"| 1 | ImportError: x | pip install y |")


WARNINGS = (
    "/x/y.py:13: UserWarning: oops",
    "WARNING 05-07 05:58:46 [x.py:1] oops",
    "2024-11-05 12:33:01,123 - root - WARNING - oops",
    "[W socket.cpp:663] oops",
    "[rank1]:[W1105 12:33:01.123456789 socket.cpp:663] oops",
    "W0731 10:11:12.131 oops",
    "cc1plus: warning: oops",
    "(12): warning #177-D: oops",
    "WARNING[XFORMERS]: oops",
    "ERROR: pip's dependency resolver does not currently take into account oops",
    '{"level": "warning", "msg": "oops"}',
    '{"asctime": "2026-01-05 05:58:46", "levelname": "WARNING", "message": "oops"}',
    'time="2026-01-05T05:58:46Z" level=warning msg="oops"',
    "2026-01-05T05:58:46Z [warning  ] oops",
    "2026-01-05 05:58:46.123 | WARNING  | my.module:load:12 - oops",
    "W0105 05:58:46.123456 140000 x.py:12] oops",
    "WARNING:absl:oops",
    "2026-01-05 05:58:46.123456: W tensorflow/core/x.cc:64] oops",
    "01/05/2026 05:58:46 - WARNING - accelerate.utils - oops",
    "[rank: 0] Warning: oops",
    "[2026-01-05 05:58:46,123] [WARNING] [x.py:12:load] oops",
    "svc-1  | WARNING: oops",
    "svc-1  | W0105 05:58:46.123456 140000 x.py:12] oops",
)


@pytest.mark.parametrize("line", WARNINGS)
def test_programs_go_on_after_a_warning(line: str) -> None:
    assert passing(line.encode())


@pytest.mark.parametrize(
    "line",
    ["ImportError: oops", "ERROR 05-07 05:58:46 [x.py:1] oops", "E0731 10:11:12.131 oops", "raise Warning(oops)",
     "RuntimeError: INFOrmation is missing", "[E ProcessGroupNCCL.cpp:1] oops", "see the warnings above: oops",
     "svc-1  | E0612 05:58:46.123456 140000 x.py:12] oops", "svc-1  | ERROR: oops", 'level=error msg="oops"',
     "2026-01-05 05:58:46.123456: E tensorflow/core/x.cc:64] oops", "2026-01-05T05:58:46Z [error    ] oops",
     "2026-01-05 05:58:46.123 | ERROR    | my.module:load:12 - oops"],
)  # fmt: skip
def test_and_not_after_an_error(line: str) -> None:
    assert not passing(line.encode())


def test_overwritten_progress_is_kept_as_segments() -> None:
    assert segments(b" 5%\r 50%\r\rerror: x\r") == [b" 5%", b" 50%", b"error: x"]


def test_a_long_line_is_cut_into_windows_that_overlap() -> None:
    line = bytes(index % 251 + 1 for index in range(300_000)).replace(b"\r", b"x")
    windows = segments(line)
    assert max(map(len, windows)) == LINE_LIMIT
    assert windows[0] + b"".join(window[WINDOW_OVERLAP:] for window in windows[1:]) == line


@given(st.binary(max_size=200) | st.text("\\\\nrtux01bae:_'&#;<>/ ", max_size=60).map(str.encode))
def test_an_ascii_word_of_a_reading_survives_squeezing(line: bytes) -> None:
    for text in texts(line):
        for word in text.split():
            if word.isascii() and word.isprintable() and "\\" not in word:
                assert squeezed_literal(word.encode()) in squeezed(line)


@pytest.mark.parametrize(
    "unit",
    [
        b"\x1b]",
        b"\x1b[",
        b"\x1b",
        b"&amp;",
        b"> ",
        b"12:33:01 ",
        b" |",
        b"\\'",
        b"| \x1b[0m",
        b"\\n",
        b"\\u001b[",
        b"&#39;",
        b"<br>",
        b"</",
        b"- ",
        b"<a x=",
        b"[E x.cpp:",
        b"WARNING",
        b"| x ",
        b"\\_",
    ],
)
def test_hostile_lines_take_linear_time(unit: bytes) -> None:
    started = time.process_time()
    readings(unit * (LINE_LIMIT // len(unit)))
    passing(unit * (LINE_LIMIT // len(unit)))
    squeezed(unit * (1_000_000 // len(unit)))
    assert time.process_time() - started < 60


def test_of_a_very_long_line_the_parts_in_which_something_may_match_are_told() -> None:
    parts = [b"part %d" % number for number in range(20_000)]
    parts[70] = parts[19_999] = b"wanted"
    asked: list[int] = []

    def may_match(part: bytes) -> bool:
        asked.append(len(part))
        return b"wanted" in part

    assert list(suspicious_segments(b"\r".join(parts), may_match)) == [b"wanted", b"wanted"]
    assert len(asked) < len(parts) // 2
    assert list(suspicious_segments(b"y" * 200_000 + b"wanted", may_match)) == [b"y" * (200_000 - 184_320) + b"wanted"]


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
    assert masked(line) == expected


@given(
    st.lists(st.sampled_from([b"0x", b"7f", b"abcdef", b"12", b" ", b"\n", b"x", b"_", b"G", b"0xabcdefabcdef"])).map(
        b"".join
    )
)
def test_masking_keeps_every_length_and_is_the_same_for_lines_and_for_whole_texts(text: bytes) -> None:
    assert len(masked(text)) == len(text)
    assert masked(text).split(b"\n") == [masked(line) for line in text.split(b"\n")]
    assert masked(masked(text)) == masked(text)


FORMS = st.sampled_from([
    "[rank{}]: oops {}", "2026-01-0{} 05:58:4{} oops", "{}: oops", "[{}.{}] oops", "#{} {} oops", "(Worker pid={}) oops {}",
    "E{}105 12:33:01.123456 4711 a/b.py:8{}] oops", "node-{} | oops 0x{}f", '{{"log":"oops {}\\n","time":"{}"}}', "| {} | oops {} |",
    "Nov  {} 12:33:0{} node-7 train.py[4711]: oops", "\x1b[3{}moops\x1b[{}m", "<b>oops {}</b> {}", "{}|oops", "oops {}% &amp; {}",
    "a\\u003{}b{}", "a\\x1b[3{}m{}", "&#3{};{}", "&\\#3{};{}", "<h{}>a{}", "</h{}>{}", "<\x1b[{}mh{}>a</h1>", "x:%20y%4{}{}", "{} {}",
    "{}: {}: oops", "\x1b[1m&\x1b[0m#3{};{}", "in <module> {} {}", "0x{}: oops {}",
    "oops {} {}\r", "  \roops {} {}", "1{}%\roops {}",
])  # fmt: skip


@given(FORMS, st.text("0123456789", min_size=2, max_size=2), st.text("0123456789", min_size=2, max_size=2))
def test_a_line_like_an_earlier_one_is_read_as_it_is_by_itself(form: str, first: str, second: str) -> None:
    for numbers in (("12", "34"), (first, second), (second, first)):
        line = form.format(*numbers).encode()
        assert readings(line) == segment_readings(segments(line))
