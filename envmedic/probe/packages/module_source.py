"""Names that modules define, by the text of their files: nothing is imported or parsed.

The text is searched for words, since the interpreter of an environment may know syntax that envmedic's own does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from envmedic.probe.packages.import_names import Modules
from envmedic.probe.readable import is_directory, is_file, names, read_bytes

_LARGEST = 4 * 1024 * 1024
"""Bytes of a source file; the largest in use has a quarter of that."""
_MOST_FILES = 10_000
"""Files of one package in a search for a word; transformers has 3,500."""
_DEPTH = 4
"""Modules in a chain of ``from … import *``."""
_LAZY = re.compile(rb"\bdef __getattr__\b|sys\.modules\[__name__\]|\blazy\w*\.attach\w*\(")
"""What gives a module names from tables of names, and from other modules of its package."""
_AT_RUN_TIME = re.compile(rb"\b(?:globals|vars|locals)\(\)|\bexec\(|__dict__")
"""What may fill a module with names that its text does not contain."""
_STAR = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\*", re.MULTILINE)


class FoundModule(msgspec.Struct, frozen=True):
    """The file that an import of a module reads."""

    path: Path | None
    """None of a package without ``__init__.py``, and of a compiled module."""
    folder: Path | None = None
    """The directory of a package."""


class ModuleFiles(msgspec.Struct, frozen=True):
    """The modules in the directories that one interpreter searches."""

    sites: tuple[Path, ...]
    """In the order of the search."""
    modules: Modules = Modules()
    """The compiled modules that the interpreter reads."""

    def find(self, module: str) -> FoundModule | None:
        """Return the module that is found first, None where no directory has it."""
        parts = module.split(".")
        for site in self.sites:
            parent = site.joinpath(*parts[:-1])
            folder, file = parent / parts[-1], parent / f"{parts[-1]}.py"
            if is_file(folder / "__init__.py"):
                return FoundModule(folder / "__init__.py", folder)
            if is_file(file):
                return FoundModule(file)
            if any(self.modules.name(name) == parts[-1] for name in names(parent)):
                return FoundModule(None)
            if is_directory(folder) and names(folder):
                return FoundModule(None, folder)
        return None

    def defines(self, module: str, name: str) -> bool | None:
        """Whether a module defines `name` or has a submodule of that name; None where its text does not tell.

        False also where there is no such module.
        """
        if self.find(f"{module}.{name}") is not None:
            return True
        found = self.find(module)
        return False if found is None else self._defines(module, found, name, _DEPTH)

    def _defines(self, module: str, found: FoundModule, name: str, depth: int) -> bool | None:
        text = read_bytes(found.path, _LARGEST) if found.path is not None else None
        if text is None or depth == 0:
            return None
        word = re.escape(name.encode())
        if re.search(rb"\b%b\b" % word, text) is not None:
            lazily = _LAZY.search(text) is not None and re.search(rb"""["']%b["']""" % word, text) is not None
            return True if lazily or _definition(word).search(text) is not None else None
        for target in _stars(module, found, text):
            other = self.find(target)
            # for type checkers alone, a package may name modules of its own that it does not have
            if other is None and target.partition(".")[0] == module.partition(".")[0]:
                continue
            if other is None or self._defines(target, other, name, depth - 1) is not False:
                return None
        if _LAZY.search(text) is not None or _AT_RUN_TIME.search(text) is not None:
            # such names come from other files of the package, so that one of these has the word
            return None if found.folder is None or _within(found.folder, word) else False
        return False


def _definition(word: bytes) -> re.Pattern[bytes]:
    """A definition that every import of the module carries out: at the beginning of a line, in no block."""
    listed = rb"[^#\n()]*?\b%b\b(?![ \t]+as\b)" % word
    wrapped = rb"\([^()]*?\b%b\b(?!\s+as\b)" % word
    return re.compile(
        rb"^(?:(?:async[ \t]+)?def|class)[ \t]+%b\b|^%b[ \t]*(?::[^=\n]*)?=(?!=)|^from[ \t]+[\w.]+[ \t]+import[ \t]*(?:%b|%b)"
        % (word, word, listed, wrapped),
        re.MULTILINE,
    )


def _stars(module: str, found: FoundModule, text: bytes) -> Iterator[str]:
    """Yield the modules that the text imports everything from, with their absolute names."""
    package = module.split(".") if found.folder is not None else module.split(".")[:-1]
    for dots, target in _STAR.findall(text):
        base = package[: len(package) - len(dots) + 1] if dots else []
        yield ".".join([*base, *([target.decode()] if target else [])])


def _within(folder: Path, word: bytes) -> bool:
    """Whether files below `folder` may define the word: one contains it, or cannot be read, or is compiled."""
    pattern, left = re.compile(rb"\b%b\b" % word), _MOST_FILES
    for directory, _, files in os.walk(folder):
        if any(file.endswith(".so") for file in files):
            return True
        for file in (file for file in files if file.endswith(".py")):
            left -= 1
            text = read_bytes(Path(directory) / file, _LARGEST) if left else None
            if text is None or (word in text and pattern.search(text) is not None):
                return True
    return False
