"""Where conda looks for its configuration files.

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
"""The weakest first; beside each ``condarc`` a directory ``condarc.d``."""
_MOST: Final = 20_000
"""Values that a file may have; one of a large site has hundreds."""
_OPENING: Final = re.compile(r"[\[\]{}]|(?:[-?:][ \t]+){9,}")
_ENDINGS: Final = ("condarc", ".yml", ".yaml")
"""Of files that CONDARC may name: conda passes over others."""


def files(prefix: Path | None, root: Path | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """The files that are there, the weakest first, for the environment at `prefix` and the conda at `root`."""
    home = str(xdg.home(environ))
    known = {
        "CONDA_ROOT": str(root) if root else "",
        "CONDA_PREFIX": str(prefix) if prefix else "",
        "CONDARC": environ.get("CONDARC"),
        "XDG_CONFIG_HOME": environ.get("XDG_CONFIG_HOME"),
    }
    seen: set[Path] = set()
    for place in _PLACES:
        name, _, rest = place.partition("/")
        start = home if name == "~" else known.get(name[1:]) if name.startswith("$") else "/"
        path = Path(start, rest) if start else None
        for found in _there(path) if path else ():
            if found not in seen:
                seen.add(found)
                yield found


def load(text: str) -> object:
    """The value in the text of such a file. Raises ValueError where it is no YAML, or stands for too many values."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if _nesting(text) > limits.DEEPEST:  # its reader takes a second for each thousand levels
        raise ValueError("its lists and tables nest too deeply")
    try:
        reader = YAML(typ="safe", pure=True)
        reader.composer.warn_double_anchors = False  # it would go to stderr
        value: object = reader.load(text)
    except RecursionError as error:
        raise ValueError("its lists and tables nest too deeply") from error
    except (YAMLError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(" ".join(str(error).split())) from error  # the parser's own, of texts that are hardly YAML
    limits.require(value, _MOST)
    return value


def _nesting(text: str) -> int:
    """How deep lists and tables can lie in each other at the most, by the characters that open them."""
    depth = deepest = 0
    for found in _OPENING.finditer(text):
        opened = found[0]
        depth += 1 if opened in "[{" else -1 if opened in "]}" else 0
        deepest = max(deepest, depth, len(opened) // 2)
    return deepest


def _there(path: Path) -> Iterator[Path]:
    """The file at `path`, if it is called as conda wants it, and those in the directory beside it."""
    if path.name.endswith(_ENDINGS) and os.path.isfile(path):  # noqa: PTH113  # never raises
        yield path
    folder = path.with_name("condarc.d")
    if path.name == "condarc" and os.path.isdir(folder):  # noqa: PTH112
        yield from sorted(item for item in folder.iterdir() if item.suffix in {".yml", ".yaml"})
