"""Matching of signatures against one line of a log and the lines after it.

The patterns run on each cleaned line and on its joins with the next one or two, since terminals, boxes and forums wrap
messages. Patterns whose literals are missing do not run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from envmedic.model.playbook import LoadedPlaybook, Signature, TextMatch
from envmedic.playbook.matching.blocks import Window
from envmedic.playbook.matching.lines import (
    LINE_LIMIT,
    Reading,
    passing,
    readings,
    segment_readings,
    suspicious_segments,
)
from envmedic.playbook.matching.patterns import any_by_line, compiled, group_numbers
from envmedic.playbook.matching.prefilter import prefilter
from envmedic.redact import redact_text

SHOWN_CHARACTERS = 500
_KEPT = 4096
"""Limit of remembered sets of candidates, values of groups, and searches."""
_LONGEST_KEPT = 1024
"""Limit of the length, in characters, of the texts of remembered searches."""
_LOOKED_AT_IN_FULL = 3
"""Windows with the same candidates that are searched in full before the remaining patterns become one program.

Compiling that program takes as long as some hundred searches.
"""

_INTERRUPTED = b"KeyboardInterrupt"
_SOURCE_OF_WARNING = re.compile(rb"\s+(?:warnings|logger|log)\.warn\w*\(|\s+warn\w*\(")

Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Identity of a match: playbook, signature and groups."""


class Hit(msgspec.Struct, frozen=True):
    """A match of a signature."""

    key: Key
    groups: dict[str, str]
    reading: Reading
    """The text that the signature matches."""
    start: int
    """Start of the match in that text, in bytes of UTF-8."""

    def match(self, number: int) -> TextMatch:
        """The match, as on line `number` of a log."""
        # RE2 counts bytes, the excerpt counts characters; "replace", since a match may start inside a character
        start = len(self.reading.text.encode()[: self.start].decode("utf-8", "replace"))
        return TextMatch(
            playbook=self.key[0],
            signature=self.key[1],
            line_number=number,
            line=redact_text(_excerpt(self.reading.text, start)),
            groups=self.groups,
            passing=passing(self.reading.source),
            part=self.reading.part,
        )


class _Alike:
    """Windows with the same candidates, which are mostly the same messages with other numbers."""

    __slots__ = ("matched", "seen")

    def __init__(self, _: frozenset[int]) -> None:
        self.seen = 0
        self.matched: frozenset[int] = frozenset()
        """Candidates that matched a line of at least one of them."""


class Signatures:
    """The compiled signatures of some playbooks."""

    def __init__(self, playbooks: Sequence[LoadedPlaybook]) -> None:
        self.entries: tuple[tuple[str, Signature], ...] = tuple(
            (loaded.playbook.id, signature) for loaded in playbooks for signature in loaded.playbook.signatures
        )
        self._filter = prefilter(tuple(signature.pattern for _, signature in self.entries))
        self.may_match = self._filter.may_match
        harmless = (
            loaded.playbook for loaded in playbooks if loaded.playbook.harmless and loaded.playbook.fault is None
        )
        self._noise = tuple(signature.pattern for playbook in harmless for signature in playbook.signatures)
        # looked up when a signature matches: it compiles the pattern
        self._groups = lru_cache(maxsize=None)(lambda index: group_numbers(self._pattern(index)))
        self._alike = lru_cache(maxsize=_KEPT)(_Alike)
        self._key = lru_cache(maxsize=_KEPT)(self._key_of)
        # floods repeat lines, and each line is searched up to three times: first, second and third of a window
        self._search = lru_cache(maxsize=_KEPT)(self._search_in)
        self._together = lru_cache(maxsize=_KEPT)(self._combined)

    def hits(self, window: Window) -> tuple[Hit, ...]:
        """Return the matches that start on the first line of `window`; its other lines may continue a message."""
        if len(window[0]) > LINE_LIMIT:
            lines = [segment_readings(suspicious_segments(window[0], self.may_match))]
        else:
            lines = [readings(line) for line in window]
        among = self._filter.candidates("\n".join(reading.text for line in lines for reading in line).encode())
        if not among:
            return ()
        texts = [line[0].text if line else "" for line in lines]
        said = b""
        # In floods of one message, the candidates that matched before are tried alone; one search with all others
        # together then shows that none of them matches.
        alike = self._alike(among)
        alike.seen += 1
        if alike.seen > _LOOKED_AT_IN_FULL:
            found, beside = self._alone(lines, alike.matched)
            left = among.difference(found, beside)
            if left:
                said = _said(lines[0], texts)
            if not left or not self._may_match(left, said):
                return tuple(found[index] for index in sorted(found))

        # Two cleaned lines may join to a literal that the raw bytes lack. Blocks without a literal are skipped, so such
        # a match must be skipped too: else it would depend on where a block ends.
        if not self.may_match(b"".join(window)):
            return ()
        said = said or _said(lines[0], texts)
        left = frozenset(index for index in among if self._may_match(frozenset((index,)), said))
        # a signature that matches one of the next lines alone is not searched in joins: its match starts there
        found, beside = self._alone(lines, left)
        alike.matched = alike.matched.union(found, beside)
        for index, (text, match) in self._wrapped(texts, left.difference(found, beside)).items():
            found[index] = self._hit(index, Reading(text, window[0]), match)
        return tuple(found[index] for index in sorted(found))

    def noise(self, lines: Sequence[bytes]) -> frozenset[int]:
        """Return the indexes of `lines` that do no harm, wherever they stand: known warnings, and interruptions.

        Other processes write them into the lines of a message, and the writer of a report pastes them there.
        """
        program = any_by_line(self._noise) if self._noise else None
        if program is None or program.search(b"\n".join(lines)) is None:
            return frozenset()
        found: set[int] = set()
        for index, line in enumerate(lines):
            if program.search(line[:LINE_LIMIT]) is None:
                continue
            found.add(index)
            if _INTERRUPTED in line:
                found.update(_traceback(lines, index))
            # a warning shows the line of source that it came from
            elif any(_SOURCE_OF_WARNING.match(source) for source in lines[index + 1 : index + 2]):
                found.add(index + 1)
        return frozenset(found)

    def _may_match(self, among: frozenset[int], said: bytes) -> bool:
        """Whether a signature of `among` may match a line of `said`; true if they cannot be combined."""
        program = self._together(among)
        return program is None or program.search(said) is not None

    def _combined(self, among: frozenset[int]) -> Any | None:
        return any_by_line(tuple(self._pattern(index) for index in sorted(among)))

    def _alone(
        self, lines: Sequence[tuple[Reading, ...]], among: frozenset[int]
    ) -> tuple[dict[int, Hit], frozenset[int]]:
        """Return the hits of `among` on the first of `lines`, and the signatures that match another one instead."""
        found: dict[int, Hit] = {}
        for reading in lines[0]:
            for index, match in self._matching(reading.text, among).items():
                found[index] = self._hit(index, reading, match)
            among = among.difference(found)
        if not among:
            return found, among
        beside = [index for line in lines[1:] if line for index in self._matching(line[0].text, among)]
        return found, frozenset(beside)

    def _matching(self, text: str, among: frozenset[int]) -> dict[int, Any]:
        """Return the signatures of `among` that match `text`, with RE2's matches."""
        if not among:
            return {}
        search = self._search if len(text) <= _LONGEST_KEPT else self._search_in
        return {index: match for index in among if (match := search(index, text)) is not None}

    def _search_in(self, index: int, text: str) -> Any | None:
        return compiled(self._pattern(index)).search(text.encode())

    def _wrapped(self, lines: Sequence[str], among: frozenset[int]) -> dict[int, tuple[str, Any]]:
        """Return the signatures of `among` that match a join of `lines`, each with the shortest such join."""
        found: dict[int, tuple[str, Any]] = {}
        left = among
        for size in range(2, len(lines) + 1) if among else ():
            # a match within the following lines alone starts there, and is found when they are first
            left = left.difference(*(self._matching(join, left) for join in _joins(lines[1:size])))
            for join in _joins(lines[:size]):
                for index, match in self._matching(join, left.difference(found)).items():
                    found[index] = join, match
            left = left.difference(found)
        return found

    def _pattern(self, index: int) -> str:
        return self.entries[index][1].pattern

    def _hit(self, index: int, reading: Reading, match: Any) -> Hit:
        # groups() takes as long as a search, and most patterns have no group whose value is needed
        key, groups = self._key(index, match.groups() if self._groups(index) else ())
        return Hit(key, groups, reading, match.start())

    def _key_of(self, index: int, values: tuple[bytes | None, ...]) -> tuple[Key, dict[str, str]]:
        """Return the identity of a match of signature `index` with these values of groups, and its named groups."""
        # redacted before they are compared, shown or stored: a log may have tokens in URLs
        playbook, signature = self.entries[index]
        groups = {
            name: redact_text(value.decode("utf-8", "replace"))[:SHOWN_CHARACTERS]
            for name, number in self._groups(index).items()
            if (value := values[number - 1]) is not None
        }
        return (playbook, signature.id, tuple(sorted(groups.items()))), groups


def _traceback(lines: Sequence[bytes], end: int) -> range:
    """Return the indexes of the traceback that ends on line `end`; none where its frames or its head are not there."""
    start = end - 1
    while start >= 0 and lines[start][:1].isspace():
        start -= 1
    return range(start, end) if start >= 0 and lines[start].startswith(b"Traceback (most recent") else range(0)


def _said(first: Sequence[Reading], texts: Sequence[str]) -> bytes:
    """Return, as lines, the readings of the `first` line and all joins of `texts` that begin with the first."""
    joins = (join for size in range(2, len(texts) + 1) for join in _joins(texts[:size]))
    return "\n".join([*(reading.text for reading in first), *joins]).encode()


def _joins(lines: Sequence[str]) -> tuple[str, ...]:
    """Return all joins of `lines`."""
    # terminals cut inside words, editors between words: both are tried at each line end
    found = [lines[0]]
    for line in lines[1:]:
        found = [before + separator + line for before in found for separator in (" ", "")]
    return tuple(found)


def _excerpt(text: str, start: int) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    # a fifth of the excerpt precedes the match: messages matter more than their prefixes
    begin = max(0, min(start - SHOWN_CHARACTERS // 5, len(text) - SHOWN_CHARACTERS))
    return text[begin : begin + SHOWN_CHARACTERS]
