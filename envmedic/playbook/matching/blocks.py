"""Division of a log into blocks of about a megabyte with whole lines, and of blocks into windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from envmedic.playbook.matching.lines import LINE_LIMIT, WINDOW_OVERLAP

BLOCK_BYTES = 1 << 20
JOINED_LINES = 3
"""Most lines of a wrapped message that are joined, the first included."""

_NEIGHBOURS = 16
"""Lines that are searched together. Most logs have few failures, and to cut out every window would cost more."""
_PASSED_OVER = 16
"""Most lines of noise after the neighbours that a wrapped message is read across."""

Window = tuple[bytes, ...]
"""A line, and the lines after it that may continue its message."""


class Block(msgspec.Struct, frozen=True):
    """Whole lines of a log, or a part of one line that is longer than a block."""

    number: int
    """Line number of its first line."""
    content: bytes
    keep: int
    """Matches may start on lines that begin before this offset; the rest is context, repeated in the next block."""
    end: int | None = None
    """End of the last whole line in `content`, which is not cut there to save a copy."""

    def windows(
        self,
        may_match: Callable[[bytes], bool],
        noise: Callable[[Sequence[bytes]], frozenset[int]] = lambda _: frozenset(),
    ) -> Iterator[tuple[int, Window]]:
        """Yield the windows in which `may_match` finds something, and some neighbours, with their line numbers.

        Lines of which `noise` has the indexes continue no message, and may stand within one.
        """
        # the whole block first: most blocks of a log have no literal, and splitting them would take the most time
        if not may_match(self.content):
            return
        lines = self.content[: self.end].split(b"\n")
        limit = 1 + self.content.count(b"\n", 0, max(0, self.keep - 1))
        for first in range(0, limit, _NEIGHBOURS):
            if may_match(b"\n".join(lines[first : first + _NEIGHBOURS + JOINED_LINES])):
                near = lines[first : first + _NEIGHBOURS + JOINED_LINES + _PASSED_OVER]
                unheard = noise(near)
                for start in range(min(_NEIGHBOURS, limit - first)):
                    heard = near[start : start + 1 + JOINED_LINES] if not unheard else _without(near, start, unheard)
                    yield self.number + first + start, _window(heard)


def _without(lines: Sequence[bytes], start: int, noise: frozenset[int]) -> list[bytes]:
    """Return the line `start` and those after it that are no `noise`."""
    return [lines[start], *(lines[index] for index in range(start + 1, len(lines)) if index not in noise)]


def _window(lines: Sequence[bytes]) -> Window:
    """Return the first of `lines` with those that may continue it, or alone if one of these is too long."""
    found = [lines[0]]
    if len(found[0]) > LINE_LIMIT:
        return tuple(found)
    after = lines[1:JOINED_LINES]
    # nearly all windows: none of the lines is too long or underlines another
    if sum(map(len, after)) <= LINE_LIMIT and not any(b"^" in line for line in after):
        return (found[0], *after)
    passed = False
    # one more than needed: one line may only underline another, and is left out
    for line in lines[1 : 1 + JOINED_LINES]:
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
    """Whether `line` only underlines a part of the line before it, as tracebacks do since Python 3.11."""
    marks = line.rstrip()
    return marks.endswith(b"^") and not marks[marks.rfind(b" ") + 1 :].strip(b"^~")


def joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines, with or without their ends, as chunks for `blocks`."""
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
    """Cut a stream at line ends into blocks; a block repeats the last lines of the one before it."""
    pending = b""
    number = 1
    for chunk in chunks:
        pending += chunk
        while len(pending) >= BLOCK_BYTES:
            end = pending.rfind(b"\n") + 1
            if end:
                keep = passed = _context_start(pending, end)
            else:
                # one line longer than a block is cut; the parts overlap, so that no message is lost between them
                keep, passed = 1, len(pending) - WINDOW_OVERLAP
            yield Block(number, pending, keep, end or None)
            number += pending.count(b"\n", 0, passed)
            pending = pending[passed:]
            if not end:
                break  # the overlap alone may be as long as a block: go on once more of the line has been read
    if pending:
        yield Block(number, pending, len(pending))


def _context_start(pending: bytes, end: int) -> int:
    """Return the offset of the lines that the next block repeats; `end` if they are too long."""
    start = end
    # as many as a window reads, one of which may only underline another
    for _ in range(JOINED_LINES):
        start = pending.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start if start and end - start < LINE_LIMIT else end
