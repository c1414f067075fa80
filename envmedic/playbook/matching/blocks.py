"""A log as blocks of about a megabyte, each with whole lines that are cut out only where they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from envmedic.playbook.matching.lines import LINE_LIMIT, WINDOW_OVERLAP

BLOCK_BYTES = 1 << 20
JOINED_LINES = 3
"""A wrapped message is looked for in a line and up to this many less one after it."""

_UNDERLINED = 400
"""The last bytes of a line, by which is told whether it only underlines another."""

Begin = tuple[int, int]
"""A line of a block: its number, from 0, and where it begins."""


class Block(msgspec.Struct, frozen=True):
    """Whole lines of a log, or a window of one line that is longer than a block."""

    number: Callable[[], int]
    """Line number of its first line; counted where it is asked for."""
    content: bytes
    keep: int
    """Matches may start at lines that begin before this; the rest is context, and comes again."""
    end: int | None = None
    """Where its last whole line ends in `content`, which is not cut there to save a copy."""
    offset: int = 0
    """Where it begins in the log."""
    line_offset: int = 0
    """Where its first line begins there: before it, if that is longer than a block."""

    def place(self, begin: int) -> int:
        """Where the line that begins at `begin` begins in the log."""
        return self.offset + begin if begin else self.line_offset

    def lines(self) -> list[bytes]:
        """All whole lines, without their ends."""
        return self.content[: self.end].split(b"\n")

    def starts(self) -> int:
        """The number of lines at which matches may start."""
        return 1 + self.content.count(b"\n", 0, max(0, self.keep - 1))

    def every_line(self) -> Iterator[Begin]:
        """All lines at which matches may start."""
        number = begin = 0
        while begin < self.keep:
            yield number, begin
            begin = self.content.find(b"\n", begin) + 1
            if not begin:
                return
            number += 1

    def starting(self, begun: Iterable[Begin]) -> list[Begin]:
        """The lines at which a match may start that has a literal beginning on one of `begun`."""
        found: dict[int, int] = {}
        for number, begin in begun:
            for before, start in self._continued(number, begin):
                if before in found:
                    break
                found[before] = start
        return sorted((number, begin) for number, begin in found.items() if begin < self.keep)

    def _continued(self, number: int, begin: int) -> Iterator[Begin]:
        """The line `number`, which begins at `begin`, and those before it that it may continue, from the last one on."""
        left = JOINED_LINES
        passed = False
        while left and number >= 0:
            yield number, begin
            before = self.content.rfind(b"\n", 0, max(0, begin - 1)) + 1
            left -= 1
            if not passed and number and underlines(self.content[max(before, begin - _UNDERLINED) : begin]):
                left, passed = left + 1, True
            number, begin = number - 1, before

    def window(self, begin: int) -> tuple[bytes, ...]:
        """The line that begins at `begin` with those that may continue it: none where one is too long for that."""
        limit = len(self.content) if self.end is None else self.end
        lines: list[bytes] = []
        passed = False
        while len(lines) < JOINED_LINES:
            found = self.content.find(b"\n", begin, limit)
            stop = limit if found < 0 else found
            too_long = stop - begin > LINE_LIMIT
            if too_long and lines:
                return (lines[0],)
            line = self.content[begin:stop]
            if lines and not passed and underlines(line):
                passed = True
            else:
                lines.append(line)
            if too_long or found < 0:
                break
            begin = stop + 1
        return tuple(lines)


def underlines(line: bytes) -> bool:
    """Whether `line` only marks a part of the one before it, as tracebacks do since Python 3.11."""
    marks = line.rstrip()
    return marks.endswith(b"^") and not marks[marks.rfind(b" ") + 1 :].strip(b"^~")


def joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as chunks, so that both ways of reading are one."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(pending[-1])
        if size >= BLOCK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    yield b"".join(pending)


class Numbering:
    """Numbers the lines of a stream as it is cut into blocks."""

    def __init__(self) -> None:
        self._number = 1

    def begin(self, content: bytes, passed: int) -> Callable[[], int]:
        """The line number of a block, of which the next one begins `passed` bytes after the beginning of `content`."""
        number = self._number
        self._number += content.count(b"\n", 0, passed)
        return lambda: number


def blocks(chunks: Iterable[bytes], numbering: Numbering) -> Iterator[Block]:
    """Cut a stream at line ends into blocks that share their last lines with the next block."""
    pending = b""
    offset = line = 0
    for chunk in chunks:
        pending += chunk
        while len(pending) >= BLOCK_BYTES:
            end = pending.rfind(b"\n") + 1
            if end:
                keep = passed = _context_start(pending, end)
            else:  # one line longer than a block
                keep, passed = 1, len(pending) - WINDOW_OVERLAP
            yield Block(numbering.begin(pending, passed), pending, keep, end or None, offset, line)
            pending = pending[passed:]
            offset += passed
            if not end:
                break
            line = offset
    if pending:
        yield Block(numbering.begin(pending, len(pending)), pending, len(pending), None, offset, line)


def _context_start(pending: bytes, end: int) -> int:
    """Where the lines begin that come again in the next block; `end` when they are too long for that."""
    start = end
    for _ in range(JOINED_LINES):  # one of them may only underline another
        start = pending.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start if start and end - start < LINE_LIMIT else end
