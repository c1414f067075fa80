"""Search path and reader of conda's configuration files.

Search path: https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/ ("Searching for .condarc").
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from envmedic import limits, xdg

_PLACES: Final = (
    *(f"{folder}/{name}" for folder in ("/etc/conda", "/var/lib/conda") for name in (".condarc", "condarc")),
    *(f"$CONDA_ROOT/{name}" for name in (".condarc", "condarc")),
    *(f"$XDG_CONFIG_HOME/conda/{name}" for name in (".condarc", "condarc")),
    *(f"~/{folder}/{name}" for folder in (".config/conda", ".conda") for name in (".condarc", "condarc")),
    "~/.condarc",
    *(f"$CONDA_PREFIX/{name}" for name in (".condarc", "condarc")),
    "$CONDARC",
)
"""In ascending priority; each ``condarc`` may have a directory ``condarc.d`` next to it."""
_MOST: Final = 20_000
"""Limit of values in one file; the file of a large site has hundreds."""
# opens a list or table: a bracket, or at least nine block indicators in a row on one line (`- - - …`)
_OPENING: Final = re.compile(r"[\[\]{}]|(?:[-?:][ \t]+){9,}")
_ENDINGS: Final = ("condarc", ".yml", ".yaml")
"""Accepted ends of the file name in ``CONDARC``; conda ignores other files."""


def files(prefix: Path | None, root: Path | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the existing files in ascending priority, for the environment at `prefix` and the conda at `root`."""
    home = str(xdg.home(environ))
    known = {
        "CONDA_ROOT": str(root) if root else "",
        "CONDA_PREFIX": str(prefix) if prefix else "",
        "CONDARC": environ.get("CONDARC"),
        "XDG_CONFIG_HOME": environ.get("XDG_CONFIG_HOME"),
    }
    # two places can be one file, such as CONDA_ROOT and CONDA_PREFIX in the base environment
    seen: set[Path] = set()
    for place in _PLACES:
        name, _, rest = place.partition("/")
        # conda expands only the variables that are set, so a place with an unset one does not exist
        start = home if name == "~" else known.get(name[1:]) if name.startswith("$") else "/"
        path = Path(start, rest) if start else None
        for found in _there(path) if path else ():
            if found not in seen:
                seen.add(found)
                yield found


def load(text: str) -> object:
    """Return the value in the text of a configuration file. Raises ValueError for invalid YAML or too many values."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    # before the parser sees it: ruamel.yaml takes a second for each thousand levels
    if _nesting(text) > limits.DEEPEST:
        raise ValueError("its lists and tables nest too deeply")
    try:
        reader = YAML(typ="safe", pure=True)
        reader.composer.warn_double_anchors = False  # it would go to stderr
        value: object = reader.load(text)
    except RecursionError as error:
        raise ValueError("its lists and tables nest too deeply") from error
    except (YAMLError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # the other classes are bugs of the parser, which fuzzing found on texts that are hardly YAML
        raise ValueError(" ".join(str(error).split())) from error
    # aliases make a short text stand for millions of values, so the value is counted and not the text
    limits.require(value, _MOST)
    return value


def _nesting(text: str) -> int:
    """Return an upper bound of the nesting depth, from the characters that open lists and tables."""
    depth = deepest = 0
    for found in _OPENING.finditer(text):
        opened = found[0]
        depth += 1 if opened in "[{" else -1 if opened in "]}" else 0
        deepest = max(deepest, depth, len(opened) // 2)
    return deepest


def _there(path: Path) -> Iterator[Path]:
    """Yield the file at `path` if conda accepts its name, and the files in ``condarc.d`` next to it."""
    # os.path, not pathlib: Path.is_file raises PermissionError for a directory that may not be searched
    if path.name.endswith(_ENDINGS) and os.path.isfile(path):
        yield path
    folder = path.with_name("condarc.d")
    if path.name == "condarc" and os.path.isdir(folder):
        yield from sorted(item for item in folder.iterdir() if item.suffix in {".yml", ".yaml"})
