"""The variables that an environment keeps for the shells that activate it, as they stand in its files.

Marked blocks in a venv's ``bin/activate``, which `engine.variables` writes, conda's own state file, and what users
have written into the scripts that activation runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from envmedic import safe_io, shell

BEGIN = "# >>> envmedic >>> kept by envmedic; `envmedic undo` takes it back"
END = "# <<< envmedic <<<"
BLOCK = re.compile(r"\n?^[^\n]*# >>> envmedic >>>.*?# <<< envmedic <<<[^\n]*\n", re.DOTALL | re.MULTILINE)
"""What `engine.variables` has put into a script."""
ACTIVATE = "bin/activate"
CONDA_STATE = "conda-meta/state"
CONDA_UNSET = "***unset***"
"""The value by which conda marks a variable as unset: its CONDA_ENV_VARS_UNSET_VAR."""
AT_RUN_TIME = frozenset({
    "CUDA_VISIBLE_DEVICES", "KMP_DUPLICATE_LIB_OK", "LD_LIBRARY_PATH", "LD_PRELOAD", "MKL_SERVICE_FORCE_INTEL",
    "MKL_THREADING_LAYER", "PYTHONNOUSERSITE", "PYTHONPATH",
})  # fmt: skip
"""Variables that decide what a program loads, of those that users write into activation scripts."""


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
    block = BLOCK.search(safe_io.read(script, shell.LARGEST).decode("utf-8", "surrogateescape"))
    found: dict[str, str | None] = {}
    for line in block[0].split("\n") if block else ():
        word, _, rest = line.partition(" ")
        if word == "unset":
            found[rest] = None
        elif word == "export":
            name, _, value = rest.partition("=")
            found[name] = "".join(shlex.split(value))
    return found


def activated(tree: Path, prefix: Path, given: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
    """What activation sets and unsets, by name: the value (None unsets) and where it is said, relative to `tree`.

    Of the users' own lines those on `AT_RUN_TIME`; `prefix` is what scripts know as their environment, `given` the
    variables of the shell. Raises OSError or ValueError for a file that cannot be read.
    """
    own = variables(tree)
    where = source(tree)
    known = {**given, "VIRTUAL_ENV": str(prefix), "CONDA_PREFIX": str(prefix)}
    if where == CONDA_STATE:  # which activation sets before it runs the scripts
        known = overlaid(known, own)
    found: dict[str, tuple[str | None, str]] = {name: (value, where) for name, value in own.items()}
    for script in scripts(tree):
        text = safe_io.read(script, shell.LARGEST).decode("utf-8", "replace")
        for name, value, number in shell.statements(text, known, AT_RUN_TIME):
            if (value, where) != found.get(name):
                found[name] = (value, f"{script.relative_to(tree)}:{number}")
    return found


def activated_values(tree: Path, prefix: Path, given: Mapping[str, str]) -> dict[str, str | None]:
    """What `activated` finds, without where it is said."""
    return {name: value for name, (value, _) in activated(tree, prefix, given).items()}


def scripts(tree: Path) -> tuple[Path, ...]:
    """The scripts for sh that activating runs, in their order."""
    own = (tree / "bin" / name for name in ("activate", "postactivate"))
    folder = tree / "etc" / "conda" / "activate.d"
    conda = sorted(folder.glob("*.sh")) if folder.is_dir() else []
    return tuple(path for path in (*own, *conda) if path.is_file())


def conda_state(tree: Path) -> dict[str, dict[str, str]]:
    """The content of conda's state file; empty where there is none. Raises OSError or ValueError."""
    path = tree / CONDA_STATE
    if not path.is_file():
        return {}
    import json  # noqa: PLC0415  # no virtual environment has one

    try:
        state: object = json.loads(safe_io.read(path, shell.LARGEST))
    except RecursionError as error:
        raise ValueError(f"{CONDA_STATE} is nested too deeply") from error
    if not isinstance(state, dict) or not _are_texts(state.get("env_vars", {})):
        raise ValueError(f"{CONDA_STATE} holds something else than variables")
    return state


def _are_texts(variables: object) -> bool:
    return isinstance(variables, dict) and all(isinstance(value, str) for value in variables.values())


def overlaid(given: Mapping[str, str], kept: Mapping[str, str | None]) -> dict[str, str]:
    """`given` variables with the `kept` ones set and unset over them: those of an activated shell."""
    merged = {**given, **kept}
    return {name: value for name, value in merged.items() if value is not None}
