"""Import paths: .pth files, variables and scripts that put other modules or libraries before the environment's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from envmedic.model.facts import ImportPath, Interpreter
from envmedic.probe import layout
from envmedic.probe.readable import is_directory, names, read_text
from envmedic.redact import redact_text

_HARMLESS_HOOKS = re.compile(
    r"import (?:_virtualenv\b|_distutils_hack\b|os; var = 'SETUPTOOLS_USE_DISTUTILS'"
    r"|sys, ?types, ?os; ?(?:has_mfs|p) ?="  # a namespace package of setuptools: protobuf 3, matplotlib 3.6, Google's
    r"|os; exec\('try: __import__\(\"coloredlogs\"\)"  # comes with onnxruntime
    r"|sys; ?exec\('import os\\n\\nif os\.getenv\(\"COVERAGE_PROCESS"
    r"|os, ?sys; ?exec\('if \\'COV_CORE_SOURCE\\'"
    r"|_cuda_bindings_redirector$)"
)
"""Lines by which tools and libraries start with Python, and which let imports find nothing outside of site-packages."""
_ASSIGNED = re.compile(
    r"^\s*(?:export\s+|set\s+-gx\s+|setenv\s+)?"
    r"(?P<name>PYTHONPATH|LD_LIBRARY_PATH|LD_PRELOAD|CUDA_HOME|CUDA_PATH|TORCH_CUDA_ARCH_LIST)"
    r"(?:=|\s+)(?P<value>\S.*)$"
)
SHOWN = 300
_LARGEST = 1 << 20
"""Bytes of a script or a .pth file that is worth reading."""


def observe(
    found: layout.Layout, interpreter: Interpreter, sites: Iterable[Path], variables: Mapping[str, str] | None = None
) -> tuple[ImportPath, ...]:
    """List them in the order of the kinds; `variables` defaults to this process's environment."""
    given = os.environ if variables is None else variables
    folders = tuple(sites)
    return (
        *(item for site in folders for item in _path_files(site, found.prefix)),
        *(item for site in folders for item in _customisations(site, found.prefix)),
        *_user_site(found, interpreter, given),
        *_variables(given),
        *_activation(found.prefix),
    )


def _path_files(site: Path, prefix: Path) -> Iterator[ImportPath]:
    for name in names(site):
        if name.endswith(".pth") and not name.startswith("."):
            where = layout.relative(site / name, prefix)
            for added in parse_pth(read_text(site / name, _LARGEST) or ""):
                yield ImportPath(kind="pth", where=where, adds=redact_text(added)[:SHOWN])


def parse_pth(text: str) -> tuple[str, ...]:
    """Directories that a .pth file adds, and the code that it runs, as ``site`` reads it."""
    return tuple(line for line in path_lines(text) if not _HARMLESS_HOOKS.match(line))


def path_lines(text: str) -> tuple[str, ...]:
    """The same with the lines that change nothing about what imports find."""
    # newer Pythons skip the byte order mark that editors on Windows write
    return tuple(
        line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip() and not line.startswith("#")
    )


def _customisations(site: Path, prefix: Path) -> Iterator[ImportPath]:
    for name in ("sitecustomize.py", "usercustomize.py"):
        if name in names(site):
            where = layout.relative(site / name, prefix)
            yield ImportPath(kind="sitecustomize", where=where, adds="code that runs when Python starts")


def _user_site(found: layout.Layout, interpreter: Interpreter, variables: Mapping[str, str]) -> Iterator[ImportPath]:
    """The user's own site-packages, which virtual environments leave out unless they include the system's."""
    isolated = found.kind in ("venv", "virtualenv", "uv") and not found.includes_system_site
    version = re.match(r"\d+\.\d+", interpreter.version or "")
    if isolated or version is None or variables.get("PYTHONNOUSERSITE"):
        return
    base = variables.get("PYTHONUSERBASE") or str(Path(variables.get("HOME") or "/nonexistent", ".local"))
    folder = Path(base, "lib", f"python{version[0]}{'t' if interpreter.free_threaded else ''}", "site-packages")
    if is_directory(folder) and names(folder):
        yield ImportPath(kind="user-site", where=str(folder), adds=str(folder))


def _variables(variables: Mapping[str, str]) -> Iterator[ImportPath]:
    for item in variables.get("PYTHONPATH", "").split(os.pathsep):
        if item:
            yield ImportPath(kind="PYTHONPATH", where="process", adds=item)
    for item in re.split("[:;]", variables.get("LD_LIBRARY_PATH", "")):
        if item:
            yield ImportPath(kind="LD_LIBRARY_PATH", where="process", adds=item)
    for item in re.split(r"[:\s]+", variables.get("LD_PRELOAD", "")):
        if item:
            yield ImportPath(kind="LD_PRELOAD", where="process", adds=item)


def _activation(prefix: Path) -> Iterator[ImportPath]:
    scripts = [prefix / "bin" / name for name in names(prefix / "bin") if name.lower().startswith("activate")]
    folder = prefix / "etc" / "conda" / "activate.d"
    for script in [*scripts, *(folder / name for name in names(folder))]:
        for line in parse_script(read_text(script, _LARGEST) or ""):
            where = layout.relative(script, prefix)
            yield ImportPath(kind="activation-script", where=where, adds=redact_text(line)[:SHOWN])


def parse_script(text: str) -> tuple[str, ...]:
    """``NAME=value`` of the assignments in an activation script that change where code is found."""
    matches = (_ASSIGNED.match(line) for line in text.splitlines())
    return tuple(f"{item['name']}={item['value'].strip()}" for item in matches if item)
