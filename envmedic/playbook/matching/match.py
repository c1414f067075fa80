"""Search of a log for signatures, in one linear pass and bounded memory.

Blocks of about a megabyte are first searched for the literals that matches must contain. Only the lines around a
literal are cleaned and searched by the patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envmedic.model.playbook import LoadedPlaybook, ReadText, TextMatch
from envmedic.playbook.matching.blocks import blocks, joined
from envmedic.playbook.matching.build_log import BuildLog
from envmedic.playbook.matching.failures import TextEnd, around
from envmedic.playbook.matching.forms import form_sentences
from envmedic.playbook.matching.lines import Reading
from envmedic.playbook.matching.log_stream import LogStream
from envmedic.playbook.matching.named_paths import named_paths
from envmedic.playbook.matching.signatures import Hit, Key, Signatures

DISTINCT_MATCHES = 64
"""Limit of distinct matches of one signature; further ones count for the first."""
_ERROR_WITHIN = 5
"""Lines of a frame and of the error below it, which one signature may span."""
LATER_LINES = 16
"""Limit of the numbers that are kept of lines which repeat a match, the last line apart."""


def scan(lines: Iterable[bytes], playbooks: Sequence[LoadedPlaybook]) -> tuple[TextMatch, ...]:
    """Return every match of a signature of `playbooks` in `lines`, by line number, as `read_text` does."""
    return read_text(lines, playbooks).matches


def read_text(lines: Iterable[bytes], playbooks: Sequence[LoadedPlaybook]) -> ReadText:
    """Return the matches of signatures of `playbooks` in `lines`, and the failures that need no signature.

    `lines` is a `LogStream`, or any iterable of lines with or without their ends.
    """
    signatures = Signatures(playbooks)
    if not signatures.entries:
        return ReadText()
    tally, tail, build = _Tally(), TextEnd(), BuildLog()
    for block in blocks(lines.chunks() if isinstance(lines, LogStream) else joined(lines)):
        build.see(block)
        tally.leave(tail.begin)
        for number, window in block.windows(signatures.may_match, signatures.noise):
            for hit in signatures.hits(window):
                tally.add(hit, number)
        tail.add(block)
    named = named_paths(tail.lines())
    built = list(build.sentences())
    said = [(line.number, line.text, sentence) for line, sentence in built]
    # a guess by the form of a sentence is for lines whose words nothing knows
    known = tally.recent.union(line.number for line, _ in built if not line.by_any_program)
    formed = form_sentences(item for item in tail.lines() if item[0] not in known)
    for number, text, sentence in (*said, *named.sentences, *formed):
        for hit in signatures.hits((sentence.encode(),)):
            # the words of the line itself were searched where they stand
            if hit.start == 0:
                tally.add(msgspec.structs.replace(hit, reading=Reading(text, text.encode())), number)
    matches = tuple(_with_call(match, named.calls) for match in tally.matches())
    failing = tail.failures()
    end = [*tail.lines()]
    harmless = frozenset(end[index][0] for index in signatures.noise([line for _, line in end]))
    told = around(end, failing, harmless)
    return ReadText(matches=matches, failures=failing, origin=named.origin, around=told)


def _with_call(match: TextMatch, calls: Sequence[tuple[int, str, str]]) -> TextMatch:
    """Return `match` with the packages of the error that it ends on: which asked for something, and which was asked."""
    ends = range(match.line_number, match.line_number + _ERROR_WITHIN)
    found = next(((caller, asked) for number, caller, asked in calls if number in ends), None)
    if found is None:
        return match
    told = {key: module for key, module in zip(("caller", "asked"), found, strict=True) if module}
    return msgspec.structs.replace(match, groups={**told, **match.groups})


class _Counted:
    """A match and the number of lines that have it."""

    __slots__ = ("count", "last", "later", "match")

    def __init__(self, match: TextMatch) -> None:
        self.match = match
        self.count = 0
        self.last = 0
        """Number of the last counted line."""
        self.later: list[int] = []
        """Numbers of the first lines after that of the match."""

    def counted(self) -> TextMatch:
        """The match with the lines that repeat it."""
        last = (self.last,) if self.count > len(self.later) + 1 else ()
        return msgspec.structs.replace(self.match, count=self.count, later_lines=(*self.later, *last))


class _Tally:
    """Matches with repetitions counted."""

    def __init__(self) -> None:
        self._counted: dict[Key, _Counted] = {}
        self._distinct: dict[tuple[str, str], list[_Counted]] = {}
        self.recent: set[int] = set()
        """Numbers of lines with a match, of those near the end of what was read."""

    def leave(self, begin: int) -> None:
        """Keep of the recent lines those from line `begin` on: a long log has millions."""
        self.recent = {number for number in self.recent if number >= begin}

    def add(self, hit: Hit, number: int) -> None:
        """Count a match on line `number`."""
        self.recent.add(number)
        # once for each line: the windows of a very long line overlap, and find a match twice
        counted = self._counted.get(hit.key) or self._new(hit, number)
        if counted.last == number:
            return
        if counted.count and len(counted.later) < LATER_LINES:
            counted.later.append(number)
        counted.count += 1
        counted.last = number

    def _new(self, hit: Hit, number: int) -> _Counted:
        known = self._distinct.setdefault(hit.key[:2], [])
        # bounds memory: a log can repeat one message with a million different addresses
        if len(known) >= DISTINCT_MATCHES:
            return known[0]
        counted = self._counted[hit.key] = _Counted(hit.match(number))
        known.append(counted)
        return counted

    def matches(self) -> tuple[TextMatch, ...]:
        """Return the matches by line number, and on one line by part."""
        found = (item.counted() for item in self._counted.values())
        return tuple(sorted(found, key=lambda match: (match.line_number, match.part)))
