"""Shadowing packages: copies outside an environment that its Python finds before the installed ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from envmedic.model.facts import Distribution, EnvironmentKind, ImportPath, Leftover, Shadow
from envmedic.probe.metadata import name_and_version, normalise
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.readable import is_directory, is_file, names, read_text

Kind = Literal["user-site", "PYTHONPATH", "pth"]
_TOOLS = frozenset({"pip", "setuptools", "wheel", "distribute", "pkg-resources"})
"""Installers come in several copies everywhere, and no program imports them."""
_COMMON = frozenset({"tests", "test", "examples", "docs", "scripts", "utils", "tools", "benchmarks", "src", "build"})
"""Top-level names that sloppy wheels bring and that every project has too."""
_INSERTED = re.compile(
    r"sys\.path\.insert\(\s*0\s*,\s*r?['\"](?P<folder>[^'\"]+)['\"]|sys\.path\[:?0:?0?\]\s*=\s*\[r?['\"](?P<other>[^'\"]+)['\"]"
)
_VERSION = re.compile(r"^\s*__version__\s*(?::\s*str\s*)?=\s*['\"](?P<version>[^'\"]+)['\"]", re.MULTILINE)


def observe(
    paths: Iterable[ImportPath], installed: Sequence[Distribution], sites: Sequence[Path], kind: EnvironmentKind
) -> tuple[Shadow, ...]:
    """Distributions of an environment that its import paths hide, in the order of the paths.

    A copy of the same version changes nothing and is left out.
    """
    own = [item for item in installed if not item.outside_prefix and item.name not in _TOOLS]
    real = frozenset(os.path.realpath(site) for site in sites)
    found: list[Shadow] = []
    for way, source, folder in _first(paths, kind):
        # PYTHONPATH often names the site-packages of the environment itself, which hides nothing
        if is_directory(folder) and os.path.realpath(folder) not in real:
            found += _hidden(way, source, folder, own)
    return tuple(dict.fromkeys(found))


def path_files(shadows: Iterable[Shadow], scans: Iterable[Scan]) -> tuple[Leftover, ...]:
    """Path files that put another copy before the environment's own and that no distribution brings."""
    found = {item.source: item for item in shadows if item.kind == "pth"}
    for item in (item for scan in scans for item in scan.installed if found):
        for path in item.paths:
            found.pop(f"{item.distribution.site}/{path}", None)
    return tuple(
        Leftover(kind="path-file", path=source, detail=f"puts {item.where} before {item.name} {item.hidden_version}")
        for source, item in sorted(found.items())
    )


def _first(paths: Iterable[ImportPath], kind: EnvironmentKind) -> Iterator[tuple[Kind, str, Path]]:
    """Directories that come before the site-packages of the environment. In a venv the user's site comes after them."""
    for item in paths:
        if item.kind == "PYTHONPATH":
            yield "PYTHONPATH", "PYTHONPATH", Path(item.adds)
        elif item.kind == "user-site" and kind not in {"venv", "virtualenv", "uv"}:
            yield "user-site", item.where, Path(item.adds)
        elif item.kind == "pth":
            # a plain line of a .pth file is appended to sys.path, after site-packages: only code can put one before
            match = _INSERTED.search(item.adds)
            if match is not None:
                yield "pth", item.where, Path(match["folder"] or match["other"])


def _hidden(kind: Kind, source: str, folder: Path, own: Iterable[Distribution]) -> Iterator[Shadow]:
    entries = frozenset(names(folder))
    versions = _versions(entries)
    for item in own:
        module = next((name for name in _modules(item) if name in entries or f"{name}.py" in entries), None)
        if module is None or _same_place(item, folder):
            continue
        where = folder / module if module in entries else folder / f"{module}.py"
        if not _is_module(where):
            continue
        # a source tree on PYTHONPATH has no metadata: its own __version__ is the only statement
        version = versions.get(item.name) or _stated(where)
        if version != item.version:
            yield Shadow(
                kind=kind,
                name=item.name,
                where=str(where),
                version=version,
                hidden_version=item.version,
                source=source,
            )


def _modules(item: Distribution) -> Iterator[str]:
    return (name for name in item.import_names if "." not in name and name not in _COMMON and not name.startswith("_"))


def _is_module(path: Path) -> bool:
    """A package with content of its own: a directory without ``__init__.py`` hides nothing."""
    return is_file(path) or is_file(path / "__init__.py")


def _same_place(item: Distribution, folder: Path) -> bool:
    """Whether it is the source tree of an editable install, which is meant to be found."""
    if item.origin.kind != "editable" or item.origin.url is None:
        return False
    source = Path(unquote(urlsplit(item.origin.url).path))
    real = os.path.realpath(folder)
    return real in {os.path.realpath(source), os.path.realpath(source / "src")}


def _versions(entries: Iterable[str]) -> dict[str, str]:
    """Versions that the names of metadata directories say, by normalised name."""
    stated = (name_and_version(entry) for entry in entries if entry.endswith((".dist-info", ".egg-info")))
    return {normalise(item[0]): item[1] for item in stated if item is not None}


def _stated(where: Path) -> str | None:
    """The version that a package's own source states."""
    files = [where] if is_file(where) else [where / "version.py", where / "_version.py", where / "__init__.py"]
    matches = (_VERSION.search(read_text(file) or "") for file in files)
    return next((match["version"] for match in matches if match is not None), None)
