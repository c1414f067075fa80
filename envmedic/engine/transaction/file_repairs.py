"""Steps that repair files of the clone in place: paths of a moved environment, permissions, scripts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from envmedic import safe_io
from envmedic.engine.fs.safe_paths import locate, replace_file
from envmedic.engine.stage import relocate
from envmedic.engine.store.workspace import Workplace
from envmedic.model.plan import FileRepair, MakeExecutable, ProgramScript, Relocate, ReplaceBase
from envmedic.wording import counted

_READ = 0o444
_PYTHONS = ("python", "python3", *(f"python3.{minor}" for minor in range(6, 30)))
_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
_CALL = """\
# -*- coding: utf-8 -*-
import sys

from {module} import {first}

if __name__ == "__main__":
    sys.argv[0] = sys.argv[0].removesuffix(".exe")
    sys.exit({function}())
"""


def carry_out(step: FileRepair, place: Workplace) -> str:
    """Do `step` in the clone and return what there is to say of it.

    Raises InputError for a path outside the clone, and OSError.
    """
    if isinstance(step, Relocate):
        return _relocate(step, place)
    if isinstance(step, ReplaceBase):
        return _replace_base(Path(step.python), place)
    if isinstance(step, MakeExecutable):
        for relative in step.programs:
            _executable(place.tree, relative, _read(place.tree, relative))
        return ""
    # the interpreter as commands name it: a clone that is staged elsewhere gets its own path at the end
    python = place.runner.python
    for script in step.scripts:
        _executable(place.tree, script.path, _content(script, place.tree, python))
    return _recorded(place.tree, step.programs)


def _relocate(step: Relocate, place: Workplace) -> str:
    done, left = relocate.rewrite_former(place.tree, Path(step.former), place.runner.python.parent.parent, step.sources)
    told = f"{counted(len(done.rewritten), 'file')} rewritten"
    return f"{told}; left as they are: {', '.join(left)}" if left else told


def _replace_base(python: Path, place: Workplace) -> str:
    """Lead bin/python and its other names to `python`, and name it in pyvenv.cfg."""
    tree, version = place.tree, place.runner((str(python), "-I", "-S", "-B", "-c", _VERSION)).stdout.strip()
    for name in _PYTHONS:
        path = locate(tree, f"bin/{name}")
        if os.path.lexists(path) or name == "python":
            path.unlink(missing_ok=True)
            path.symlink_to(python if name == "python" else "python")
    values = {"home": str(python.parent), "executable": os.path.realpath(python), "base-executable": str(python)}
    values |= {"version": version, "version_info": version}
    known = _read(tree, "pyvenv.cfg") if locate(tree, "pyvenv.cfg").exists() else b""
    kept = [_setting(line, values) for line in known.decode(errors="surrogateescape").splitlines()]
    if not any(line.startswith("home = ") for line in kept):
        kept.insert(0, f"home = {values['home']}")
    replace_file(tree, "pyvenv.cfg", ("\n".join(kept) + "\n").encode(errors="surrogateescape"))
    return f"pyvenv.cfg names {python.parent}"


def _setting(line: str, values: Mapping[str, str]) -> str:
    name = line.partition("=")[0].strip()
    return f"{name} = {values[name]}" if name in values else line


def _content(script: ProgramScript, tree: Path, python: Path) -> bytes:
    if script.entry_point is None:
        return relocate.with_interpreter(_read(tree, script.path), python)
    module, _, function = script.entry_point.partition(":")
    text = _CALL.format(module=module, first=function.partition(".")[0], function=function)
    return relocate.with_interpreter(text.encode(), python)


def _read(tree: Path, relative: str) -> bytes:
    # a link to a key would become a copy of it that others may read, and a FIFO would be waited for without end
    with safe_io.opened(locate(tree, relative)) as file:
        return file.read()


def _executable(tree: Path, relative: str, content: bytes) -> None:
    """Write a file as a new inode, since the clone may share the old one with the original, and let it be executed."""
    path = replace_file(tree, relative, content)
    mode = path.stat().st_mode
    path.chmod(mode | (mode & _READ) >> 2)


def _recorded(tree: Path, written: Sequence[str]) -> str:
    """Put the written files into the RECORDs that list them."""
    return f"noted in {', '.join(found)}" if (found := sorted(relocate.update_records(tree, written))) else ""
