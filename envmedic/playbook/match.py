"""Signatures over the lines of a log, as one linear pass in bounded memory.

Blocks of about a megabyte are first searched as a whole for the literals that matches must contain,
past everything that logs put around and into messages. Only where one is found the lines are cleaned
and the patterns run: on each line, and on its join with the next one or two, since
terminals, boxes and forums wrap messages.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice

import msgspec

from envmedic.model.playbook import LoadedPlaybook, Signature, TextMatch
from envmedic.playbook.gate import Gate
from envmedic.playbook.lines import LINE_LIMIT, WINDOW_OVERLAP, Reading, passing, readings
from envmedic.playbook.patterns import by_line, compiled
from envmedic.playbook.prefilter import prefilter
from envmedic.playbook.reading import Log

BLOCK_BYTES = 1 << 20
JOINED_LINES = 3
"""A wrapped message is looked for in a line and up to this many less one after it."""
SHOWN_CHARACTERS = 500
DISTINCT_MATCHES = 64
"""Matches of one signature with different groups that are told apart; the rest is counted to the first."""
_MOST_THREADS = 4
"""More would wait for the reading of the log."""


def scan(lines: Iterable[bytes], playbooks: Sequence[LoadedPlaybook]) -> tuple[TextMatch, ...]:
    """Every signature of `playbooks` that matches in `lines`, by line number.

    `lines` is a `Log`, or any iterable of lines with or without their ends. A signature that matches
    again with the same groups is counted, not repeated.
    """
    signatures = Signatures(playbooks)
    if not signatures.entries:
        return ()
    found = _Found()
    chunks = lines.chunks() if isinstance(lines, Log) else _joined(lines)
    for block, lines_begun in _searched(_blocks(chunks), signatures.filter.gate):
        for match in _block_matches(block, lines_begun, signatures):
            found.add(match)
    return found.matches()


def _searched(blocks: Iterator[_Block], gate: Gate | None) -> Iterator[tuple[_Block, Iterable[int]]]:
    """Blocks with the lines on which a match may start. Several are searched while the next one is read."""
    if gate is None:
        yield from ((block, range(len(block.lines))) for block in blocks)
        return
    first = list(islice(blocks, 2))
    if len(first) == 1:  # as most logs have
        yield first[0], _may_start(gate.lines(first[0].content))
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # noqa: PLC0415

    count = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    waiting: deque[tuple[_Block, Future[tuple[int, ...]]]] = deque()
    with ThreadPoolExecutor(count, "envmedic-search") as pool:
        for block in chain(first, blocks):
            waiting.append((block, pool.submit(gate.lines, block.content)))
            if len(waiting) > count:
                before, answer = waiting.popleft()
                yield before, _may_start(answer.result())
        for before, answer in waiting:
            yield before, _may_start(answer.result())


def _may_start(begun: Sequence[int]) -> list[int]:
    """Lines on which a match may start that has a literal beginning on one of `begun`."""
    return sorted({line for number in begun for line in range(max(0, number - JOINED_LINES + 1), number + 1)})


@dataclass(frozen=True)
class _Block:
    """Whole lines of a log, or a window of one line that is longer than a block."""

    number: int
    """Line number of its first line."""
    content: bytes
    starts: int
    """Lines at its beginning at which matches may start; the rest is context, and comes again."""
    end: int | None = None
    """Where its last whole line ends in `content`, which is not cut there to save a copy."""

    @cached_property
    def lines(self) -> list[bytes]:
        """Its whole lines."""
        return self.content[: self.end].split(b"\n")


class Signatures:
    """The compiled signatures of some playbooks."""

    def __init__(self, playbooks: Sequence[LoadedPlaybook]) -> None:
        self.entries: tuple[tuple[str, Signature], ...] = tuple(
            (loaded.playbook.id, signature) for loaded in playbooks for signature in loaded.playbook.signatures
        )
        self.filter = prefilter(tuple(signature.pattern for _, signature in self.entries))
        self.may_match = self.filter.may_match
        self.candidates = self.filter.candidates
        self.indexes = lru_cache(maxsize=4096)(self._indexes)

    def _indexes(self, text: str, among: frozenset[int]) -> frozenset[int]:
        """Indexes in `entries` of the signatures `among` which match `text`."""
        raw = text.encode()
        return frozenset(index for index in among if compiled(self.entries[index][1].pattern).search(raw) is not None)

    def possible(self, texts: Iterable[str], among: frozenset[int]) -> frozenset[int]:
        """Those `among` that may match one of `texts`, found in one search each."""
        raw = "\n".join(texts).encode()
        return frozenset(index for index in among if by_line(self.entries[index][1].pattern).search(raw) is not None)

    def match(self, index: int, reading: Reading, number: int) -> TextMatch:
        """The match of signature `index`, which is known to match `reading`."""
        playbook, signature = self.entries[index]
        raw = reading.text.encode()
        found = compiled(signature.pattern).search(raw)
        groups = {
            name.decode() if isinstance(name, bytes) else name: value.decode("utf-8", "replace")[:SHOWN_CHARACTERS]
            for name, value in found.groupdict().items()
            if value is not None
        }
        return TextMatch(
            playbook=playbook,
            signature=signature.id,
            line_number=number,
            line=_excerpt(reading.text, len(raw[: found.start()].decode("utf-8", "replace"))),
            groups=groups,
            passing=passing(reading.source),
            part=reading.part,
        )


def _excerpt(text: str, start: int) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    begin = max(0, min(start - SHOWN_CHARACTERS // 5, len(text) - SHOWN_CHARACTERS))
    return text[begin : begin + SHOWN_CHARACTERS]


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
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


def _blocks(chunks: Iterable[bytes]) -> Iterator[_Block]:
    """Cut a stream at line ends into blocks that share their last lines with the next block."""
    number, pending = 1, b""
    for chunk in chunks:
        pending += chunk
        while len(pending) >= BLOCK_BYTES:
            end = pending.rfind(b"\n") + 1
            if not end:  # one line longer than a block
                yield _Block(number, pending, 1)
                pending = pending[-WINDOW_OVERLAP:]
                break
            keep = _context_start(pending, end)
            starts = pending.count(b"\n", 0, keep)
            yield _Block(number, pending, starts, end)
            number += starts
            pending = pending[keep:]
    if pending:
        yield _Block(number, pending, pending.count(b"\n") + 1)


def _context_start(pending: bytes, end: int) -> int:
    """Where the lines begin that come again in the next block; `end` when they are too long for that."""
    start = end
    for _ in range(JOINED_LINES - 1):
        start = pending.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start if start and end - start < LINE_LIMIT else end


def _block_matches(block: _Block, suspicious: Iterable[int], signatures: Signatures) -> Iterator[TextMatch]:
    for index in suspicious:
        if index >= min(block.starts, len(block.lines)):
            return
        yield from _line_matches(block.lines[index : index + JOINED_LINES], block.number + index, signatures)


def _line_matches(window: Sequence[bytes], number: int, signatures: Signatures) -> Iterator[TextMatch]:
    """Matches that start on the first line of `window`; the lines after it may continue a wrapped message."""
    if not signatures.may_match(b"".join(window)):
        return
    read = [readings(line) for line in window]
    among = signatures.candidates("\n".join(reading.text for line in read for reading in line).encode())
    if not among:
        return
    lines = [line[0].text if line else "" for line in read]
    wrapped = [] if any(len(line) > LINE_LIMIT for line in window) else lines
    among = signatures.possible(chain((reading.text for reading in read[0]), _every_join(wrapped)), among)
    found: dict[int, Reading] = {}
    for reading in read[0] if among else ():
        found |= dict.fromkeys(signatures.indexes(reading.text, among).difference(found), reading)
    left = among.difference(found)
    if left:
        for index, text in _wrapped_matches(wrapped, left, signatures).items():
            found[index] = Reading(text, window[0])
    for index, reading in sorted(found.items()):
        yield signatures.match(index, reading, number)


def _every_join(lines: Sequence[str]) -> Iterator[str]:
    for size in range(2, len(lines) + 1):
        yield from _joins(lines[:size])


def _wrapped_matches(lines: Sequence[str], among: frozenset[int], signatures: Signatures) -> dict[int, str]:
    """Signatures with the joins of lines that they match, where no shorter join of the same lines has the match."""
    found: dict[int, str] = {}
    left = among.difference(*(signatures.indexes(line, among) for line in lines[1:]))
    for size in range(2, len(lines) + 1):
        left = left.difference(*(signatures.indexes(join, left) for join in _joins(lines[1:size])))
        for join in _joins(lines[:size]) if left else ():
            found |= dict.fromkeys(signatures.indexes(join, left).difference(found), join)
        left = left.difference(found)
    return found


def _joins(texts: Sequence[str]) -> tuple[str, ...]:
    """Each line may have been cut between words or inside one."""
    joined = [texts[0]]
    for text in texts[1:]:
        joined = [before + separator + text for before in joined for separator in (" ", "")]
    return tuple(joined)


_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class _Found:
    """Matches with repetitions counted."""

    def __init__(self) -> None:
        self._matches: dict[_Key, TextMatch] = {}
        self._counts: dict[_Key, int] = {}
        self._last_line: dict[_Key, int] = {}
        self._distinct: dict[tuple[str, str], list[_Key]] = {}

    def add(self, match: TextMatch) -> None:
        """Take a match; the same one seen twice on a line (in overlapping windows) counts once."""
        key = self._key(match)
        if key not in self._matches:
            self._matches[key] = match
        if self._last_line.get(key) != match.line_number:
            self._counts[key] = self._counts.get(key, 0) + 1
            self._last_line[key] = match.line_number

    def _key(self, match: TextMatch) -> _Key:
        key = (match.playbook, match.signature, tuple(sorted(match.groups.items())))
        known = self._distinct.setdefault(key[:2], [])
        if key not in self._matches:
            if len(known) >= DISTINCT_MATCHES:
                return known[0]
            known.append(key)
        return key

    def matches(self) -> tuple[TextMatch, ...]:
        """By line number, in the order found on a line."""
        counted = (msgspec.structs.replace(match, count=self._counts[key]) for key, match in self._matches.items())
        return tuple(sorted(counted, key=lambda match: (match.line_number, match.part)))
