"""Build tools of an environment: CUDA toolkits, compilers, ninja, Python's headers, torch's builder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from envmedic import activation
from envmedic.model.facts import Building, Distribution, Interpreter, KeptVariable, RecordedSource, Toolkit
from envmedic.probe.binaries.family_files import Package
from envmedic.probe.layout import Layout
from envmedic.probe.machine import toolchain
from envmedic.probe.prefix import shell_scripts
from envmedic.probe.readable import is_directory, is_file, names, read_text

_LIST = re.compile(r"\bsupported_arches\s*=\s*\[(?P<items>[^\]]*)\]")
_NAMED = re.compile(r"\bnamed_arches\s*=\s*(?:collections\.)?OrderedDict\(\[(?P<items>.*?)\]\)", re.DOTALL)
_NAME = re.compile(r"\(\s*'(?P<name>[\w+]+)'\s*,")
_QUOTED = re.compile(r"'([^']+)'")
_REQUIRES = re.compile(r"^\s*requires\s*=\s*\[(?P<items>[^\]]*(?:\[[^\]]*\][^\]]*)*)\]", re.MULTILINE)
_STRINGS = re.compile(r"\"([^\"]+)\"|'([^']+)'")
_CUDA_SOURCES = (".cu", ".cuh")
_MOST_FILES = 20_000
_PACKAGING = re.compile(r"^\s*from pkg_resources import packaging\b", re.MULTILINE)
_RESOURCES = re.compile(r"^\s*(?:import pkg_resources\b|from pkg_resources\b)", re.MULTILINE)


def observe(
    found: Layout,
    python: Interpreter,
    *,
    installed: Sequence[Distribution],
    sites: Sequence[Path],
    torch: Package | None,
    variables: Mapping[str, str],
) -> Building:
    """Find the build tools. Programs run: compilers that variables name, and an nvcc without a version file.

    None runs where nobody named the environment. `variables` are those of the shell that activates the environment.
    """
    prefix = found.prefix
    assigned = shell_scripts.assignments(prefix, variables)
    # activation puts the bin of the environment first on PATH
    path = os.pathsep.join((str(prefix / "bin"), variables.get("PATH", os.defpath)))
    # which names of architectures a torch accepts is known only to this file; it is read, since an import of torch
    # could fail in the environment under diagnosis
    builder = read_text(torch.folder / "utils" / "cpp_extension.py") or "" if torch is not None else ""
    return Building(
        assignments=assigned,
        toolkits=tuple(_toolkits(prefix, sites, assigned, start=python.named)),
        compilers=toolchain.named(_set(prefix, assigned, "CC", "CXX"), path) if python.named else (),
        ninja=shutil.which("ninja", path=path),
        python_headers=_headers(found, python),
        architectures=_items(_LIST, builder, _QUOTED),
        named_architectures=_items(_NAMED, builder, _NAME),
        sources=tuple(_source(item) for item in installed if item.origin.kind == "directory"),
        imports_of_setuptools=_imports(builder, torch),
    )


def _toolkits(
    prefix: Path, sites: Iterable[Path], assigned: Iterable[KeptVariable], *, start: bool
) -> Iterator[Toolkit]:
    seen: set[str] = set()
    for folder, found_by in (*_named(prefix, assigned), *_inside(prefix, sites)):
        real = os.path.realpath(folder)
        if real not in seen and is_directory(folder):
            seen.add(real)
            yield toolchain.toolkit(folder, found_by, start=start)


def _named(prefix: Path, assigned: Iterable[KeptVariable]) -> Iterator[tuple[Path, str]]:
    """Folders that the environment's variables name, one by one where a variable wrongly holds a list."""
    for name, value in _set(prefix, assigned, "CUDA_HOME", "CUDA_PATH"):
        yield from ((Path(part), name) for part in value.split(":") if part)


def _set(prefix: Path, assigned: Iterable[KeptVariable], *names: str) -> Iterator[tuple[str, str]]:
    """What the environment's activation sets these variables to, by its scripts and by what it keeps."""
    try:
        own = activation.variables(prefix)
    except (OSError, ValueError):  # `kept_variables` reports a damaged state file
        own = {}
    values = [(item.name, item.value) for item in assigned] + list(own.items())
    yield from ((name, value) for name, value in values if name in names and value is not None)


def _inside(prefix: Path, sites: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The prefix itself (conda's cuda-nvcc), and NVIDIA's wheels from CUDA 13 on, which share one folder."""
    if is_file(prefix / "bin" / "nvcc"):
        yield prefix, "prefix"
    for site in sites:
        for name in names(site / "nvidia"):
            if re.fullmatch(r"cu\d+|cuda_nvcc", name) and is_file(site / "nvidia" / name / "bin" / "nvcc"):
                yield site / "nvidia" / name, "prefix"


def _headers(found: Layout, python: Interpreter) -> bool | None:
    """Whether ``Python.h`` exists in an include directory of the interpreter; None without a version."""
    match = re.match(r"\d+\.\d+", python.version or "")
    if match is None:
        return None
    roots = [Path(python.base_prefix)] if python.base_prefix is not None else []
    folders = [root / "include" / name for root in (*roots, found.prefix) for name in names(root / "include")]
    wanted = re.compile(rf"python{re.escape(match[0])}[a-z]*")
    return any(is_file(folder / "Python.h") for folder in folders if wanted.fullmatch(folder.name))


def _items(assignment: re.Pattern[str], text: str, item: re.Pattern[str]) -> tuple[str, ...]:
    """Items of a list in torch's builder."""
    # the assignments are near the end of 100 kB, where a lazy pattern from the start would try every line
    start = text.find("_arches")
    match = assignment.search(text, text.rfind("\n", 0, start) + 1) if start >= 0 else None
    return tuple(dict.fromkeys(item.findall(match["items"]))) if match is not None else ()


def _source(item: Distribution) -> RecordedSource:
    """The directory that direct_url.json names, as it is now."""
    folder = Path(unquote(urlsplit(item.origin.url or "").path) or "/nonexistent")
    exists = any(is_file(folder / name) for name in ("setup.py", "pyproject.toml", "setup.cfg"))
    cuda = exists and any(name.endswith(_CUDA_SOURCES) for name in _files(folder))
    stated = _REQUIRES.search(read_text(folder / "pyproject.toml") or "")
    requires = tuple(one or two for one, two in _STRINGS.findall(stated["items"])) if stated is not None else None
    return RecordedSource(distribution=item.name, path=str(folder), exists=exists, cuda=cuda, requires=requires)


def _files(folder: Path) -> Iterator[str]:
    """File names of a source tree, without hidden and build directories; at most some `_MOST_FILES`."""
    count = 0
    for _, folders, found in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("build", "dist")]
        yield from found
        count += len(found)
        if count > _MOST_FILES:
            return


def _imports(builder: str, torch: Package | None) -> tuple[str, ...]:
    """Parts of setuptools that not every version has, as far as torch's builder imports them when it is loaded."""
    texts = [builder, read_text(torch.folder / "torch_version.py") or ""] if torch is not None else []
    texts = [text for text in texts if "pkg_resources" in text]  # before the patterns, which try every line
    if any(map(_PACKAGING.search, texts)):
        return ("pkg_resources", "pkg_resources.packaging")
    return ("pkg_resources",) if any(map(_RESOURCES.search, texts)) else ()
