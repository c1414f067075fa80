"""Search for environments: of conda and its relatives, of projects nearby, and virtual environments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from envmedic import xdg
from envmedic.conda_meta import condarc, pins_and_marks
from envmedic.probe.readable import is_directory, is_file, names, read_text

_USUAL_ROOTS = (
    "~/micromamba", "~/.local/share/mamba", "~/.mamba", "~/mambaforge", "~/miniforge3", "~/miniconda3", "~/anaconda3",
    "/opt/conda", "/opt/miniforge3", "/opt/miniconda3",
)  # fmt: skip
"""Where installers of conda, mamba and micromamba put themselves unless told otherwise."""
DEPTH = 3
"""Levels below the working directory in which virtual environments are looked for."""
MOST = 1000
"""Directories looked into there: in a large tree, some are not found, and a start takes no longer."""
BELOW = "below the working directory"
_NO_PROJECTS = frozenset(
    {".git", "node_modules", "__pycache__", "site-packages", ".cache", ".envmedic", ".envmedic-trees"}
)
PROJECT_VENVS = (".venv", "venv", "env", ".env")


class FoundPrefix(msgspec.Struct, frozen=True):
    """A directory that is, or was, an environment."""

    prefix: Path
    found_by: str
    """Such as ``envs_dirs``, ``environments.txt``, ``VIRTUAL_ENV``."""
    name: str | None = None
    """The name that ``-n`` takes."""


def everywhere(variables: Mapping[str, str], folder: Path) -> tuple[FoundPrefix, ...]:
    """Every environment that can be found from the directory `folder`, each once; names go to the first that has it.

    Conda's come first, in the order in which it looks for a name; then those of projects, then virtual environments.
    """
    found: dict[str, FoundPrefix] = {}
    taken: set[str] = set()
    for place in (*conda(variables), *_projects(variables, folder), *_active(variables), *_venvs(variables, folder)):
        name = None if place.name in taken else place.name
        earlier = found.setdefault(os.path.realpath(place.prefix), FoundPrefix(place.prefix, place.found_by, name))
        if earlier.name:
            taken.add(earlier.name)
    return tuple(found.values())


def conda(variables: Mapping[str, str]) -> Iterator[FoundPrefix]:
    """Conda's environments in the order in which it looks for a name; a place may come more than once."""
    for directory in environment_directories(variables):
        for name in names(directory):
            if is_directory(directory / name / "conda-meta"):
                yield FoundPrefix(directory / name, "envs_dirs", name)
    listed = read_text(xdg.home(variables) / ".conda" / "environments.txt", follow=True) or ""
    bases = {os.path.realpath(root) for root in roots(variables)}
    for line in filter(None, map(str.strip, listed.splitlines())):
        # conda registers its own prefix too, under the name of its directory (miniconda3)
        name = "base" if os.path.realpath(line) in bases else Path(line).name
        yield FoundPrefix(Path(line), "environments.txt", name)
    for root in roots(variables):
        if is_directory(root / "conda-meta"):
            yield FoundPrefix(root, "installation", "base")


def environment_directories(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Conda's ``envs_dirs``: of variables, of configuration files, of the installations, of the user."""
    stated = [variables.get(name, "") for name in ("CONDA_ENVS_DIRS", "CONDA_ENVS_PATH")]
    folders = [item for value in stated for item in value.split(":") if item]
    folders += _configured(variables)
    folders += [str(root / "envs") for root in roots(variables)]
    folders.append(str(xdg.home(variables) / ".conda" / "envs"))
    return tuple(dict.fromkeys(_absolute(item, variables) for item in folders))


def _configured(variables: Mapping[str, str]) -> Iterator[str]:
    """``envs_dirs`` of configuration files, the strongest first; damaged ones say nothing here."""
    prefix, root = variables.get("CONDA_PREFIX"), root_of(variables)
    files = [*condarc.files(Path(prefix) if prefix else None, root, variables), xdg.home(variables) / ".mambarc"]
    # condarc files are listed by ascending strength; conda lists the directories of the strongest first
    for file in reversed(files):
        yield from parse_condarc(read_text(file, follow=True) or "")


def parse_condarc(text: str) -> list[str]:
    """``envs_dirs`` of a .condarc; [] where it has none or is no valid YAML."""
    # most files set only channels: the YAML library need not be loaded for them
    if "envs_dirs" not in text and "envs_path" not in text:
        return []
    try:
        content = condarc.load(text)
    except ValueError:
        return []
    stated = content.get("envs_dirs") or content.get("envs_path") if isinstance(content, dict) else None
    return [item for item in stated if isinstance(item, str)] if isinstance(stated, list) else []


def roots(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Prefixes of conda, mamba and micromamba, that of the user's conda first."""
    own = root_of(variables)
    usual = (_absolute(item, variables) for item in _USUAL_ROOTS)
    there = (item for item in usual if is_directory(item / "envs") or is_directory(item / "conda-meta"))
    return tuple(dict.fromkeys([*([own] if own is not None else []), *there]))


def root_of(variables: Mapping[str, str]) -> Path | None:
    """Prefix of the installation that the variables or PATH name."""
    for name in ("MAMBA_ROOT_PREFIX", "CONDA_ROOT"):
        if variables.get(name):
            return _absolute(variables[name], variables)
    program = variables.get("CONDA_EXE") or shutil.which("conda", path=variables.get("PATH"))
    return Path(os.path.realpath(program)).parent.parent if program else None


def _projects(variables: Mapping[str, str], folder: Path) -> Iterator[FoundPrefix]:
    """Environments of pixi and of conda-workspaces: of the projects around `folder`, and pixi's global ones."""
    for above in (folder, *folder.parents):
        # in the home, ~/.conda/envs are conda's named environments, and ~/.pixi belongs to pixi's global ones
        for within in (".pixi", ".conda") if above != xdg.home(variables) else ():
            for name in names(above / within / "envs"):
                prefix = above / within / "envs" / name
                if is_directory(prefix / "conda-meta") and pins_and_marks.project(prefix) is not None:
                    yield FoundPrefix(prefix, "project")
    own = variables.get("PIXI_HOME") or str(xdg.home(variables) / ".pixi")
    for name in names(Path(own) / "envs"):
        if is_directory(Path(own) / "envs" / name / "conda-meta"):
            yield FoundPrefix(Path(own) / "envs" / name, "pixi global")


def _active(variables: Mapping[str, str]) -> Iterator[FoundPrefix]:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variables.get(name):
            yield FoundPrefix(_absolute(variables[name], variables), name)


def _venvs(variables: Mapping[str, str], folder: Path) -> Iterator[FoundPrefix]:
    stated = variables.get("UV_PROJECT_ENVIRONMENT")
    if stated:
        yield from _if_venv(folder / stated, "UV_PROJECT_ENVIRONMENT")
    yield from _if_venv(folder, "working directory")
    for name in names(folder):
        yield from _if_venv(folder / name, "working directory")
    yield from _below(folder)
    for above in folder.parents:
        for name in PROJECT_VENVS:
            yield from _if_venv(above / name, "project")
    for directory, found_by in _collections(variables):
        for name in names(directory):
            yield from _if_venv(directory / name, found_by)


def _below(folder: Path) -> Iterator[FoundPrefix]:
    """Virtual environments two and three levels below: those of projects that stand side by side."""
    level, looked = [folder], 0
    for _ in range(1, DEPTH):
        entries = [directory / name for directory in level for name in names(directory) if name not in _NO_PROJECTS]
        level = [path for path in entries[: MOST - looked] if is_directory(path) and not path.is_symlink()]
        looked += len(level)
        # an environment holds files of its own, and no projects
        level = [path for path in level if not is_file(path / "pyvenv.cfg")]
        for path in level:
            for name in names(path):
                yield from _if_venv(path / name, BELOW)


def _collections(variables: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Directories in which tools keep virtual environments."""
    user = xdg.home(variables)
    cache = xdg.cache(variables)
    yield Path(variables.get("WORKON_HOME") or user / ".virtualenvs"), "WORKON_HOME"
    yield Path(variables.get("PYENV_ROOT") or user / ".pyenv") / "versions", "pyenv"
    yield Path(variables.get("POETRY_VIRTUALENVS_PATH") or cache / "pypoetry" / "virtualenvs"), "poetry"
    data = xdg.data(variables)
    yield data / "pdm" / "venvs", "pdm"
    # <project>/<hash of its path>/<environment>, see hatch's documentation of its virtual environments
    hatch = Path(variables.get("HATCH_DATA_DIR") or data / "hatch") / "env" / "virtual"
    for project in names(hatch):
        for path in names(hatch / project):
            yield hatch / project / path, "hatch"


def _if_venv(prefix: Path, found_by: str) -> Iterator[FoundPrefix]:
    if is_file(prefix / "pyvenv.cfg"):
        yield FoundPrefix(prefix, found_by)


def _absolute(path: str, variables: Mapping[str, str]) -> Path:
    """With ``~`` and variables filled in; links are kept."""
    expanded = os.path.expandvars(path)
    if expanded == "~" or expanded.startswith("~/"):
        expanded = str(xdg.home(variables)) + expanded[1:]
    return Path(os.path.abspath(expanded))  # noqa: PTH100
