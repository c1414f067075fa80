"""Names that a package uses, and arguments that one passes and another takes, by their text: nothing is parsed.

As in `module_source`, words are searched: the environment's interpreter may know syntax that envmedic's own does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from envmedic.probe.packages.module_source import ModuleFiles
from envmedic.probe.readable import read_bytes

_LARGEST = 4 * 1024 * 1024
"""Bytes of a source file."""
_MOST_FILES = 10_000
"""Files of one package."""
_MOST_DEFINITIONS = 100
"""Functions or classes of one name in one file, and with the next bound what keeps the time for a hostile file short."""
_LONGEST = 32 * 1024
"""Bytes of the parameters of one function."""
_SIGNATURE = re.compile(rb"\bdef[ \t]+\w+[ \t]*\(")
_CLASS = re.compile(rb"^[ \t]*class[ \t]", re.MULTILINE)


def names(files: ModuleFiles, package: str, name: str) -> bool | None:
    """Return whether the files of `package` contain a name; None where one cannot be read and no other does."""
    word = re.compile(rb"\b%b\b" % re.escape(name.encode()))
    return _any(_texts(files, package), word)


def needs(files: ModuleFiles, package: str, name: str) -> bool | None:
    """Return whether a file of `package` uses a name whenever it is imported, in no block that may pass it over."""
    word = re.escape(name.encode())
    imported = rb"from[ \t]+[\w.]+[ \t]+import[ \t]*\([^()]*?\b%b\b" % word
    return _any(_texts(files, package), re.compile(rb"^(?:%b|[^\s#][^\n#]*\b%b\b)" % (imported, word), re.MULTILINE))


def passes(files: ModuleFiles, package: str, argument: str) -> bool | None:
    """Return whether code of `package` names `argument` in a call; None where the package or a file cannot be read."""
    call = re.compile(rb"[(,]\s*%b\s*=(?!=)" % re.escape(argument.encode()))
    return _any((_without_signatures(text) if text is not None else None for text in _texts(files, package)), call)


def takes(files: ModuleFiles, package: str, called: str, argument: str) -> bool | None:
    """Return whether the function of `package` that Python calls `called`, as ``Client.__init__``, takes `argument` by name.

    False where one of several definitions refuses it, and so may be the one that did; True where each has a parameter of
    that name; None where none is found, or one takes whatever it is given.
    """
    *holders, function = called.split(".")
    holder = holders[-1].encode() if holders else None
    named = re.compile(rb"\b%b\b" % re.escape(argument.encode()))
    texts = (text for text in _texts(files, package) if text is not None)
    found = [signature for text in texts for signature in _signatures(text, holder, function.encode())]
    others = [signature for signature in found if named.search(signature) is None]
    if any(b"**" not in signature for signature in others):
        return False
    return True if found and not others else None


def _any(texts: Iterable[bytes | None], wanted: re.Pattern[bytes]) -> bool | None:
    """Whether one of `texts` has what is wanted; None where none has, and one is unknown or there are none."""
    known, unknown = False, False
    for text in texts:
        if text is None:
            unknown = True
        elif wanted.search(text) is not None:
            return True
        else:
            known = True
    return False if known and not unknown else None


def _texts(files: ModuleFiles, package: str) -> Iterator[bytes | None]:
    """The texts of the files of a package, None for one that cannot be read."""
    found = files.find(package)
    if found is None:
        return
    if found.folder is None:
        yield read_bytes(found.path, _LARGEST) if found.path is not None else None
        return
    left = _MOST_FILES
    for directory, _, names in os.walk(found.folder):
        for name in (name for name in names if name.endswith(".py")):
            left -= 1
            if left < 0:
                yield None
                return
            yield read_bytes(Path(directory) / name, _LARGEST)


def _signatures(text: bytes, holder: bytes | None, function: bytes) -> Iterator[bytes]:
    """The parameters of each function of that name: in the class `holder`, or in none."""
    definition = re.compile(
        rb"^(?P<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+%b[ \t]*(?=\()" % re.escape(function), re.MULTILINE
    )
    if holder is None:
        for match in islice(definition.finditer(text), _MOST_DEFINITIONS):
            if not match["indent"]:
                yield _in_parentheses(text, match.end())
        return
    classes = re.finditer(rb"^(?P<indent>[ \t]*)class[ \t]+%b\b" % re.escape(holder), text, re.MULTILINE)
    for start in islice(classes, _MOST_DEFINITIONS):
        following = _CLASS.search(text, start.end())
        end = following.start() if following is not None else len(text)
        for inside in definition.finditer(text, start.end(), end):
            if len(inside["indent"]) > len(start["indent"]):
                yield _in_parentheses(text, inside.end())
                break


def _in_parentheses(text: bytes, start: int) -> bytes:
    """The text from the parenthesis at `start` to the one that closes it, at most so much as parameters take."""
    depth = 0
    for match in re.compile(rb"[()]").finditer(text, start, start + _LONGEST):
        depth += 1 if match[0] == b"(" else -1
        if depth == 0:
            return text[start : match.end()]
    return text[start : start + _LONGEST]


def _without_signatures(text: bytes) -> bytes:
    """`text` without the parameters of functions, whose defaults look like arguments of a call."""
    kept, last = [], 0
    for match in _SIGNATURE.finditer(text):
        if match.start() >= last:
            kept.append(text[last : match.end() - 1])
            last = match.end() - 1 + len(_in_parentheses(text, match.end() - 1))
    return b"".join((*kept, text[last:]))
