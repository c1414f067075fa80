"""What envmedic uses of RE2, by `re`: for the browser, which has no RE2.

RE2 is for patterns and logs of strangers, which could make `re` search for very long. Here the patterns are the shipped
ones, the text is the reader's, and the page can end the search.
"""

from __future__ import annotations

import re
from enum import Enum

error = re.error
escape = re.escape


class Options:
    """Options of a program; memory and messages are those of `re`."""

    class Encoding(Enum):
        UTF8 = 1
        LATIN1 = 2

    def __init__(self) -> None:
        self.case_sensitive = True
        self.never_capture = False
        self.log_errors = True
        self.encoding = self.Encoding.UTF8
        self.max_mem = 0


def compile(pattern: bytes, options: Options) -> re.Pattern[bytes]:  # noqa: A001  # RE2's name
    """The program of an RE2 pattern. Raises `error`."""
    return re.compile(_translated(pattern), 0 if options.case_sensitive else re.IGNORECASE)


_TOKEN = re.compile(
    rb"\\z|\\Q(?P<quoted>.*?)(?:\\E|$)|\\x\{(?P<code>[0-9A-Fa-f]+)\}|\(\?P<(?P<name>\w+)>|\\.|\$|\[\^?\]?(?:\\.|[^\]\\])*\]",
    re.DOTALL,
)
"""What the two syntaxes write differently, and escapes and classes, inside which nothing is rewritten."""


def _translated(pattern: bytes) -> bytes:
    by_line = b"(?m" in pattern
    names: set[bytes] = set()

    def one(found: re.Match[bytes]) -> bytes:
        if found[0] == rb"\z" or (found[0] == b"$" and not by_line):
            return rb"\Z"  # the very end; `$` of re also stands before a last line feed
        if found["quoted"] is not None:
            return re.escape(found["quoted"])
        if found["code"] is not None:
            return re.escape(chr(int(found["code"], 16)).encode())
        if found["name"] is not None:
            if found["name"] in names:
                return b"("  # `re` refuses a second group of a name
            names.add(found["name"])
        return found[0]

    return _TOKEN.sub(one, pattern)


class Set:
    """Literals that are searched together; in the case of ASCII letters they are as one."""

    def __init__(self) -> None:
        self._literals: list[bytes] = []

    @classmethod
    def SearchSet(cls, _: Options) -> Set:  # noqa: N802  # RE2's name
        """A set without literals."""
        return cls()

    def Add(self, escaped: bytes) -> int:  # noqa: N802
        """Take an escaped literal; its number."""
        self._literals.append(re.sub(rb"\\(.)", rb"\1", escaped, flags=re.DOTALL).lower())
        return len(self._literals) - 1

    def Compile(self) -> None:  # noqa: N802
        """Nothing: the literals are searched one by one, which for `re` is the fastest."""

    def Match(self, text: bytes) -> list[int]:  # noqa: N802
        """The numbers of the literals in `text`."""
        folded = text.lower()
        return [number for number, literal in enumerate(self._literals) if literal in folded]
