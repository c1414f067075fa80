"""Mutations of samples: bytes flipped, cut, doubled and spliced, numbers at their limits, and the words of a format."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

LARGEST = 256 << 10
"""Bytes of an input: enough for what grows with the square to take minutes."""
_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)
COMMON = (
    b"\0", b"\n", b"\r\n", b"\r", b" ", b"\t", b"\x1b[31m", b"\x1b]0;t\x07", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xe2\x80\xae", b"\xc2\x9b", b"\xc2\x85", b"\xe2\x80\xa8", b"../", b"/etc/passwd", b"-rf", b"--", b"$(id)", b"`id`",
    b"'", b'"', b"\\", b"{", b"}", b"[", b"]", b"(", b")", b"<", b">", b"&", b"*", b"%s", b"%", b"{0}", b"{x}", b"#", b";",
    b"[bold]", b"[/]", b"[@click=app.quit]x[/]", b"99999999999999999999", b"1e999", b"nan", b"-1", b"0x", b"=", b":", b",",
    b"9" * 5000, b"0x" + b"f" * 5000,
)  # fmt: skip
"""What any format may trip over."""


def mutated(data: bytes, others: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> bytes:
    """`data` with a few mutations; `others` are samples to splice with, `words` those of the format."""
    changed = bytearray(data)
    for _ in range(1 << chance.randrange(4)):
        chance.choice(_MUTATIONS)(changed, others, words, chance)
        del changed[LARGEST:]
    return bytes(changed)


def _place(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _part(data: bytearray, chance: random.Random) -> tuple[int, int]:
    """Two places, near to each other more often than not."""
    start = _place(data, chance)
    length = min(chance.choice((1, 4, 16, 64, 1024, LARGEST)), len(data) - start)
    return start, start + (chance.randrange(length + 1) if length else 0)


def _flip(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    for _each in range(chance.randrange(1, 8) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    start, stop = _part(data, chance)
    data[start:stop] = chance.randbytes(stop - start)


def _cut(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    start, stop = _part(data, chance)
    del data[start:stop]


def _end(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    del data[_place(data, chance) :]


def _double(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    start, stop = _part(data, chance)
    data[stop:stop] = data[start:stop] * chance.choice((1, 2, 8))


def _many(data: bytearray, _: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> None:
    """One short text very often: what nests, and what is read again for each of its beginnings."""
    start, stop = _part(data, chance)
    text = chance.choice(
        (bytes(data[start : min(stop, start + 8)]), chance.choice((*COMMON, *words)), b" ", b"[", b"(")
    )
    data[start:start] = text * min(chance.choice((50, 1000, 20_000)), LARGEST // max(1, len(text)))


def _word(data: bytearray, _: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> None:
    start, stop = _part(data, chance)
    text = chance.choice(words) if words and chance.random() < 0.6 else chance.choice(COMMON)
    data[start : stop if chance.random() < 0.5 else start] = text


def _number(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    size = chance.choice((1, 2, 4, 8))
    value = chance.choice(_NUMBERS) + chance.choice((-1, 0, 0, 1))
    start = _place(data, chance)
    data[start : start + size] = (value % (1 << 8 * size)).to_bytes(size, "little")


def _digits(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    """A number in text becomes one at its limit."""
    places = [index for index in range(len(data)) if 0x30 <= data[index] <= 0x39][:4096]
    if places:
        start = chance.choice(places)
        data[start : start + 1] = str(chance.choice(_NUMBERS) * chance.choice((1, -1))).encode()


def _splice(data: bytearray, others: Sequence[bytes], _: Sequence[bytes], chance: random.Random) -> None:
    other = bytearray(chance.choice(others))
    start, stop = _part(data, chance)
    first, last = _part(other, chance)
    data[start:stop] = other[first:last]


def _swap(data: bytearray, _: Sequence[bytes], __: Sequence[bytes], chance: random.Random) -> None:
    """Lines in another order, or twice."""
    lines = bytes(data).split(b"\n")
    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
    if chance.random() < 0.5:
        lines[one], lines[two] = lines[two], lines[one]
    else:
        lines.insert(one, lines[two])
    data[:] = b"\n".join(lines)


_MUTATIONS: tuple[Callable[[bytearray, Sequence[bytes], Sequence[bytes], random.Random], None], ...] = (
    _flip, _overwrite, _cut, _end, _double, _many, _word, _word, _number, _number, _digits, _splice, _splice, _swap,
)  # fmt: skip
