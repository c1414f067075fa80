"""Byte code for modules that have none beside them, kept in a folder: each is compiled once for all processes and sessions.

Images and fresh installs often come without byte code, and where PYTHONDONTWRITEBYTECODE is set none is ever written:
compiling is more than half of an import of torch then. Byte code that a module has of its own is used as always,
whatever its state: it is under test too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import os
import sys
from importlib.machinery import SourceFileLoader

_CHECKSUM = 8
"""Bytes of `importlib.util.source_hash`."""
_PYTHON = importlib.util.MAGIC_NUMBER + bytes([sys.flags.optimize])
"""What byte code depends on besides its source."""


def lend(folder):
    """Let modules without byte code of their own be compiled once, in this process and those that it forks."""
    own = SourceFileLoader.get_code

    def get_code(self, fullname):
        """The code of a module."""
        # a loader of a package's own may compile in a way of its own
        if type(self) is not SourceFileLoader or _has_own(self.path):
            return own(self, fullname)
        return _lent(self, folder)

    SourceFileLoader.get_code = get_code


def _has_own(path):
    try:
        return os.path.exists(importlib.util.cache_from_source(path))
    except NotImplementedError:  # an interpreter that writes none
        return True


def _lent(loader, folder):
    path = loader.path
    source = loader.get_data(path)
    # by its content: a repair can put another file of the same size and time in a module's place
    head = _PYTHON + importlib.util.source_hash(source)
    file = os.path.join(folder, importlib.util.source_hash(os.fsencode(path)).hex())
    code = _read(file, head)
    if code is None or code.co_filename != path:
        code = loader.source_to_code(source, path)
        _keep(file, head, code)
    return code


def _read(file, head):
    """The code that is kept in a file after `head`; None where there is none, or it is damaged."""
    try:
        with open(file, "rb") as kept:
            content = kept.read()
    except OSError:
        return None
    start = len(head) + _CHECKSUM
    data = content[start:]
    if content[:start] != head + importlib.util.source_hash(data):
        return None
    return marshal.loads(data)  # noqa: S302  # Python's own byte code is nothing else, and nobody else writes to the folder


def _keep(file, head, code):
    data = marshal.dumps(code)
    fresh = "%s.%d" % (file, os.getpid())
    # as Python does with its own: what cannot be kept is compiled again
    with contextlib.suppress(OSError):
        try:
            with open(fresh, "wb") as new:
                new.write(head + importlib.util.source_hash(data) + data)
            os.replace(fresh, file)
        except OSError:
            os.unlink(fresh)
