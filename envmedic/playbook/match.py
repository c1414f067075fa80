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
from functools import lru_cache
from itertools import chain, islice

import msgspec

from envmedic.model.playbook import LoadedPlaybook, Signature, TextMatch
from envmedic.playbook.blocks import Begin, Block, Numbering, blocks, joined
from envmedic.playbook.lines import LINE_LIMIT, Reading, passing, read, readings, suspicious_segments
from envmedic.playbook.patterns import by_line, compiled
from envmedic.playbook.prefilter import prefilter
from envmedic.playbook.reading import Log, keep_freed_memory
from envmedic.redact import redact_text

SHOWN_CHARACTERS = 500
DISTINCT_MATCHES = 64
"""Matches of one signature with different groups that are told apart; the rest is counted to the first."""
_MOST_THREADS = 4
"""More would wait for the reading of the log."""
_SMALL_BYTES = 8192
"""Of logs whose every line is looked at: compiling what finds the suspicious ones takes 20 ms."""
_KEPT_WINDOWS = 4096
_KEPT_BYTES = 4096
"""Of a window whose matches are kept: a warning that is repeated for each batch is looked at once."""


def scan(lines: Iterable[bytes], playbooks: Sequence[LoadedPlaybook]) -> tuple[TextMatch, ...]:
    """Every signature of `playbooks` that matches in `lines`, by line number.

    `lines` is a `Log`, or any iterable of lines with or without their ends. A signature that matches
    again with the same groups is counted, not repeated.
    """
    signatures = Signatures(playbooks)
    if not signatures.entries:
        return ()
    found = _Found()
    log = lines if isinstance(lines, Log) else None
    stream = blocks(joined(lines), Numbering()) if log is None else blocks(log.chunks(), log.numbering())
    for block, starting in _searched(stream, signatures):
        matches = [(match, line) for line, begin in starting for match in signatures.found(block.window(begin))]
        first = block.number() if matches else 0
        for match, line in matches:
            found.add(match, first + line)
    return found.matches()


def _searched(stream: Iterator[Block], signatures: Signatures) -> Iterator[tuple[Block, Iterable[Begin]]]:
    """Blocks with the lines on which a match may start. Several are searched while the next one is read."""
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    small = len(first) == 1 and len(first[0].content) <= _SMALL_BYTES
    gate = None if small else signatures.filter.gate
    if gate is None:
        yield from ((block, block.every_line()) for block in stream)
        return
    if len(first) == 1:  # as most logs have
        yield first[0], first[0].starting(gate.begun(first[0].content))
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # noqa: PLC0415

    keep_freed_memory()
    count = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    waiting: deque[tuple[Block, Future[tuple[Begin, ...]]]] = deque()
    with ThreadPoolExecutor(count, "envmedic-search") as pool:
        for block in stream:
            waiting.append((block, pool.submit(gate.begun, block.content)))
            if len(waiting) > count:
                before, answer = waiting.popleft()
                yield before, before.starting(answer.result())
        for before, answer in waiting:
            yield before, before.starting(answer.result())


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
        self._kept = lru_cache(maxsize=_KEPT_WINDOWS)(self._found)

    def found(self, window: tuple[bytes, ...]) -> tuple[TextMatch, ...]:
        """Matches that start on the first line of `window`, as on line 0."""
        return (self._kept if sum(map(len, window)) <= _KEPT_BYTES else self._found)(window)

    def _found(self, window: tuple[bytes, ...]) -> tuple[TextMatch, ...]:
        return tuple(_matches(window, self))

    def _indexes(self, text: str, among: frozenset[int]) -> frozenset[int]:
        """Indexes in `entries` of the signatures `among` which match `text`."""
        raw = text.encode()
        return frozenset(index for index in among if compiled(self.entries[index][1].pattern).search(raw) is not None)

    def matching(self, text: str, among: frozenset[int]) -> frozenset[int]:
        """The same, where most texts have nothing that any of them needs."""
        few = among & self.candidates(text.encode()) if text else among
        return self.indexes(text, few) if few else few

    def possible(self, texts: Iterable[str], among: frozenset[int]) -> frozenset[int]:
        """Those `among` that may match one of `texts`, found in one search each."""
        raw = "\n".join(texts).encode()
        return frozenset(index for index in among if by_line(self.entries[index][1].pattern).search(raw) is not None)

    def match(self, index: int, reading: Reading) -> TextMatch:
        """The match of signature `index`, which is known to match `reading`, as on line 0."""
        playbook, signature = self.entries[index]
        raw = reading.text.encode()
        found = compiled(signature.pattern).search(raw)
        groups = {
            name.decode() if isinstance(name, bytes) else name: _shown(value.decode("utf-8", "replace"))
            for name, value in found.groupdict().items()
            if value is not None
        }
        return TextMatch(
            playbook=playbook,
            signature=signature.id,
            line_number=0,
            line=redact_text(_excerpt(reading.text, len(raw[: found.start()].decode("utf-8", "replace")))),
            groups=groups,
            passing=passing(reading.source),
            part=reading.part,
        )


def _shown(text: str) -> str:
    return redact_text(text)[:SHOWN_CHARACTERS]


def _excerpt(text: str, start: int) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    begin = max(0, min(start - SHOWN_CHARACTERS // 5, len(text) - SHOWN_CHARACTERS))
    return text[begin : begin + SHOWN_CHARACTERS]


def _read(window: Sequence[bytes], signatures: Signatures) -> list[tuple[Reading, ...]]:
    """Readings of each line; none where nothing can match, of a very long one those of the parts in which it may."""
    if len(window[0]) > LINE_LIMIT:
        return [read(suspicious_segments(window[0], signatures.may_match))]
    return [readings(line) for line in window] if signatures.may_match(b"".join(window)) else []


def _matches(window: Sequence[bytes], signatures: Signatures) -> Iterator[TextMatch]:
    """Matches that start on the first line of `window`; the lines after it may continue a wrapped message."""
    lines = _read(window, signatures)
    among = signatures.candidates("\n".join(reading.text for line in lines for reading in line).encode())
    if not among:
        return
    texts = [line[0].text if line else "" for line in lines]
    found: dict[int, Reading] = {}
    for reading in lines[0]:
        found |= dict.fromkeys(signatures.matching(reading.text, among).difference(found), reading)
    left = among.difference(found, *(signatures.matching(text, among) for text in texts[1:]))
    left = left and signatures.possible(_every_join(texts), left)
    if left:
        for index, text in _wrapped_matches(texts, left, signatures).items():
            found[index] = Reading(text, window[0])
    for index, reading in sorted(found.items()):
        yield signatures.match(index, reading)


def _every_join(lines: Sequence[str]) -> Iterator[str]:
    for size in range(2, len(lines) + 1):
        yield from _joins(lines[:size])


def _wrapped_matches(lines: Sequence[str], among: frozenset[int], signatures: Signatures) -> dict[int, str]:
    """Signatures with the joins of `lines` that they match, where no shorter join of the same lines has the match.

    None of `among` matches one of the lines alone.
    """
    found: dict[int, str] = {}
    left = among
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

    def add(self, match: TextMatch, number: int) -> None:
        """Take a match on the line `number`; the same one seen twice there (in overlapping windows) counts once."""
        key = self._key(match)
        if key not in self._matches:
            self._matches[key] = msgspec.structs.replace(match, line_number=number)
        if self._last_line.get(key) != number:
            self._counts[key] = self._counts.get(key, 0) + 1
            self._last_line[key] = number

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
