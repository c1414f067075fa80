"""Lines that differ only in numbers and addresses, and what that may change for a pattern.

A restart loop or a thousand ranks say the same thing a million times, each time with another timestamp, rank,
process or pointer. `masked` makes such lines equal. What a line is read as does not depend on which digits stand in
it, apart from `uncertain` ones; whether a pattern matches may. `indifferent` patterns cannot tell digits apart, and
what the `widened` expression of another one doesn't find is found in no line that is masked the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from envmedic.playbook.matching.patterns import by_line

_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_HEXADECIMAL = bytes.maketrans(b"abcdef", b"0" * 6)
_POINTER = re.compile(rb"0x[0a-f]{12}\b")
_ZERO_POINTER = b"0x" + b"0" * 12
"""What most addresses become, without a call for each."""
_ADDRESS = re.compile(rb"0x0*[a-f][0a-f]*\b")
"""In a text whose digits are masked. Of an address in capitals only the digits are."""
_MASKED_ADDRESS = re.compile(rb"0x0+\b")
_UNCERTAIN = re.compile(rb"%00|\\[ux0]|&\\*#|<[\\/]*h")
"""Characters written by their number, in masked lines: as JSON and C write them, as entities; and headings of HTML."""
_UNCERTAIN_WITH_ESCAPES = re.compile(rb"&[^\n]*#|<[^\n]*h")
"""Where escapes of terminals may stand in these."""
_TOKENS = re.compile(
    r"""(?x)
    (?P<opened>\(\?P?<\w+>|\(\?[imsU-]*:|\((?!\?))
    | (?P<kept>\(\?[imsU-]+\)|[)|^$]|\\[bBAzstnrfv])
    | (?P<often>[*+?]\??)
    | (?P<repeated>\{\d+(?:,\d*)?\}\??)
    | (?P<listed>\.|\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{\^?\w+\}|\\.|[^\]\\])*\]
        | \\(?:[dDwWS]|[pP](?:\{\^?\w+\}|\w)|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}))
    | (?P<literal>\\[^\w\s]|[^\\])
    """,
    re.DOTALL,
)
_AT_LEAST = re.compile(r"\{(?:0*[1-9]\d*,|(?=\d+\}))")
_QUANTIFIERS = ("often", "repeated")
_RUN = re.compile("00+")
_DIGITS = "0123456789"
_MASKED_CHARACTERS = frozenset("0123456789abcdefABCDEF")
"""Capitals for patterns that don't regard case."""

_Tokens = list[tuple[str, str]]
"""The parts of a pattern, each after its kind."""


def masked(content: bytes) -> bytes:
    """`content` with every digit, and every letter of an address, as a zero. Lengths and lines stay."""
    found = content.translate(_ZEROS)
    if b"0x" in found:
        found = _ADDRESS.sub(_zeros, _POINTER.sub(_ZERO_POINTER, found))
    return found


def _zeros(address: re.Match[bytes]) -> bytes:
    return address[0].translate(_HEXADECIMAL)


def has_addresses(content: bytes) -> bool:
    """Whether letters may be masked in `content`, which is."""
    return _MASKED_ADDRESS.search(content) is not None


def addresses(content: bytes) -> list[tuple[int, int]]:
    """Where these stand."""
    return [found.span() for found in _MASKED_ADDRESS.finditer(content)]


def uncertain(content: bytes) -> bool:
    """Whether digits in `content`, which is masked, may decide how it is read."""
    if not any(sign in content for sign in b"\\%&<"):
        return False
    if b"\x1b" in content and _UNCERTAIN_WITH_ESCAPES.search(content) is not None:
        return True
    return _UNCERTAIN.search(content) is not None


@lru_cache(maxsize=4096)
def indifferent(pattern: str) -> bool:
    """Whether `pattern` matches the same parts of texts that differ only in their digits."""
    tokens = _tokens(pattern)
    return tokens is not None and all(
        token not in _DIGITS if kind == "literal" else kind != "listed" or _takes_all_or_none(token)
        for kind, token in tokens
    )


def _takes_all_or_none(listed: str) -> bool:
    program = by_line(listed)
    return len({program.search(digit.encode()) is None for digit in _DIGITS}) == 1


@lru_cache(maxsize=8192)
def widened(pattern: str, *, short: bool) -> Any | None:
    """A program that finds something in masked lines if `pattern` matches a line that they stand for.

    It finds no less than the longest of such matches, and nothing after where the first of them may begin.
    With `short` lines are meant that are `shortened` too, where a zero stands for any number of them. None where such
    a program is not known.
    """
    import re2  # noqa: PLC0415

    tokens = _tokens(pattern)
    if tokens is None:
        return None
    inside = _continuing(tokens) if short else [False] * len(tokens)
    parts = [_widened(kind, token, within=within) for (kind, token), within in zip(tokens, inside, strict=True)]
    try:
        return by_line("".join(parts), longest=True)
    except re2.error:  # larger than what RE2 is allowed
        return None


def _widened(kind: str, token: str, *, within: bool) -> str:
    """`token` so that it takes a zero for what that may stand for; nothing where it may be `within` an earlier one."""
    if kind == "repeated":
        return _AT_LEAST.sub("{1,", token)
    if kind not in {"literal", "listed"} or not _takes_masked(token):
        return token
    return f"(?:{token}|0|)" if within else f"(?:{token}|0)"


def _continuing(tokens: _Tokens) -> list[bool]:
    """For each of `tokens` whether what a match has before it may be masked."""
    found: list[bool] = []
    groups = [_Group(begins=False)]
    before = False
    for number, (kind, token) in enumerate(tokens):
        found.append(before)
        if kind == "opened":
            before = before or _is_repeated(tokens, number)
            groups.append(_Group(begins=before))
        elif token == "|":  # noqa: S105  # of an expression
            groups[-1].ends |= before
            before = groups[-1].begins
        elif token == ")" and len(groups) > 1:  # noqa: S105
            group = groups.pop()
            before = before or group.begins or group.ends
        elif kind in _QUANTIFIERS:
            before = before or found[number - 1]
        elif kind in {"literal", "listed"}:
            before = _takes_masked(token)
    return found


@dataclass
class _Group:
    begins: bool
    """Whether what stands before it may be masked."""
    ends: bool = False
    """Whether what an alternative ends with may be masked."""


def _is_repeated(tokens: _Tokens, start: int) -> bool:
    """Whether the group that is opened at `start` may come again."""
    depth = 0
    for number in range(start, len(tokens)):
        depth += (tokens[number][0] == "opened") - (tokens[number][1] == ")")
        if not depth:
            return number + 1 < len(tokens) and tokens[number + 1][0] in _QUANTIFIERS
    return True


@lru_cache(maxsize=1024)
def _takes_masked(token: str) -> bool:
    program = by_line(token)
    return any(program.search(character.encode()) is not None for character in _MASKED_CHARACTERS)


def shortened(text: str) -> str:
    """`text`, which is masked, with each run of zeros as one."""
    return _RUN.sub("0", text)


def _tokens(pattern: str) -> _Tokens | None:
    """The parts of `pattern` with their kinds; None where one is not followed."""
    found = list(_parts(pattern))
    return found if sum(len(token) for _, token in found) == len(pattern) else None


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    at = 0
    while (token := _TOKENS.match(pattern, at)) is not None:
        yield token.lastgroup or "", token.group()
        at = token.end()
