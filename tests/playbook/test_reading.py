from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from envmedic.errors import InputError
from envmedic.playbook.matching.log_stream import CHUNK_BYTES, read_lines


def test_lines_come_without_their_ends(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"one\ntwo\r\n\nlast")
    assert list(read_lines(file)) == [b"one", b"two\r", b"", b"last"]


def test_chunks_are_bounded_and_complete(tmp_path: Path) -> None:
    file = tmp_path / "log"
    content = os.urandom(3 * CHUNK_BYTES + 17)
    content = b"x" + content[1:]
    file.write_bytes(content)
    chunks = list(read_lines(file).chunks())
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) <= CHUNK_BYTES


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
def test_a_byte_order_mark_decides_the_encoding(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "log"
    text = "größer\n" * (CHUNK_BYTES // 8)  # an odd number of units per chunk
    file.write_bytes(("\ufeff" + text).encode(encoding))
    assert b"".join(read_lines(file).chunks()).decode() == text


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    assert list(read_lines("-")) == [b"a", b"b"]


def test_a_pipe_is_seen_as_it_comes(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    seen = threading.Event()

    def writer() -> None:
        with fifo.open("wb", buffering=0) as stream:
            stream.write(b"first\n")
            assert seen.wait(10)
            stream.write(b"second\n")

    thread = threading.Thread(target=writer)
    thread.start()
    lines = iter(read_lines(fifo))
    assert next(lines) == b"first"
    seen.set()
    assert list(lines) == [b"second"]
    thread.join()


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_log_that_cannot_be_read_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        list(read_lines(tmp_path / name))
    assert caught.value.hint
