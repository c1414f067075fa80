"""Lines of logs as people paste them, without what terminals, loggers and forums put around the message."""

from __future__ import annotations

import re

LINE_LIMIT = 64 * 1024
"""Longer lines, in bytes, are looked at in windows of this size."""
WINDOW_OVERLAP = 4 * 1024
"""Bytes that neighbouring windows share, so that no message is cut in two."""

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    rb"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles and hyperlinks
    rb"|[ -/]*[0-~])"
)
_ENTITIES = (
    (b"&#39;", b"'"), (b"&#x27;", b"'"), (b"&apos;", b"'"), (b"&quot;", b'"'),
    (b"&lt;", b"<"), (b"&gt;", b">"), (b"&nbsp;", b" "), (b"&amp;", b"&"),
)  # fmt: skip
_LOWER = bytes(range(256)).lower()
# digits and most punctuation go too: they tell little, and a fifth less is left to search
_SQUEEZED_AWAY = bytes(range(33)) + b"\"'`|>\\" + b"0123456789.,=[](){}-/#%*" + bytes(range(127, 256))
_QUOTES = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u00b4": "'", "`": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00a0": " ",
})  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPED_QUOTE = re.compile(r"\\+(?=['\"])")
_PREFIXES = re.compile(
    r"""(?x)
    \s+
    | \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[:,]?(?=\s|$)
    | \[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?=\s)
    | [A-Z][a-z]{2}\s{1,2}\d{1,2}\ \d\d:\d\d:\d\d\ [\w.-]{1,64}\ [\w./@-]{1,64}(?:\[\d{1,9}\])?:(?=\s)
    | \[?(?:rank|default|worker)[\ _]?\d{1,5}\]?:(?=\s)
    | \[\d{1,5},\d{1,5}\]<std(?:err|out)>:
    | \([A-Za-z_]\w{0,63}(?:\ [\w.=:-]{1,64},?){1,4}\)(?=\s)
    | (?:stdout|stderr)\ [FP](?=\s)
    | \#\d{1,5}\ \d{1,6}\.\d{1,6}(?=\s)
    | E(?=\s{2,})
    | \d{1,7}(?:[:|\u2502\t])(?=\s)
    | [>|\u2500-\u257f\u2580-\u259f]
    """
)
_TAIL = re.compile(r"[\s|\u2500-\u257f]{1,512}$")
_MOST_PREFIXES = 40


def without_escapes(block: bytes) -> bytes:
    """`block` without terminal escapes and with HTML entities as characters."""
    if b"\x1b" in block:
        block = _ESCAPE.sub(b"", block)
    if b"&" in block:
        for entity, character in _ENTITIES:
            block = block.replace(entity, character)
    return block


def squeezed(block: bytes) -> bytes:
    """`block` in lower case without line ends, spaces, quotes, borders, digits and all that is not ASCII.

    Whatever `cleaned` and a join of lines make of a part of the block, an atom of it is found here.
    """
    return without_escapes(block).translate(_LOWER, _SQUEEZED_AWAY)


def cleaned(line: bytes) -> str:
    """The message in `line`: escapes, borders, quoting, timestamps and rank prefixes removed."""
    text = without_escapes(line).decode("utf-8", "replace")
    if "`" in text or not text.isascii():
        text = text.translate(_QUOTES)
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    if "\\" in text:
        text = _ESCAPED_QUOTE.sub("", text)
    start = 0
    for _ in range(_MOST_PREFIXES):
        prefix = _PREFIXES.match(text, start)
        if prefix is None:
            break
        start = prefix.end()
    tail = _TAIL.search(text, max(start, len(text) - 512))
    return text[start : tail.start() if tail else None]


def segments(line: bytes) -> list[bytes]:
    """The parts of `line` that a terminal showed one over the other, cut into windows where too long."""
    parts = [part for part in line.split(b"\r") if part.strip()]
    return [window for part in parts for window in _windows(part)]


def _windows(part: bytes) -> list[bytes]:
    if len(part) <= LINE_LIMIT:
        return [part]
    step = LINE_LIMIT - WINDOW_OVERLAP
    return [part[start : start + LINE_LIMIT] for start in range(0, len(part) - WINDOW_OVERLAP, step)]
