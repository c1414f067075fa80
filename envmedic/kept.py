"""The variables that an environment keeps for the shells that activate it, as they stand in its files.

Marked blocks in a venv's ``bin/activate``, which `engine.variables` writes, and conda's own state file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

BEGIN = "# >>> envmedic >>> kept by envmedic; `envmedic undo` takes it back"
END = "# <<< envmedic <<<"
BLOCK = re.compile(r"\n?^[^\n]*# >>> envmedic >>>.*?# <<< envmedic <<<[^\n]*\n", re.DOTALL | re.MULTILINE)
"""What `engine.variables` has put into a script."""
ACTIVATE = "bin/activate"
CONDA_STATE = "conda-meta/state"
CONDA_UNSET = "***unset***"
"""The value by which conda marks a variable as unset: its CONDA_ENV_VARS_UNSET_VAR."""


def source(tree: Path) -> str:
    """The file that holds the variables, relative to `tree`."""
    return CONDA_STATE if (tree / "conda-meta").is_dir() else ACTIVATE


def variables(tree: Path) -> dict[str, str | None]:
    """Variables that activation sets, by name; None for one that it unsets. Raises OSError or ValueError."""
    if source(tree) == CONDA_STATE:
        values = conda_state(tree).get("env_vars", {})
        return {name: None if value == CONDA_UNSET else value for name, value in values.items()}
    script = tree / ACTIVATE
    if not script.is_file():
        return {}
    block = BLOCK.search(script.read_bytes().decode("utf-8", "surrogateescape"))
    found: dict[str, str | None] = {}
    for line in block[0].split("\n") if block else ():
        word, _, rest = line.partition(" ")
        if word == "unset":
            found[rest] = None
        elif word == "export":
            name, _, value = rest.partition("=")
            found[name] = "".join(shlex.split(value))
    return found


def conda_state(tree: Path) -> dict[str, dict[str, str]]:
    """The content of conda's state file; empty where there is none. Raises OSError or ValueError."""
    path = tree / CONDA_STATE
    state: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return state


def overlaid(given: Mapping[str, str], kept: Mapping[str, str | None]) -> dict[str, str]:
    """`given` variables with the `kept` ones set and unset over them: those of an activated shell."""
    merged = {**given, **kept}
    return {name: value for name, value in merged.items() if value is not None}
