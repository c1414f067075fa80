from __future__ import annotations

import io
import os
import random
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.model.playbook import LoadedPlaybook, TextMatch
from envmedic.playbook.matching import blocks, log_stream, match, signatures
from envmedic.playbook.matching.blocks import Block
from envmedic.playbook.matching.log_stream import read_lines
from envmedic.playbook.matching.match import scan
from envmedic.playbook.schema import loader
from tests.playbook.helpers import lines, loaded

PLAYBOOK = loaded(
    ("missing", r"operator (?P<operator>torchvision::\w+) does not exist"),
    ("no-kernel", r"Could not run '(?P<operator>torchvision::\w+)' with arguments from the 'CUDA' backend"),
)
MESSAGE = "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend. This could be"


@cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    files = sorted(loader.shipped_directory().glob("*.yaml"))
    return tuple(loader.load_file(file, "shipped") for file in files)


def found(*text: str) -> list[tuple[str, int]]:
    return [(item.signature, item.line_number) for item in scan(lines(*text), [PLAYBOOK])]


def test_a_match_tells_its_line_its_number_and_its_groups() -> None:
    (only,) = scan(lines("ok", "  [rank0]: RuntimeError: operator torchvision::nms does not exist", "ok"), [PLAYBOOK])
    assert only == TextMatch(
        playbook="mine",
        signature="missing",
        line_number=2,
        line="RuntimeError: operator torchvision::nms does not exist",
        groups={"operator": "torchvision::nms"},
    )


def test_nothing_is_found_in_nothing() -> None:
    assert scan([], [PLAYBOOK]) == ()
    assert scan([b""], [PLAYBOOK]) == ()
    assert scan(lines(MESSAGE), []) == ()
    assert scan(lines("all is well", "torchvision::nms"), [PLAYBOOK]) == ()


def test_a_repeated_match_is_counted_and_others_are_kept_apart() -> None:
    text = ["operator torchvision::nms does not exist"] * 3 + ["operator torchvision::roi_align does not exist"]
    counted = [(item.line_number, item.groups["operator"], item.count) for item in scan(lines(*text), [PLAYBOOK])]
    assert counted == [(1, "torchvision::nms", 3), (4, "torchvision::roi_align", 1)]


def test_a_flood_of_different_matches_is_bounded() -> None:
    text = [f"operator torchvision::op{number} does not exist" for number in range(1000)]
    matches = scan(lines(*text), [PLAYBOOK])
    assert len(matches) == match.DISTINCT_MATCHES
    assert sum(item.count for item in matches) == 1000


@pytest.mark.parametrize("width", [27, 33, 40, 57, 79])
@pytest.mark.parametrize("decoration", ["{}", "│ {} │", "> {}", "\x1b[31m{}\x1b[0m", "{}\r", "    {}"])
def test_a_message_that_was_wrapped_over_lines_is_found(width: int, decoration: str) -> None:
    message = "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."
    wrapped = [message[start : start + width] for start in range(0, len(message), width)]
    assert found("before", *(decoration.format(part) for part in wrapped), "after") == [("no-kernel", 2)]


def test_a_message_that_was_wrapped_at_words_is_found_once() -> None:
    assert found("x", "Could not run 'torchvision::nms'", "with arguments from the 'CUDA'", "backend. y", "z") == [
        ("no-kernel", 2)
    ]


def test_a_whole_message_is_not_found_again_in_the_lines_before_it() -> None:
    assert found("a", "b", MESSAGE, "c", "d") == [("no-kernel", 3)]


@pytest.mark.parametrize(
    "line",
    [
        f"报错：{MESSAGE}，请问怎么解决？",  # noqa: RUF001
        f"Ошибка: {MESSAGE}",
        f"🔥🔥 {MESSAGE} 🔥",
        MESSAGE.replace("'", "\u2019"),
        MESSAGE.replace("'", "`"),
        '{"level": "error", "msg": "' + MESSAGE.replace("'", "\\'") + '\\nmore"}',
        MESSAGE.replace("'", "&#39;"),
        "progress 10%\rprogress 20%\r" + MESSAGE + "\rprogress 30%",
        "x" * 50_000 + MESSAGE + "y" * 50_000,
    ],
)
def test_a_message_is_found_in_what_people_paste(line: str) -> None:
    assert found("first", line) == [("no-kernel", 2)]


def test_the_line_of_a_long_match_is_an_excerpt_around_it() -> None:
    (only,) = scan(lines("x" * 50_000 + MESSAGE), [PLAYBOOK])
    assert "torchvision::nms" in only.line
    assert len(only.line) <= signatures.SHOWN_CHARACTERS


def test_binary_rubbish_around_a_message_does_not_hide_it() -> None:
    rubbish = random.Random(7).randbytes(3_000_000)
    content = rubbish + b"\n" + MESSAGE.encode() + b"\xff\xfe\n" + rubbish
    (only,) = scan([content], [PLAYBOOK])
    assert only.line_number == rubbish.count(b"\n") + 2


def test_a_line_of_ten_megabytes_is_searched_throughout(tmp_path: Path) -> None:
    log = tmp_path / "log"
    filler = b"a" * 5_000_000
    log.write_bytes(b"first\n" + filler + MESSAGE.encode() + filler + b"\nlast\n" + MESSAGE.encode())
    matches = scan(read_lines(log), [PLAYBOOK])
    assert [(item.line_number, item.count) for item in matches] == [(2, 2)]


@pytest.mark.parametrize("offset", range(-120, 20, 7))
def test_a_message_at_the_border_of_two_blocks_is_found_once(tmp_path: Path, offset: int) -> None:
    line = b"a quiet line of the log\n"
    before = line * ((blocks.BLOCK_BYTES + offset) // len(line))
    before += b"." * (blocks.BLOCK_BYTES + offset - len(before) - 1) + b"\n"
    log = tmp_path / "log"
    log.write_bytes(before + b"Could not run 'torchvision::nms' with\narguments from the 'CUDA' backend\n" + line * 9)
    number = before.count(b"\n") + 1
    assert [(m.line_number, m.count) for m in scan(read_lines(log), [PLAYBOOK])] == [(number, 1)]


@given(st.lists(st.sampled_from(["", "noise", MESSAGE, "operator torchvision::nms does not exist"]), max_size=40))
def test_blocks_of_any_size_give_what_one_block_gives(text: list[str]) -> None:
    whole = scan(lines(*text), [PLAYBOOK])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 150)
        assert scan(lines(*text), [PLAYBOOK]) == whole
    assert sum(item.count for item in whole) == sum(bool(line) and line != "noise" for line in text)


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\xff\xfe"], ids=["plain", "utf-8-sig", "utf-16"])
def test_lines_of_files_and_of_streams_have_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(log_stream, "CHUNK_BYTES", 3001)
    source = random.Random(4711)
    expected: list[int] = []
    text: list[str] = []
    for number in range(1, 3000):
        wanted = source.random() < 0.01
        expected += [number] if wanted else []
        text.append(f"operator torchvision::op{number} does not exist" if wanted else "x" * source.randrange(90))
    text.insert(0, "y" * 20_000)
    content = "\n".join(text).encode("utf-16-le" if start == b"\xff\xfe" else "utf-8")
    path = tmp_path / "log"
    path.write_bytes(start + content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(start + content)))
    for name in (str(path), "-"):
        assert [item.line_number - 1 for item in scan(read_lines(name), [PLAYBOOK])] == expected


def test_a_log_that_is_cut_off_while_it_is_read_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64)
    path = tmp_path / "log"
    path.write_text("x\n" * 1000 + "operator torchvision::nms does not exist\n")
    log = read_lines(path)
    chunks = log.chunks

    def cut() -> Iterator[bytes]:
        yield from chunks()
        path.write_text("")

    monkeypatch.setattr(log, "chunks", cut)
    assert [item.signature for item in scan(log, [PLAYBOOK])] == ["missing"]


def test_a_match_may_start_on_the_lines_before() -> None:
    block = Block(1, b"a\nbb\nccc\ndddd\n", 14)
    windows = dict(block.windows(lambda _: True))
    assert list(windows) == [1, 2, 3, 4]
    assert windows[2] == (b"bb", b"ccc", b"dddd")
    assert windows[4] == (b"dddd", b"")
    assert list(Block(1, b"a\nbb\nccc", 2, 5).windows(lambda _: True)) == [(1, (b"a", b"bb", b""))]
    assert list(block.windows(lambda _: False)) == []


def test_lines_around_a_literal_are_looked_at() -> None:
    content = b"\n".join(b"wanted" if number == 500 else b"line" for number in range(1000))
    numbers = [number for number, _ in Block(1, content, len(content)).windows(lambda part: b"wanted" in part)]
    assert {499, 500, 501} <= set(numbers)
    assert len(numbers) < 50


def test_a_line_too_long_to_be_joined_stands_alone() -> None:
    long = b"x" * 70_000
    block = Block(1, b"a\n" + long + b"\nb\n", 5 + len(long))
    windows = dict(block.windows(lambda _: True))
    assert windows[1] == (b"a",)
    assert windows[2] == (long,)


def test_patterns_without_literals_are_still_tried() -> None:
    playbook = loaded(("digits", r"^\d{3}-\d{3}$"))
    assert [item.line_number for item in scan(lines("x", "123-456"), [playbook])] == [2]


def test_a_catastrophic_pattern_takes_linear_time() -> None:
    playbook = loaded(("evil", r"(x+x+)+y"), ("worse", r"(?:a|aa|aaa)*b$"))
    started = time.process_time()
    assert scan([b"x" * 200_000 + b"a" * 200_000], [playbook]) == ()
    assert time.process_time() - started < 60


def test_a_log_in_which_every_line_matches_is_read_in_reasonable_time() -> None:
    text = "[rank{}]: RuntimeError: CUDA error: no kernel image is available for execution on the device"
    repeated = [text.format(number % 8).encode() for number in range(30_000)]
    shipped()
    started = time.process_time()
    matches = scan(repeated, shipped())
    assert time.process_time() - started < 15
    assert {item.count for item in matches} == {30_000}


HOSTILE = {
    "zeros": b"\0" * 3_000_000,
    "random": random.Random(3).randbytes(2_000_000),
    "one letter": b"a" * 5_000_000,
    "empty lines": b"\n" * 1_000_000,
    "returns": b"\r" * 1_000_000,
    "escapes": b"\x1b[31m" * 400_000,
    "half escapes": b"\x1b]" * 500_000,
    "backslashes": b"\\" * 500_000,
    "written line ends": b"undefined symbol: \\n" * 50_000,
    "entities": b"&#39;&quot;&" * 100_000,
    "tags": b"<br><span " * 100_000,
    "atoms without matches": b"undefined symbol No module named CUDA error: cannot open shared object " * 20_000,
    "atoms on short lines": b"undefined symbol\nCUDA error: \nImportError: lib\n" * 3_000,
    "quotes": b"\"'" * 500_000,
    "bars": b"| " * 500_000,
    "invalid": b"\xff\xfe\xe2\x80" * 300_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_linear_time(content: bytes) -> None:
    shipped()
    started = time.process_time()
    scan(content.split(b"\n"), shipped())
    assert time.process_time() - started < 15


def test_a_large_log_is_read_in_bounded_memory() -> None:
    class Endless(io.RawIOBase):
        """100 MB that are never in memory at once."""

        left = 100 * 1024 * 1024

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            size = min(len(buffer), self.left)
            self.left -= size
            buffer[:size] = (b"INFO epoch 3 loss 0.1234 torch.nn.modules\n" * (size // 42 + 1))[:size]
            return size

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
        tracemalloc.start()
        assert scan(read_lines("-"), [PLAYBOOK]) == ()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 16 * 1024 * 1024


def test_refusing_a_pattern_does_not_write_to_stderr() -> None:
    code = (
        "from envmedic.playbook.matching.patterns import PatternRefused, compiled\n"
        "try:\n    compiled('(?=x)')\nexcept PatternRefused:\n    print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")


def test_file_descriptors_are_closed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(MESSAGE, encoding="utf-8")
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208
    for _ in range(20):
        scan(read_lines(log), [PLAYBOOK])
    after = len(os.listdir("/proc/self/fd")) if before else 0  # noqa: PTH208
    assert after == before < limit
