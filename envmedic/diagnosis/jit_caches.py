"""Caches of code that is compiled while programs run: which one a line of a text names, and the lines that mend it."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from envmedic.model.playbook import FactValue

VARIABLES: Final = ("TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
"""Variables that name the directories of these caches."""
_USUAL: Final = (
    ("TORCH_EXTENSIONS_DIR", re.compile(r"/\S*?/torch_extensions(?=/|$)")),
    ("TRITON_CACHE_DIR", re.compile(r"(?:/\S*?)?/\.triton(?:/cache)?(?=/|$)")),
    ("TORCHINDUCTOR_CACHE_DIR", re.compile(r"/\S*?/torchinductor_[\w.@-]+(?=/|$)")),
    ("CUDA_CACHE_PATH", re.compile(r"/\S*?/\.nv/ComputeCache(?=/|$)")),
)
"""The directories without these variables, below the home directory, the user's cache and /tmp."""
_PATH = re.compile(r"/[^\s'\"`:;,()<>\[\]]+")
_PARTED: Final = frozenset({"TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"})
"""Caches with a directory for each module or kernel."""


class _Place(NamedTuple):
    variable: str
    root: str
    path: str

    @property
    def part(self) -> str:
        """The directory of the one module or kernel, where the cache has such."""
        folder = posixpath.dirname(self.path)
        return folder if self.variable in _PARTED and folder.startswith(f"{self.root}/") else self.root


def cache_facts(line: str, settings: FactValue) -> dict[str, FactValue]:
    """Return the facts ``text.cache-…`` of a line of a text; `settings` are the variables, as ``NAME=VALUE``."""
    place = next(_places(line, settings if isinstance(settings, tuple) else ()), None)
    if place is None:
        return {}
    return {
        "text.cache-remove": f"rm -r {shlex.quote(place.part)}",
        "text.cache-clear": f"rm -r {shlex.quote(place.root)}",
        "text.cache-redirect": f'export {place.variable}="$(mktemp -d)"',
    }


def _places(line: str, settings: tuple[str, ...]) -> Iterator[_Place]:
    own = [(name, posixpath.normpath(value)) for name, _, value in (item.partition("=") for item in settings)]
    for found in _PATH.finditer(line):
        path = found[0].rstrip(".")
        for name, root in own:
            if path == root or path.startswith(f"{root}/"):
                yield _Place(name, root, path)
        for name, usual in _USUAL:
            match = usual.match(path)
            if match is not None and "/site-packages/" not in path:
                yield _Place(name, match[0], path)
