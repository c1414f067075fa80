"""Byte code of the modules that programs import first, as the environment's own Python reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from envmedic.model.facts import Defect, Interpreter
from envmedic.owner import owner
from envmedic.probe import layout
from envmedic.probe.layout import Layout
from envmedic.probe.packages.distributions import Scan
from envmedic.proc import ask, without_others

_TIMEOUT_S = 20.0
_MOST = 300
_COMPILED_BYTES = 64 << 10
"""Source that is compiled for a comparison, in all: a millisecond for each kilobyte."""
_QUESTION = """\
import marshal, posix, sys
from importlib.util import MAGIC_NUMBER, source_hash

def read(path):
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    try:
        status = posix.fstat(descriptor)
        if status.st_mode & 0o170000 != 0o100000 or status.st_size > 1 << 24:
            raise OSError
        return posix.read(descriptor, status.st_size), status
    finally:
        posix.close(descriptor)

def wrong(data, source, status, left):
    if len(data) >= 16:
        if data[:4] != MAGIC_NUMBER:
            return ""
        flags = int.from_bytes(data[4:8], "little")
        current = data[8:16] == (source_hash(source) if flags & 1 else b"".join(
            (int(value) & 0xFFFFFFFF).to_bytes(4, "little") for value in (status.st_mtime, status.st_size)))
        if not current:
            return "stale" if flags == 1 else ""
    try:
        code = marshal.loads(data[16:])
        name = code.co_filename
    except Exception:
        return "damaged"
    if len(source) > left:
        return ""
    try:
        return "" if compile(source, name, "exec", dont_inherit=True) == code else "stale"
    except Exception:
        return ""

left = int(sys.argv[1])
for path in sys.argv[2:]:
    folder, _, file = path.rpartition("/")
    compiled = f"{folder}/__pycache__/{file[:-3]}.{sys.implementation.cache_tag}.pyc"
    try:
        data, (source, status) = read(compiled)[0], read(path)
    except OSError:
        continue
    word = wrong(data, source, status, left)
    left -= len(source)
    if word:
        print(ascii((compiled, word)))
"""
"""Prints each file of byte code that Python would take and that is damaged, or made of other source."""
_ANSWER = re.compile(r"\('(?P<path>[^'\\]+)', '(?P<word>damaged|stale)'\)")
_WORDS = {
    "damaged": "cannot be read, and Python takes it for current",
    "stale": "was made of other source, and Python takes it for current",
}


def observe(found: Layout, python: Interpreter, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Yield byte code that Python would take in place of the source and that is damaged or of other source."""
    modules = sorted(_first(scans), key=lambda path: path.count("/"))[:_MOST]
    if not python.starts or not python.named or python.implementation != "cpython" or not modules:
        return
    argv = [python.path, "-I", "-S", "-B", "-W", "ignore", "-c", _QUESTION, str(_COMPILED_BYTES), *modules]
    try:
        user = owner(found.python)  # root runs programs of another user as that user
        result = ask(argv, env={**without_others(), "LC_ALL": "C.UTF-8"}, cwd="/", timeout_s=_TIMEOUT_S, user=user)
    except OSError:  # it started a moment ago; without an answer nothing is known of its byte code
        return
    for match in map(_ANSWER.fullmatch, result.stdout.splitlines()):
        if match is not None:
            path = layout.relative(Path(json.loads(f'"{match["path"]}"')), found.prefix)
            yield Defect(kind="byte-code", path=path, detail=_WORDS[match["word"]])


def _first(scans: Sequence[Scan]) -> Iterator[str]:
    """The module that an import of each import package reads first."""
    for scan in scans:
        for item in scan.installed:
            wanted = {f"{name}/__init__.py" for name in item.distribution.import_names}
            wanted |= {f"{name}.py" for name in item.distribution.import_names}
            yield from (f"{scan.site}/{path}" for path in wanted.intersection(item.paths))
