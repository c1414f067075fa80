"""Lines near the end of a text that tell of a failure, whether or not a signature knows them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from envmedic.model.playbook import Failures
from envmedic.playbook.matching.blocks import Block
from envmedic.playbook.matching.lines import LINE_LIMIT, cleaned, passing
from envmedic.redact import redact_text

TAIL_BYTES = 256 * 1024
"""Length of the end of a text that is read for them: all of nearly every paste, a moment of a long log."""
_SHOWN_CHARACTERS = 200
_CONTEXT = 2
"""Lines before and after one that tells of a failure."""
_NUMBERS = re.compile(rb"\d+(?:[.,:eE+-]+\d+)*")
_REPEATED = 8
"""Lines of one form that are a log's, and not part of one message."""
_AROUND_CHARACTERS = 8000
"""Length of what is kept around failures: more than a reader looks at."""
_FAILING = re.compile(
    rb"(?i)error|exception|(?<!de)fault|\b(?:traceback|fatal|fail|abort|kill|terminat|not able to|can ?not|can't|could ?n[o']t|unable"
    rb"|missing|no module|not (?:found|available|compiled|supported|compatible|installed|permitted)|undefined|invalid|illegal"
    rb"|panic|(?:core )?dumped|mismatch|incompat|unsupported|unavailable|denied|refused|time[ds]? ?out|exit (?:code|status)|out of|lost"
    rb"|corrupt|broken|signal|does ?n[o']t|does not|will not|must|nan\b|crash|\bhangs?\b|\bhung\b|stuck|freez|frozen|\berr\b)"
    rb"|^\W{0,4}#\d{1,3} +0x[0-9a-f]{6,16} in "  # frames of a debugger, which is asked where something failed
    rb"|unexpected (?:keyword|positional|key)|fehler|nicht |erreur|introuvable|impossible|\berro\b|falh|fallo|[\xd0-\xd3\xd8-\xdb\xe3-\xed][\x80-\xbf]"
)
"""Words of failures, and letters of scripts in which none of them is written."""
_RAISED = re.compile(
    rb"(?<!except )(?<!raise )(?<!the )(?<!this )(?<!following )(?<![\w(,-])(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|BadZip[Ff]ile)(?=:(?!:)|[\s\"']*(?:\\n|$))"
)
_HEADING = re.compile(rb"\s*#{1,6} [\w ]{0,40}(?:Error|Exception)s?\W*$")
"""A heading of Markdown over what follows."""
# Launchers, pools and engines repeat that something below them failed.
_WRAPPER = re.compile(
    rb"ChildFailedError|CalledProcessError|Process(?:Raised|Exited)Exception|Ray(?:Task|Actor)Error|ActorDiedError"
    rb"|EngineDeadError|Engine (?:core|process|loop)[\w ]{0,30}(?:fail|dead|died)|WorkerDiedError|BrokenProcessPool"
)
# What the writer of a report did between two outputs: "… so I reinstalled everything and now I get:"
_NARRATED = re.compile(
    rb"(?:^|\W)(?:so|then|now|but|after\w*|Now|Then|But|So|After\w*)\b[^:\n]{0,80}?\b(?:I|[Ww]e)\b[^\n]{0,160}:\W{0,4}$"
)
"""Searched in lines that end in a colon, which few do."""
_ANY_FRAME = re.compile(rb'File "(?P<path>[^"\n]+)", line \d+, in (?P<function>\S+)')
_OF_PACKAGE = re.compile(rb"/(?:site|dist)-packages/(?P<module>[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*?)(?:/__init__)?\.py$")
_TRACEBACK = re.compile(rb"Traceback \(most recent call last\)")
_INTERRUPTED = re.compile(rb"(?<!except )(?<!raise )(?<![\w(,.-])KeyboardInterrupt\b")
_CHAINED = re.compile(rb"During handling of the above exception|was the direct cause of the following exception")
_FRAME = re.compile(rb'File "([^"]{1,400}[/\\\\](?:site|dist)-packages[/\\\\][^"]{1,300}\.py)", line \d+')
_ANY_FILE = re.compile(rb'File "([^"]{1,400})", line \d+')
_NAMELESS = re.compile(rb"null bytes")
"""Errors of a module's own text for which Python shows the import of it alone."""
_OF_SOURCE = re.compile(
    rb"(?:Syntax|Indentation|Tab|Import|ModuleNotFound|Attribute|Name|Unicode\w{0,10})Error:|null bytes"
)
"""Errors that wrong bytes in a module bring about."""
_NAMED = re.compile(rb"\(([^()]{1,400}[/\\\\](?:site|dist)-packages[/\\\\][^()]{1,300}\.py)\)")
"""The module in ``cannot import name 'x' from 'y' (/…/y.py)``."""
_IMPORT_OF = re.compile(
    rb"\s*(?:from[ \t]+(?P<dots>\.{0,8})(?P<of>[\w.]{0,200})[ \t]+import[ \t]+\(?(?P<names>[\w, \t]{0,400})"
    rb"|import[ \t]+(?P<whole>[\w.]{1,200}))"
)
_ANY_SITE = "/site-packages"
_MOST_PARTS = 16
"""Parts of a module's name, and names of one import, that are looked at: anybody may have written the text."""


def tells_of_failure(line: bytes) -> bool:
    """Whether `line` has a word of failures."""
    return _FAILING.search(line) is not None


class TextEnd:
    """The end of a text, taken from its blocks as they are read."""

    def __init__(self) -> None:
        self._blocks: tuple[Block, ...] = ()
        self._count = 0

    def add(self, block: Block) -> None:
        """Keep `block`, the next one of the text."""
        # the last block may be short
        self._blocks = (*self._blocks[-1:], block)
        self._count += 1

    @property
    def begin(self) -> int:
        """Number of the first line of the blocks that the end is taken from."""
        return self._blocks[0].number if self._blocks else 0

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines of the end with their numbers."""
        return (line for block in self._blocks for line in _end(block))

    def failures(self) -> Failures:
        """The failures of the end."""
        found = failures(self.lines())
        whole = (
            self._count > 0
            and all(block.keep <= TAIL_BYTES for block in self._blocks)
            and self._count == len(self._blocks)
        )
        return msgspec.structs.replace(found, whole=whole)


def _end(block: Block) -> Iterable[tuple[int, bytes]]:
    """The last lines of `block` with their numbers, without those that the next one repeats."""
    start = max(0, block.keep - TAIL_BYTES)
    start = start and block.content.find(b"\n", start) + 1
    number = block.number + block.content.count(b"\n", 0, start)
    return enumerate(block.content[start : block.keep].split(b"\n"), start=number)


class _Imports:
    """What each traceback imports: the outermost installed package, during whose import the rest happens, and the innermost."""

    def __init__(self) -> None:
        self.failed: str | None = None
        """That of the last error."""
        self._module: str | None = None
        self._file = b""
        self._statement: bytes | None = None

    def files(self) -> list[bytes]:
        """Where the modules would be that the last frame imports."""
        found = _imported_files(self._file.decode("utf-8", "replace"), self._statement or b"")
        return [path.encode() for path in found]

    def see(self, line: bytes) -> None:
        """Read the next line."""
        shown = _ANY_FILE.search(line[:LINE_LIMIT])
        if shown is not None:
            self._file, self._statement = shown[1], None
        elif self._statement is None:
            self._statement = line[:LINE_LIMIT]
        if b"Traceback (most recent call last)" in line:
            self._module = None
        frame = _ANY_FRAME.search(line[:LINE_LIMIT]) if self._module is None else None
        if frame is not None and frame["function"] == b"<module>":
            found = _OF_PACKAGE.search(frame["path"])
            self._module = found["module"].decode().replace("/", ".") if found is not None else None

    def end(self) -> None:
        """Take what was read as the traceback of an error."""
        self.failed, self._module = self._module, None


def _imported_files(frame: str, line: bytes) -> tuple[str, ...]:
    """Where the modules that `line` of the file `frame` imports would be; nothing for another statement.

    A module of another package is given below ``/site-packages``, wherever that is. A package is its ``__init__.py``, and
    each package on the way to a module may be the one that fails.
    """
    found = _IMPORT_OF.match(line)
    if found is None:
        return ()
    dots = (found["dots"] or b"").decode()
    folder = frame.replace("\\", "/")
    for _ in dots:
        folder = posixpath.dirname(folder)
    base = (found["whole"] or found["of"] or b"").decode().strip(".")
    names = [word for part in (found["names"] or b"").decode().split(",") for word in part.split()[:1]]
    return tuple(dict.fromkeys(_files(folder if dots else _ANY_SITE, base, names)))


def _files(folder: str, base: str, names: list[str]) -> Iterator[str]:
    place = folder
    for part in [*filter(None, base.split("."))][:_MOST_PARTS]:
        place = f"{place}/{part}"
        yield from (f"{place}.py", f"{place}/__init__.py")
    for name in names[:_MOST_PARTS]:
        yield from (f"{place}/{name}.py", f"{place}/{name}/__init__.py")


def _shown(line: bytes) -> str:
    return redact_text(cleaned(line[:LINE_LIMIT]))[:_SHOWN_CHARACTERS]


def failures(lines: Iterable[tuple[int, bytes]]) -> Failures:
    """The failures of numbered `lines`."""
    raised: list[int] = []
    failing: set[int] = set()
    warned: set[int] = set()
    last: set[int] = set()
    message = b""
    bare = False
    chained = False
    narrated = 0
    imports = _Imports()
    header = 0
    frame: list[bytes] = []
    raised_in: list[bytes] = []
    sources: list[bytes] = []
    for number, line in lines:
        imports.see(line)
        if line.rstrip(b"\r *_`").endswith(b":") and _NARRATED.search(line[:LINE_LIMIT]) is not None:
            narrated = number
        if bare and line.strip():
            # an error without a message, as debuggers of editors show it: the message is the next line
            told = _ANY_FRAME.search(line[:LINE_LIMIT]) is None and _RAISED.search(line[:LINE_LIMIT]) is None
            last, message = ({*last, number}, message.rstrip() + b": " + line) if told else (last, message)
            bare = False
        frame = _FRAME.findall(line[:LINE_LIMIT]) or frame
        if _TRACEBACK.search(line) is not None:
            header = number
        if header and _INTERRUPTED.search(line[:LINE_LIMIT]) is not None:
            # its traceback shows where the program was, and may contain any word
            failing -= {*range(header, number)}
            header = 0
        elif _CHAINED.search(line) is not None:
            chained = True
        elif _FAILING.search(line) is not None and passing(line):
            warned.add(number)
        elif _FAILING.search(line) is not None:
            failing.add(number)
            error = _RAISED.search(line[:LINE_LIMIT]) if _HEADING.match(line) is None else None
            if error is not None and _WRAPPER.search(line) is None:
                bare = not line[error.end() :].strip(b"\r\n\t '\"")
                last, header = ({*last, number} if chained else {number}), 0
                raised.append(number)
                message, chained = line, False
                imports.end()
                told = _OF_SOURCE.search(line[:LINE_LIMIT]) is not None
                raised_in = frame
                sources, frame = ([*frame, *_NAMED.findall(line[:LINE_LIMIT])] if told else []), []
                sources += imports.files() if _NAMELESS.search(line[:LINE_LIMIT]) is not None else []
    before = narrated if narrated < max((*failing, *warned), default=0) else 0
    last = {number for number in last if number > before}
    return Failures(
        raised=tuple(number for number in raised if number > before),
        last=frozenset(last),
        message=_shown(message) if last else None,
        importing=imports.failed,
        failing=frozenset(failing),
        warned=frozenset(warned),
        before=before,
        raised_in=_texts(raised_in),
        sources=_texts(sources),
    )


def around(lines: Sequence[tuple[int, bytes]], told: Failures, harmless: frozenset[int]) -> tuple[tuple[int, str], ...]:
    """The last of `lines` around those that tell of failures, warnings among them; the last ones where none does.

    Lines numbered in `harmless` are left out, as they may stand in any log, and those of a log that goes on in one form.
    """
    failing = (told.failing | told.warned) - harmless
    harmless |= _regular(lines) - failing
    near = {near for number in failing for near in range(number - _CONTEXT, number + _CONTEXT + 1)}
    kept: list[tuple[int, bytes]] = []
    traceback = False
    for number, line in lines:
        if number in harmless:
            continue
        begins = _TRACEBACK.search(line) is not None
        # the error of a traceback ends it, in whatever words
        ends = traceback and not begins and (number in failing or bool(line[:1].strip()))
        traceback = begins or (traceback and not ends)
        if not near or number in near or ends:
            kept.append((number, line))
    found: list[tuple[int, str]] = []
    length = 0
    for number, line in reversed(kept):
        if length >= _AROUND_CHARACTERS:
            break
        text = redact_text(cleaned(line[:_AROUND_CHARACTERS]))
        found.append((number, text))
        length += len(text) + 1
    return tuple(reversed(found))


def _regular(lines: Sequence[tuple[int, bytes]]) -> frozenset[int]:
    """Numbers of the lines that several others repeat but for their numbers: steps of a training, requests to a server."""
    forms = [_NUMBERS.sub(b"0", line.strip()) for _, line in lines]
    counts = Counter(forms)
    return frozenset(number for (number, _), form in zip(lines, forms, strict=True) if counts[form] >= _REPEATED)


def _texts(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path.decode("utf-8", "replace") for path in paths))
