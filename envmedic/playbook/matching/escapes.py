"""What stands between the characters of a message in raw logs, as expressions for one program that copies nothing.

`lines.views` takes escapes and tags away before anything is looked for, in Python and on a copy. Where a large
log has no others than `between` allows, its raw bytes can be searched instead: everything that `views` takes away
there is passed over. `beyond` finds where that is not so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from envmedic.playbook.matching.lines import SQUEEZED_AWAY
from envmedic.playbook.matching.patterns import bytewise

_WRITTEN = rb"\\(?:u001[bB]|x1[bB]|033)"
_ESCAPE = (
    rb"(?:\x1b|" + _WRITTEN + rb")(?:\[[0-?]*[ -/]*[@-~]"
    rb"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    rb"|[ -/]*[0-~])"
)
"""No less than what `lines` takes for an escape, and somewhat more: what is found is looked at once more."""
_BLANK = rb"\\[nrt]"
_OPENED = rb"(?:<|\\u003[cC])"
_TAGS = (
    rb"(?:span|code|pre|font|strong|em|div|td|tr|th|li|ul|ol|details|summary|samp|kbd|tt|h[1-6]|br|p|b|i|a|u)"
    rb"(?:[ />]|\\u00)"
)
_KEPT = b"<&"
"""Written as ``\\u003c`` and ``\\u0026`` by programs that write JSON for browsers. They may begin tags and entities."""


BETWEEN = rb"[\x00-\x40\x5b-\x60\x7b-\xff]*"
"""Any number of what squeezing takes away, and of all else that is no letter: a class of few ranges compiles in half
the time, and what is found is looked at once more."""


def past_escapes(pattern: bytes) -> bytes:
    """`pattern`, which has `BETWEEN` between its characters, with escapes allowed there too."""
    for byte in _KEPT:
        pattern = pattern.replace(b"\\x%02x" % byte, b"(?:\\x%02x|\\\\u00%02x)" % (byte, byte))
    allowed = b"(?:" + b"|".join((BETWEEN[:-1], _ESCAPE, _BLANK, _written(_passed_over()))) + b")*"
    return pattern.replace(BETWEEN, allowed)


@cache
def beyond() -> Any:
    """The program that finds what takes or gives characters in other ways: tags, entities, letters that are escaped."""
    import re2  # noqa: PLC0415

    escape = rb"(?:\x1b|" + _WRITTEN + rb")"
    alternatives = (
        escape + rb"[\[ -?]*\\u00[2-7]",  # an escape that is itself written with escapes
        rb"\\(?:\\|" + _ESCAPE + rb")*" + _ESCAPE + rb"\\*[nrt]",  # a backslash that stands before `n` in the end
        _written(frozenset(range(0x20, 0x80)) - _passed_over() - frozenset(_KEPT)),
        _OPENED + rb"(?:/|\\u002[fF]|" + _TAGS + rb"|[a-z0-9]{0,7}" + escape + rb")",
        rb"(?:&|\\u0026)(?:#|\\u00|" + escape + rb"|[qalgn][a-z]{0,3}(?:;|\\u00|" + escape + rb"))",
    )
    return re2.compile(b"|".join(alternatives), bytewise())


def _passed_over() -> frozenset[int]:
    """ASCII that is squeezed away however it is written; a backslash may belong to what stands after it."""
    return frozenset(byte for byte in SQUEEZED_AWAY if 0x20 <= byte < 0x80) - frozenset(b"\\")  # noqa: PLR2004


def _written(characters: frozenset[int]) -> bytes:
    """Any of `characters` as JSON escapes it."""
    rows: dict[int, bytes] = {}
    for character in sorted(characters):
        low = b"%x" % (character % 16)
        rows[character // 16] = rows.get(character // 16, b"") + low + (low.upper() if low.isalpha() else b"")
    return rb"\\u00(?:" + b"|".join(b"%x[%b]" % (high, lows) for high, lows in rows.items()) + b")"
