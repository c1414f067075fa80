"""Failures that a log repeats, matched once for all lines that differ only in numbers and addresses.

Lines are told apart by what `alike.masked` leaves of them. What is found on the first of such lines is worked out in
full, as it is everywhere else; then it is settled how much of that holds for all of them: that a signature doesn't
match because no digits could make it, that it matches because it cannot tell digits apart, or that one search, of one
pattern in one place, decides. In the same way it is settled for lines that follow one another whether something may
match their join. Where neither can be said, lines are looked at in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, count, islice
from typing import Any, NamedTuple

from envmedic.playbook.matching import alike
from envmedic.playbook.matching.blocks import JOINED_LINES, Begin, Block, underlines
from envmedic.playbook.matching.gate import Gate
from envmedic.playbook.matching.lines import Reading, readings
from envmedic.playbook.matching.patterns import compiled
from envmedic.playbook.matching.signatures import KEPT_BYTES, Hit, Signatures, every_join

_KEPT_KINDS = 4096
_LONGEST_LINE = KEPT_BYTES // JOINED_LINES
"""Lines alike are remembered up to this length, in bytes."""
_FIRST = 2
"""Times that lines alike are seen until it is settled what holds for all of them."""
_KEPT_HITS = 128
"""Of one signature on lines alike, by groups."""
_KEPT_LINES = 256

Window = tuple[bytes, ...]


class Witness:
    """A part of lines alike in which one search decides whether a signature matches them."""

    __slots__ = ("_hits", "_index", "_part", "_program", "_signatures", "_span")

    def __init__(self, index: int, span: slice, part: int, signatures: Signatures) -> None:
        self._index = index
        self._span = span
        self._part = part
        self._signatures = signatures
        self._program = compiled(signatures.pattern(index))
        self._hits: dict[tuple[bytes | None, ...], Hit] = {}

    def hit(self, line: bytes) -> Hit | None:
        """What the signature finds on `line`; None if nothing."""
        text = line[self._span]
        found = self._program.search(text)
        if found is None:
            return None
        groups: tuple[bytes | None, ...] = found.groups()
        known = self._hits.get(groups)
        if known is None:
            known = self._signatures.hit(self._index, Reading(text.decode(), line, self._part))
            if len(self._hits) < _KEPT_HITS:
                self._hits[groups] = known
        return known


class Settled(NamedTuple):
    """What holds for all lines that are alike."""

    found: tuple[Hit | Witness, ...]
    always: tuple[Hit, ...] | None
    """What is found on each of them; None where witnesses are to be asked."""
    indexes: frozenset[int]
    """The signatures that match."""
    beside: frozenset[int]
    """Those that match what is joined with the lines before."""
    text: str
    """This, with all runs of digits alike."""
    span: slice | None
    """Where it stands in each of the lines; None where it does not stand there as it is read."""

    def joined(self, line: bytes) -> str:
        """What is joined with the lines before and after `line`."""
        return _first(line) if self.span is None else line[self.span].decode()

    def hits(self, line: bytes) -> tuple[Hit, ...] | None:
        """What is found on `line` alone; None where a witness says otherwise than before."""
        if self.always is not None:
            return self.always
        hits = [item if isinstance(item, Hit) else item.hit(line) for item in self.found]
        found = tuple(hit for hit in hits if hit is not None)
        return found if len(found) == len(hits) else None


class Kind:
    """Lines that are alike."""

    __slots__ = ("_left", "_shape", "name", "settled")

    def __init__(self, shape: bytes | None) -> None:
        self._shape = shape or b""
        self.settled: Settled | None = None
        self.name: int | None = None
        """Shared with lines of other kinds that don't differ for the join with their neighbours."""
        self._left = -1 if shape is None or alike.uncertain(shape) else _FIRST
        """Times that it is still to be seen before it is settled; negative if that is no use."""

    def seen(self, line: bytes, signatures: Signatures) -> None:
        """Settle what holds for all such lines, where they have been seen often enough."""
        self._left -= 1
        if self._left == 0:
            self.settled = settled(line, self._shape, signatures)


class LineSequence:
    """Lines of some kinds that follow one another."""

    __slots__ = ("_seen", "apart")

    def __init__(self) -> None:
        self._seen = False
        self.apart = False
        """Whether their join says nothing that the lines don't say alone."""

    def seen(self, lines: Sequence[Settled], signatures: Signatures) -> None:
        """Settle it, the second time that they are seen."""
        if self._seen and not self.apart:
            self.apart = apart(lines, signatures)
        self._seen = True


class Found(NamedTuple):
    """What matches start on a line of a block."""

    number: int
    """Of the line, from 0."""
    begin: int
    hits: tuple[Hit, ...]
    times: int = 1
    """Lines of the block on which this is found, of which this is the first."""


class _Known:
    """What is settled of some lines of a block."""

    __slots__ = ("hits", "number", "times")

    def __init__(self, number: int, hits: tuple[Hit, ...]) -> None:
        self.number = number
        """Of the first of them."""
        self.hits = hits
        self.times = 0


class Repeats:
    """Signatures that remember what they found on lines alike."""

    def __init__(self, signatures: Signatures) -> None:
        names = count()
        self._signatures = signatures
        self._kind = lru_cache(maxsize=_KEPT_KINDS)(Kind)
        self._kind_of: Callable[[bytes], Kind] = lru_cache(maxsize=_KEPT_LINES)(
            lambda line: self._kind(alike.masked(line))
        )
        self._name: Callable[..., int] = lru_cache(maxsize=_KEPT_KINDS)(lambda *_: next(names))
        self._following: Callable[..., LineSequence] = lru_cache(maxsize=_KEPT_KINDS)(lambda *_: LineSequence())

    def among(self, block: Block, begun: Iterable[Begin]) -> Iterator[Found]:
        """What is found on the lines of `block` that are `begun`, by number and beginning."""
        for number, begin in begun:
            yield Found(number, begin, self.hits(block.window(begin)))

    def throughout(self, block: Block, gate: Gate) -> list[Found]:
        """What is found in a `block` of which a great part is suspicious.

        It is cut into lines at once. `gate` looks for literals only where lines are not settled.
        """
        lines = block.lines()
        known, unsettled = self._known(lines, block.starts())
        begins = list(accumulate(map(len, lines), initial=0))
        found = [Found(item.number, begins[item.number] + item.number, item.hits, item.times) for item in known]
        if unsettled:
            told = _told(lines, unsettled, gate)
            found += self.among(block, ((number, begins[number] + number) for number in told))
            found.sort(key=lambda item: item.number)
        return found

    def _known(self, lines: Sequence[bytes], most: int) -> tuple[Iterable[_Known], list[int]]:
        """What is settled of the first `most` of `lines`, and the numbers of the others."""
        hits, names = self._settled(lines)
        following = map(self._following, names, *_next(lines, names))
        known: dict[int, _Known] = {}
        unsettled: list[int] = []
        for number, state in enumerate(islice(following, most)):
            found = hits[number]
            if found is None or not state.apart:
                unsettled.append(number)
            elif found:
                same = known.get(id(found))
                if same is None:
                    same = known[id(found)] = _Known(number, found)
                same.times += 1
        return known.values(), unsettled

    def _settled(self, lines: Sequence[bytes]) -> tuple[list[tuple[Hit, ...] | None], list[int | None]]:
        """What is found on each of `lines` alone, and the name of its kind, where they are settled."""
        shapes = alike.masked(b"\n".join(lines)).split(b"\n")
        kinds = [self._kind(shape if len(shape) <= _LONGEST_LINE else None) for shape in shapes]
        hits = [
            None if kind.settled is None else kind.settled.hits(line) for kind, line in zip(kinds, lines, strict=True)
        ]
        names = [None if found is None else kind.name for kind, found in zip(kinds, hits, strict=True)]
        return hits, names

    def hits(self, window: Window) -> tuple[Hit, ...]:
        """Matches that start on the first line of `window`: what `Signatures.hits` finds."""
        if max(map(len, window)) > _LONGEST_LINE:
            return self._signatures.hits(window)
        kinds = [self._kind_of(line) for line in window]
        found = self._alone(window, kinds)
        if found is None:
            found = self._signatures.hits(window)
            for kind, line in zip(kinds, window, strict=True):
                self._seen(kind, line)
        return found

    def _seen(self, kind: Kind, line: bytes) -> None:
        if kind.settled is None:
            kind.seen(line, self._signatures)
        if kind.settled is not None and kind.name is None:
            kind.name = self._name(kind.settled.text, kind.settled.indexes, kind.settled.beside)

    def _alone(self, window: Window, kinds: Sequence[Kind]) -> tuple[Hit, ...] | None:
        """What is found on the first line alone, where nothing else can be; None where that is not settled."""
        lines = [kind.settled for kind in kinds if kind.settled is not None]
        if len(lines) < len(window):
            return None
        found = [line.hits(text) for line, text in zip(lines, window, strict=True)]
        if any(hits is None for hits in found):
            return None
        following = self._following(*(kind.name for kind in kinds))
        if not following.apart:
            following.seen(lines, self._signatures)
        return found[0] if following.apart or self._apart(window, lines) else None

    def _apart(self, window: Window, lines: Sequence[Settled]) -> bool:
        """Whether the joins of `window` say nothing that its lines don't say alone."""
        texts = [line.joined(text) for line, text in zip(lines, window, strict=True)]
        left = _besides(self._signatures.candidates("\n".join(texts).encode()), lines)
        return not left or not self._signatures.possible(every_join(texts), left)


def _next(lines: Sequence[bytes], names: Sequence[int | None]) -> tuple[list[int | None], list[int | None]]:
    """Of `names`, for each of `lines` those of the two that follow it, past one that only underlines another."""
    second, third, fourth = ([*names[start:], *[None] * start] for start in range(1, JOINED_LINES + 1))
    some = b"^" in b"".join(lines)  # most logs have none
    marked = {number for number, line in enumerate(lines) if underlines(line)} if some else set()
    for number in marked:
        if number:
            second[number - 1], third[number - 1] = third[number - 1], fourth[number - 1]
        if number > 1 and number - 1 not in marked:
            third[number - 2] = fourth[number - 2]
    return second, third


def _told(lines: Sequence[bytes], among: Sequence[int], gate: Gate) -> list[int]:
    """Numbers `among` those of `lines` on which a match may start, by the literals that `gate` finds."""
    numbers = sorted({number + after for number in among for after in range(JOINED_LINES + 1)})
    rest = [number for number in numbers if number < len(lines)]
    begun = gate.lines(b"\n".join(lines[number] for number in rest))
    told = {rest[place - before] for place in begun for before in range(min(place, JOINED_LINES) + 1)}
    return sorted(told.intersection(among))


def settled(line: bytes, shape: bytes, signatures: Signatures) -> Settled | None:
    """What `line` tells of all that are masked as `shape`; None where too much depends on what is masked."""
    found = signatures.found((line,))
    if any(_unsure(shape, found, signatures)):
        return None
    matched = [_matched(index, found[index], line, signatures) for index in sorted(found)]
    known = tuple(item for item in matched if item is not None)
    if len(known) < len(matched):
        return None
    hits = tuple(item for item in known if isinstance(item, Hit))
    indexes = frozenset(found)
    return Settled(
        found=known,
        always=hits if len(hits) == len(known) else None,
        indexes=indexes,
        beside=signatures.indexes(_first(line), indexes) if indexes else indexes,
        text=alike.shortened(_first(shape)),
        span=_span(_first(line).encode(), line),
    )


def _span(text: bytes, line: bytes) -> slice | None:
    """Where `text`, which is read in `line`, stands there as it is; None if that is nowhere, or not certain."""
    if not text:
        return slice(0)
    start = line.find(text)
    looked_for, shape = alike.masked(text), alike.masked(line)
    if start < 0 or shape.find(looked_for) < shape.rfind(looked_for):
        return None
    return slice(start, start + len(text))


def _first(line: bytes) -> str:
    """What is joined with the lines before and after."""
    return next((reading.text for reading in readings(line)), "")


def _matched(index: int, reading: Reading, line: bytes, signatures: Signatures) -> Hit | Witness | None:
    """What holds of a signature that matches `reading`; None if that is not the one reading of `line`."""
    pattern = signatures.pattern(index)
    text = reading.text.encode()
    matched = compiled(pattern).search(text)
    if alike.indifferent(pattern) and _is_the_same(matched, pattern, alike.masked(text)):
        return signatures.hit(index, reading)
    span = _span(text, line)
    return None if span is None or len(readings(line)) > 1 else Witness(index, span, reading.part, signatures)


def _is_the_same(matched: Any, pattern: str, text: bytes) -> bool:
    """Whether a match is found, with the same groups, in all that is masked as `text`, by an indifferent pattern."""
    groups: tuple[bytes, ...] = matched.groups(b"")
    if any(byte in b"0123456789" for group in groups for byte in group):
        return False
    begin, end = matched.span()
    if groups and alike.has_addresses(text):  # another match may come first, or go further, where these differ
        widest = alike.widened(pattern, short=False)
        found = None if widest is None else widest.search(text)
        if found is None or found.start() < begin:
            return False
        end = found.end()
    return all(end <= start or begin >= stop for start, stop in alike.addresses(text))


def _unsure(shape: bytes, found: Mapping[int, Reading], signatures: Signatures) -> Iterator[bool]:
    """Whether each signature besides those `found` may match on other lines that are masked as `shape`."""
    text = "\n".join(reading.text for reading in readings(shape)).encode()
    if alike.has_addresses(shape):
        among = signatures.filter.possible(text)
    else:
        candidates = signatures.candidates(text)
        among = frozenset(index for index in candidates if not alike.indifferent(signatures.pattern(index)))
    yield from (_may_match(index, text, signatures, short=False) for index in among.difference(found))


def _may_match(index: int, text: bytes, signatures: Signatures, *, short: bool) -> bool:
    program = alike.widened(signatures.pattern(index), short=short)
    return program is None or program.search(text) is not None


def apart(lines: Sequence[Settled], signatures: Signatures) -> bool:
    """Whether the joins of lines of these kinds say nothing that the lines don't say alone, whatever is masked."""
    texts = [line.text for line in lines]
    text = "\n".join(texts).encode()
    among = signatures.filter.possible(text) if alike.has_addresses(text) else signatures.candidates(text)
    joins = "\n".join(every_join(texts)).encode()
    return not any(_may_match(index, joins, signatures, short=True) for index in _besides(among, lines))


def _besides(among: frozenset[int], lines: Sequence[Settled]) -> frozenset[int]:
    """The signatures `among` that match none of `lines` alone: others are not looked for in joins with the first."""
    first, *others = lines
    return among.difference(first.indexes, *(line.beside for line in others))
