"""A log as blocks of about a megabyte, each with whole lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from envmedic.playbook.matching.lines import LINE_LIMIT, WINDOW_OVERLAP

BLOCK_BYTES = 1 << 20
JOINED_LINES = 3
"""A wrapped message is looked for in a line and up to this many less one after it."""

_NEIGHBOURS = 16
"""Lines that are searched together: most logs have few failures, and cutting out every window costs more."""

Window = tuple[bytes, ...]
"""A line, and the lines after it that may continue its message."""


class Block(msgspec.Struct, frozen=True):
    """Whole lines of a log, or a window of one line that is longer than a block."""

    number: int
    """Line number of its first line."""
    content: bytes
    keep: int
    """Matches may start on lines that begin before this; the rest is context and comes again in the next block."""
    end: int | None = None
    """Where its last whole line ends in `content`, which is not cut there to save a copy."""

    def windows(self, may_match: Callable[[bytes], bool]) -> Iterator[tuple[int, Window]]:
        """Windows in which `may_match` finds something, and some neighbours, with the numbers of their first lines."""
        if not may_match(self.content):
            return
        lines = self.content[: self.end].split(b"\n")
        limit = 1 + self.content.count(b"\n", 0, max(0, self.keep - 1))
        for first in range(0, limit, _NEIGHBOURS):
            if may_match(b"\n".join(lines[first : first + _NEIGHBOURS + JOINED_LINES])):
                for start in range(first, min(first + _NEIGHBOURS, limit)):
                    yield self.number + start, _window(lines, start)


def _window(lines: Sequence[bytes], start: int) -> Window:
    """The line `start` with the lines that may continue it, or alone where one of these is too long for that."""
    found = [lines[start]]
    if len(found[0]) > LINE_LIMIT:
        return tuple(found)
    passed = False
    for line in lines[start + 1 : start + 1 + JOINED_LINES]:  # one of them may only underline another
        if len(line) > LINE_LIMIT:
            return (found[0],)
        if not passed and underlines(line):
            passed = True
        else:
            found.append(line)
        if len(found) == JOINED_LINES:
            break
    return tuple(found)


def underlines(line: bytes) -> bool:
    """Whether `line` only marks a part of the one before it, as tracebacks do since Python 3.11."""
    marks = line.rstrip()
    return marks.endswith(b"^") and not marks[marks.rfind(b" ") + 1 :].strip(b"^~")


def joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines, with or without their ends, as chunks for `blocks`."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(pending[-1])
        if size >= BLOCK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    yield b"".join(pending)


def blocks(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Cut a stream at line ends into blocks that share their last lines with the next block."""
    pending = b""
    number = 1
    for chunk in chunks:
        pending += chunk
        while len(pending) >= BLOCK_BYTES:
            end = pending.rfind(b"\n") + 1
            if end:
                keep = passed = _context_start(pending, end)
            else:  # one line longer than a block: every window of it may have a match
                keep, passed = 1, len(pending) - WINDOW_OVERLAP
            yield Block(number, pending, keep, end or None)
            number += pending.count(b"\n", 0, passed)
            pending = pending[passed:]
            if not end:
                break  # what is left may be as long as a block still, until a line end is read
    if pending:
        yield Block(number, pending, len(pending))


def _context_start(pending: bytes, end: int) -> int:
    """Where the lines begin that come again in the next block; `end` when they are too long for that."""
    start = end
    for _ in range(JOINED_LINES):  # one of them may only underline another
        start = pending.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start if start and end - start < LINE_LIMIT else end
