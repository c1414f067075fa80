"""Cleaning of log lines: removes what terminals, loggers and forums add to a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache

import msgspec

LINE_LIMIT = 64 * 1024
"""Longer lines, in bytes, are read in windows of this size."""
WINDOW_OVERLAP = 4 * 1024
"""Bytes that adjacent windows share, so that no message is cut in two."""

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    rb"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles and hyperlinks
    rb"|[ -/]*[0-~])"
)
# escapes that JSON, repr() or a shell wrote as text; `[` must follow, so that other backslashes stay
_WRITTEN_ESCAPE = re.compile(rb"\\(?:u001[bB]|x1[bB]|033)(?=\[)")
_WRITTEN_ASCII = re.compile(rb"\\u00([2-7][0-9a-fA-F])")
_ENTITY = re.compile(rb"&(?:#(?:(\d{2,3})|[xX]([0-9a-fA-F]{2}));|(quot|apos|lt|gt|nbsp|amp);)")
_NAMED = {b"quot": b'"', b"apos": b"'", b"lt": b"<", b"gt": b">", b"nbsp": b" ", b"amp": b"&"}
# known names only: `<module>` and `<lambda>` in tracebacks are no tags
_TAG = re.compile(
    rb"</?(?:span|code|pre|font|strong|em|div|td|tr|th|li|ul|ol|details|summary|samp|kbd|tt|h[1-6])(?: [^<>\n]{0,200})?>"
    rb"|</?(?:br|p|b|i|a|u)(?: ?/|(?: [a-z]{2,8}=[^<>\n]{1,200}))?>"
)
_LOWER = bytes(range(256)).lower()
# Digits and most punctuation are removed too: they distinguish little, and a fifth less is left to search. Beyond
# ASCII, the bytes of borders, quotes and accents are removed; first bytes of letters of other scripts stay.
SQUEEZED_AWAY = (
    bytes(range(33)) + b"\"'`|>\\" + b"0123456789.,=[](){}-/#%*" + bytes(range(127, 0xC4)) + b"\xe2\xef\xfe\xff"
)
_CHARACTERS = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u00b4": "'", "\u2032": "'", "`": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\uff02": '"', "\uff07": "'",
    "\u00a0": " ", "\u2007": " ", "\u2009": " ", "\u202f": " ",
    "\u00ad": None, "\u200b": None, "\u200c": None, "\u200d": None, "\u2060": None, "\ufeff": None,
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "--", "\u2212": "-",
    "\uff1a": ":", "\uff0c": ",", "\uff08": "(", "\uff09": ")", "\uff1b": ";", "\uff1d": "=", "\uff0f": "/",
})  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPED_QUOTE = re.compile(r"\\+(?=['\"])")
_BREAK = re.compile(rb"\\{1,4}(?:r\\{1,4})?n")
_WRITTEN_BLANK = re.compile(rb"\\{1,4}[nrt]")
_PERCENT = re.compile(rb"%([2-7][0-9a-fA-F])")
_BACKSLASHED = re.compile(rb"\\(?:[nrt]|([\\/_*\[\]()<>#.!-]))")
_WIDE_GAP = b" " * 40
_GAP = re.compile(rb" {40,}")
_SPACED = re.compile(rb"(?:[!-~] (?:  ){0,8}){24,}")
"""Characters with a blank after each, blanks included."""
_FEW_BREAKS = 2
"""A line with no more parts is not split into lines: one written line end may be part of a path."""
_BORDERS = "".join(map(chr, range(0x2500, 0x2580)))
_DOCKER_TAIL = re.compile(r"(?:\\r)?\\n\"?,? ?\"(?:stream|time)\":.{0,200}$")
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|EXCEPTION)"
_DATE = r"\d{4}[-/]\d\d[-/]\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
# `re` and not RE2, which has no look-ahead: most prefixes count only before a blank. `re` backtracks and lines come
# from strangers, so repetitions are bounded.
_PREFIXES = rf"""(?x)
    \s+
    | \[?{_DATE}[T\ _]\d\d:\d\d(?::\d\d)?(?:[.,]\d{{1,9}})?(?:Z|\ ?[+-]\d\d:?\d\d)?\]?[:,]?(?=[\s|]|$)
    | \[?{_TIME}\]?:?(?=\s)
    | [A-Z][a-z]{{2}}\s{{1,2}}\d{{1,2}}\ \d\d:\d\d:\d\d\ [\w.-]{{1,64}}\ [\w./@-]{{1,64}}(?:\[\d{{1,9}}\])?:(?=\s)
    | \[?(?:[Rr]ank|RANK|default|worker)[\ _]?\d{{1,5}}\]?:
    | \[\d{{1,5}},\d{{1,5}}\]<std(?:err|out)>:
    | \[?std(?:err|out)\]?(?::|\ [FP](?=\s)|(?=\]))
    | \([A-Za-z_]\w{{0,63}}(?:\ [\w.=:-]{{1,64}},?){{1,4}}\)(?=\s)
    | \[?{_LEVEL}\]?\ +(?:{_DATE}|\d\d-\d\d)\ {_TIME}(?:\ \[?[\w./-]{{1,99}}:\d{{1,6}}\])?
    | [EWIFC]\d{{3,4}}\ {_TIME}\s+\d{{1,9}}\ [\w./-]{{1,99}}:\d{{1,6}}\]
    | \[[EWIF](?:\d{{3,4}}\ {_TIME})?\ [\w./-]{{1,99}}:\d{{1,6}}\]
    | \[{_LEVEL}(?:[|:][\w./-]{{1,99}}:\d{{1,6}})?\]
    | \[[\w./-]{{1,99}}:\d{{1,6}}(?::\w{{1,64}})?\](?=\s)
    | {_LEVEL}:[\w.]{{1,64}}:(?=\S) | {_LEVEL}\s{{1,8}}\|\ [\w.]{{1,64}}:[\w<>.]{{1,64}}:\d{{1,6}}\ -(?=\s)
    | -\ [\w.]{{1,64}}\ -\ {_LEVEL}\ -
    | (?:\#\#\[error\]|::error::|!!!)
    | \[\ {{0,6}}\d{{1,9}}\.\d{{3,9}}\](?=\s)
    | \#\d{{1,5}}\ \d{{1,6}}\.\d{{1,6}}(?=\s)
    | E(?=\s{{2,}})
    | [\w.-]{{1,64}}-\d{{1,3}}\s{{1,40}}\|(?=\s)
    | \d{{1,7}}(?:[:|\u2502\t])(?=\s)
    | -{{2,8}}>\s+\d{{1,7}}(?=\s)
    | \{{"log":\s?"
    | [-*+\u2022]\s+(?=\S) | \#{{1,6}}\s
    | [>|\u2500-\u257f\u2580-\u259f]
    """
"""Compiled for the first line that is cleaned: it takes as long as all other patterns here together."""
_TAIL = "".join(character for character in map(chr, range(0x3001)) if character.isspace()) + "|" + _BORDERS
_TAIL_CHARACTERS = 512
"""Most characters of `_TAIL` that are removed from the end of a line."""
_MOST_PREFIXES = 40
_PASSING = re.compile(
    r"""(?x)
    (?:.{0,80}?[\s\[|:-]|\W{0,3})(?:WARN(?:ING)?|INFO|DEBUG|NOTICE)[\s\]\[|:!-]   # levels of loggers
    | .{0,80}?\[(?:warn(?:ing)?|info|debug)\ *\]\s                                 # in lower case, as structlog does
    | .{0,4000}?(?:(?i:"(?:log_?)?(?:level|severity)(?:_?name)?":\ ?"(?:warn(?:ing)?|info|debug)")
        | (?<![\w.])(?:level|lvl|severity)=(?i:"?(?:warn(?:ing)?|info|debug)\b)     # logfmt
        | \b[A-Z]\w{1,60}Warning:                                              # categories of Python's warnings
        | (?<![^\s:\d)])[Ww]arning(?:\ \#?\d+)?(?:-D)?\s?:                     # compilers and linkers
        | \bpip's\ dependency\ resolver\ does\ not\ currently                  # an ERROR after which pip goes on
        | ,\ but\ you\ have\ .{1,80}\ which\ is\ incompatible\.)                  # its lines
    """
)
_PASSING_HINT = re.compile(r"(?i)warn|info|debug|notice|resolver|incompatible")
_GLOG = re.compile(
    r"""(?x)\W{0,3}
    (?:[\w.-]{1,64}\s{1,40}\|\ |\[?(?:rank|default)\d{1,5}\]?:\s?|\d{4}-\d\d-\d\d\ [\d:.]{8,18}:\ ){0,2}   # Compose, ranks, TensorFlow
    \[?[WI](?:\d{3,4})?\ (?:\d\d:|[\w./-]{1,99}\.\w{1,9}:\d)
    """
)


_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_HEXADECIMAL = bytes.maketrans(b"abcdef", b"0" * 6)
_ADDRESS = re.compile(rb"0x[0a-f]*[a-f][0a-f]*\b")
_WRITTEN_BY_NUMBER = re.compile(rb"%00|\\[ux0]|&\\*#|<[\\/]*h")
"""Characters written by number, and HTML headings, in masked lines: their digits decide how they are read."""


def masked(content: bytes) -> bytes:
    """Return `content` with every digit, and every letter of a hexadecimal address, replaced by 0."""
    found = content.translate(_ZEROS)
    if b"0x" in found:
        found = _ADDRESS.sub(lambda address: address[0].translate(_HEXADECIMAL), found)
    return found


def without_escapes(block: bytes) -> bytes:
    """Return `block` without terminal escapes and HTML tags, and with HTML entities decoded."""
    # `in` is many times faster than a substitution, and most logs have none of these. Order matters: written escapes
    # become real ones first, and tags are removed before `&lt;` becomes `<`.
    if b"\\" in block:
        block = _WRITTEN_ESCAPE.sub(b"\x1b", block)
        if b"\\u00" in block:
            block = _WRITTEN_ASCII.sub(lambda found: bytes.fromhex(found[1].decode()), block)
    if b"\x1b" in block:
        block = _ESCAPE.sub(b"", block)
    if b"<" in block and (b"</" in block or (len(block) < LINE_LIMIT and b"<br" in block)):
        block = _TAG.sub(b" ", block)
    if b"&" in block:
        block = _ENTITY.sub(_character, block)
    return block


def _character(entity: re.Match[bytes]) -> bytes:
    decimal, hexadecimal, name = entity.groups()
    if name is not None:
        return _NAMED[name]
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    # printable ASCII only: a control character, such as a line end, would change the lines of a block
    return bytes([code]) if ord(" ") <= code <= ord("~") else entity.group()


def squeezed(block: bytes) -> bytes:
    """Return `block` in lower case without line ends, spaces, quotes, borders and digits.

    Each atom of each reading of a part of the block, and of each join of its lines, is in the result. If backslashes
    may be written line ends, the block is repeated without those.
    """
    return b"\n".join(map(squeezed_literal, views(block)))


def views(block: bytes) -> tuple[bytes, ...]:
    """Return `block` without escapes and, if it has backslashes, also without written line ends; both keep lines."""
    block = without_escapes(block)
    return (block,) if b"\\" not in block else (block, _WRITTEN_BLANK.sub(b"", block))


def squeezed_literal(text: bytes) -> bytes:
    """Return `text`, which has no escapes, squeezed."""
    return text.translate(_LOWER, SQUEEZED_AWAY)


def cleaned(line: bytes) -> str:
    """Return the message in `line`, without escapes, borders, quoting, timestamps and rank prefixes."""
    text = _decoded(line)
    start = 0
    # prefixes come in any order and number: a rank before a time before a level; bounded, since lines are untrusted
    for _ in range(_MOST_PREFIXES):
        prefix = _prefixes().match(text, start)
        if prefix is None:
            break
        start = prefix.end()
    if text.startswith('{"log":'):
        text = _DOCKER_TAIL.sub("", text)
    # only the end is stripped: rstrip with many characters over a long line would be slow
    tail = max(start, len(text) - _TAIL_CHARACTERS)
    return text[start:tail] + text[tail:].rstrip(_TAIL)


@cache
def _prefixes() -> re.Pattern[str]:
    return re.compile(_PREFIXES)


def _decoded(line: bytes) -> str:
    text = without_escapes(line).decode("utf-8", "replace")
    if "`" in text or not text.isascii():
        text = text.translate(_CHARACTERS)
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    return _ESCAPED_QUOTE.sub("", text) if "\\" in text else text


class Reading(msgspec.Struct, frozen=True):
    """One way to read a line, or a part of it."""

    text: str
    """The cleaned text."""
    source: bytes
    """The bytes that it was read from."""
    part: int = 0
    """Its position in the line."""


@lru_cache(maxsize=256)
def readings(line: bytes) -> tuple[Reading, ...]:
    """Return the possible readings of `line`: as a terminal shows it, and with its backslashes as escapes.

    A text inside JSON is read line by line, and as a whole.
    """
    shape = masked(line)
    span = _message_spans.get(shape)
    if span is not None:
        return (Reading(line[span].decode(), line.rstrip(b"\r")),)
    found = segment_readings(segments(line))
    span = _message_span(line, shape, found)
    if span is not None:
        if len(_message_spans) >= _MOST_SPANS:
            _message_spans.clear()
        _message_spans[shape] = span
    return found


_message_spans: dict[bytes, slice] = {}
"""The span of the message in all lines with the same masked form.

A restart loop or a thousand ranks repeat one message a million times, and cleaning takes longer than all searches.
"""
_MOST_SPANS = 4096
_LONGEST_REMEMBERED = 1024
"""Limit of the length, in bytes, of these lines."""


def _message_span(line: bytes, shape: bytes, found: Sequence[Reading]) -> slice | None:
    """Return the span of the only reading in all lines masked as `shape`; None if it is not certain."""
    # digits decide how entities and numbered characters are read, and an escape can split an entity or a tag
    split = b"\x1b" in shape and (b"&" in shape or b"<" in shape)
    if len(line) > _LONGEST_REMEMBERED or len(found) != 1 or split or _WRITTEN_BY_NUMBER.search(shape):
        return None
    if found[0].part or found[0].source != line.rstrip(b"\r"):
        return None
    text = found[0].text.encode()
    start = line.find(text)
    # if the message occurs twice, other digits may make the first occurrence part of a prefix
    once = start >= 0 and shape.find(masked(text)) == start == shape.rfind(masked(text))
    return slice(start, start + len(text)) if once else None


def segment_readings(parts: Iterable[bytes]) -> tuple[Reading, ...]:
    """Return the `readings` of a line with the segments `parts`."""
    found: dict[str, Reading] = {}
    for segment in parts:
        for part, source in _sources(segment):
            text = cleaned(source)
            if text and text not in found:
                found[text] = Reading(text, source, part)
    return tuple(found.values())


def _sources(segment: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the texts to read in `segment`, each with the number of its first line if there are several."""
    lines = _BREAK.split(segment) if b"\\" in segment else [segment]
    quoted = len(lines) > _FEW_BREAKS and (b'"' in segment or b"'" in segment)
    if quoted:
        # each written line alone, and joined with two more for wrapped messages, as with real lines
        yield from enumerate(lines)
        yield from ((part, b" ".join(lines[part : part + 3])) for part in range(len(lines) - 1))
    yield 0, segment
    # a URL that carries the message, such as a link to a search or a new issue
    if b"%20" in segment:
        yield 0, _PERCENT.sub(lambda found: bytes.fromhex(found[1].decode()), segment)
    if b"\\" in segment:
        yield 0, _BACKSLASHED.sub(lambda found: found[1] or b" ", segment)
        if not quoted and len(lines) > 1:
            yield from enumerate(lines)
    # a terminal that was made wider: the blanks of the narrower one stand within words
    if _WIDE_GAP in segment.strip():
        yield 0, _GAP.sub(b"", segment)
    # UTF-16 that was shown, and copied, as bytes: what Windows programs write beside other output
    if _SPACED.search(segment) is not None:
        yield 0, _SPACED.sub(lambda found: found[0][::2], segment)
    # a row of a Markdown table: the message may be one cell
    if segment.count(b"|") > 1 and segment.lstrip().startswith(b"|"):
        yield from enumerate(segment.split(b"|"))


def passing(line: bytes) -> bool:
    """Whether `line` is a warning or information, after which programs continue."""
    # the patterns read at most the first 4,000 characters
    text = _decoded(line[: LINE_LIMIT // 16])
    if _GLOG.match(text) is not None:
        return True
    return _PASSING_HINT.search(text) is not None and _PASSING.match(text) is not None


def segments(line: bytes) -> list[bytes]:
    """Return the parts of `line` that a terminal overwrites (progress bars), cut into windows if too long."""
    parts = [part for part in line.split(b"\r") if part.strip()]
    return [window for part in parts for window in _windows(part)]


def suspicious_segments(line: bytes, may_match: Callable[[bytes], bool]) -> Iterator[bytes]:
    """Yield the `segments` of a very long line in which something may match; short ones are tested together."""
    for neighbours in _together(segments(line)):
        if may_match(b"\r".join(neighbours)):
            yield from neighbours if len(neighbours) == 1 else filter(may_match, neighbours)


def _together(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    neighbours: list[bytes] = []
    size = 0
    for part in parts:
        neighbours.append(part)
        size += len(part)
        if size >= LINE_LIMIT // 4:
            yield neighbours
            neighbours, size = [], 0
    if neighbours:
        yield neighbours


def _windows(part: bytes) -> list[bytes]:
    if len(part) <= LINE_LIMIT:
        return [part]
    step = LINE_LIMIT - WINDOW_OVERLAP
    return [part[start : start + LINE_LIMIT] for start in range(0, len(part) - WINDOW_OVERLAP, step)]
