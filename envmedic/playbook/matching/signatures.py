"""The signatures of some playbooks, on a line of a log and those after it.

The patterns run on each line, cleaned, and on its join with the next one or two, since terminals, boxes and
forums wrap messages. Patterns that need literals which are not there don't run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from envmedic.model.playbook import LoadedPlaybook, Signature, TextMatch
from envmedic.playbook.matching.lines import LINE_LIMIT, Reading, passing, read, readings, suspicious_segments
from envmedic.playbook.matching.patterns import by_line, compiled
from envmedic.playbook.matching.prefilter import prefilter
from envmedic.redact import redact_text

SHOWN_CHARACTERS = 500
_KEPT_WINDOWS = 4096
KEPT_BYTES = 4096
"""Of a window whose matches are kept: a warning that is repeated for each batch is looked at once."""

Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Playbook, signature and groups: what makes two matches the same."""


class Hit(msgspec.Struct, frozen=True):
    """A match with its key, which is worked out once."""

    key: Key
    match: TextMatch
    """As on line 0."""


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
        self._kept = lru_cache(maxsize=_KEPT_WINDOWS)(self._hits)

    def hits(self, window: tuple[bytes, ...]) -> tuple[Hit, ...]:
        """Matches that start on the first line of `window`; the lines after it may continue a wrapped message."""
        return (self._kept if sum(map(len, window)) <= KEPT_BYTES else self._hits)(window)

    def _hits(self, window: tuple[bytes, ...]) -> tuple[Hit, ...]:
        return tuple(self.hit(index, reading) for index, reading in sorted(self.found(window).items()))

    def found(self, window: tuple[bytes, ...]) -> Mapping[int, Reading]:
        """Indexes of the signatures that match on the first line of `window`, with what they match."""
        lines = _read(window, self)
        among = self.candidates("\n".join(reading.text for line in lines for reading in line).encode())
        return _found(window, lines, among, self) if among else {}

    def pattern(self, index: int) -> str:
        """The pattern of a signature."""
        return self.entries[index][1].pattern

    def _indexes(self, text: str, among: frozenset[int]) -> frozenset[int]:
        """Indexes in `entries` of the signatures `among` which match `text`."""
        raw = text.encode()
        return frozenset(index for index in among if compiled(self.pattern(index)).search(raw) is not None)

    def matching(self, text: str, among: frozenset[int]) -> frozenset[int]:
        """The same, where most texts have nothing that any of them needs."""
        few = among & self.candidates(text.encode()) if text else among
        return self.indexes(text, few) if few else few

    def possible(self, texts: Iterable[str], among: frozenset[int]) -> frozenset[int]:
        """Those `among` that may match one of `texts`, found in one search each."""
        raw = "\n".join(texts).encode()
        return frozenset(index for index in among if by_line(self.pattern(index)).search(raw) is not None)

    def hit(self, index: int, reading: Reading) -> Hit:
        """The match of signature `index`, which is known to match `reading`."""
        playbook, signature = self.entries[index]
        raw = reading.text.encode()
        found = compiled(signature.pattern).search(raw)
        groups = {
            name.decode() if isinstance(name, bytes) else name: _shown(value.decode("utf-8", "replace"))
            for name, value in found.groupdict().items()
            if value is not None
        }
        match = TextMatch(
            playbook=playbook,
            signature=signature.id,
            line_number=0,
            line=redact_text(_excerpt(reading.text, len(raw[: found.start()].decode("utf-8", "replace")))),
            groups=groups,
            passing=passing(reading.source),
            part=reading.part,
        )
        return Hit((playbook, signature.id, tuple(sorted(groups.items()))), match)


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


def _found(
    window: Sequence[bytes], lines: Sequence[tuple[Reading, ...]], among: frozenset[int], signatures: Signatures
) -> dict[int, Reading]:
    texts = [line[0].text if line else "" for line in lines]
    found: dict[int, Reading] = {}
    for reading in lines[0]:
        found |= dict.fromkeys(signatures.matching(reading.text, among).difference(found), reading)
    left = among.difference(found, *(signatures.matching(text, among) for text in texts[1:]))
    left = left and signatures.possible(every_join(texts), left)
    if left:
        for index, text in _wrapped_matches(texts, left, signatures).items():
            found[index] = Reading(text, window[0])
    return found


def every_join(lines: Sequence[str]) -> Iterator[str]:
    """The first of `lines` with those after it, as they may have been cut."""
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
