"""Whether the scripts of an environment can be started: after staging elsewhere their first lines were rewritten."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from envmedic.engine.stage.relocate import interpreter_of
from envmedic.model.checks import Outcome

_HEAD = 4096
"""Bytes read of a script; no path of an interpreter is longer."""


def check(live: Path, old: Path, staging: Path) -> Outcome:
    """The scripts of the tree at `live` against those of the tree that it replaced, now at `old`.

    None may name a path below `staging`, or an interpreter of the environment that is not there; what was
    broken before is not counted.
    """
    known = dict(_broken(old, live, staging))
    problems = [f"{name}: {why}" for name, why in _broken(live, live, staging) if name not in known]
    return Outcome(
        check="scripts",
        status="fail" if problems else "pass",
        role="regression",
        reason=problems[0] if problems else "",
        detail="\n".join(problems),
    )


def _broken(tree: Path, prefix: Path, staging: Path) -> Iterator[tuple[str, str]]:
    """Name and fault of each script in the ``bin`` of `tree` that would not start were the tree at `prefix`."""
    with os.scandir(tree / "bin") as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    for name in names:
        with (tree / "bin" / name).open("rb") as file:
            program = interpreter_of(file.read(_HEAD))
        if program is None:
            continue
        path = Path(os.fsdecode(program))
        if path.is_relative_to(staging):
            yield name, f"its first line names {path}"
        elif path.is_relative_to(prefix) and not os.access(tree / path.relative_to(prefix), os.X_OK):
            yield name, f"its interpreter {path} does not exist"
