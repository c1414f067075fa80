"""Projects of uv, poetry and PDM: a manifest, a lock, and the environment that the tool makes of it."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import uv

from .room import Argv, Room, Untried, run

Commands = tuple[Argv, ...]


@dataclass(frozen=True)
class Manager:
    """A tool of projects. Commands are without its name; what is asked for in every sync comes behind each `sync`."""

    name: str
    table: str
    """What its manifest says besides the standard's tables, with `{index}` in it."""
    lock: Argv
    ways: Mapping[str, Commands]
    checks: tuple[tuple[Argv, str], ...]
    """Commands that change nothing, and a pattern of what each says where nothing is to do."""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """Where it is."""
        found = uv.find_uv_bin() if self.name == "uv" else shutil.which(self.name)
        if found is None:
            raise Untried(f"{self.name} is not on PATH")
        return found


UV = Manager(
    "uv", "", ("lock",),
    {"sync": (("sync",),), "sync-reinstall": (("sync", "--reinstall"),), "upgrade": (("sync", "--upgrade"),)},
    ((("lock", "--check"), ""), (("sync", "--dry-run"), "Would make no changes")),
    {"UV_LINK_MODE": "copy"},  # else a damaged file is one of uv's cache as well
)  # fmt: skip
# poetry reads no settings of pip, and without a source asks PyPI for more than every mirror has
_SOURCE = '[[tool.poetry.source]]\nname = "own"\nurl = "{index}"\n'
POETRY = Manager(
    "poetry", f"[tool.poetry]\npackage-mode = false\n{_SOURCE}", ("lock",),
    {
        "sync": (("sync",),), "install": (("install",),), "relock": (("lock",), ("sync",)),
        "upgrade": (("update", "--sync"),),
    },
    ((("check", "--lock"), ""), (("sync", "--dry-run"), "0 installs, 0 updates, 0 removals")),
    {"POETRY_VIRTUALENVS_IN_PROJECT": "true", "POETRY_NO_INTERACTION": "1"},
)  # fmt: skip
PDM = Manager(
    "pdm", "[tool.pdm]\ndistribution = false\n", ("lock", "--update-reuse"),
    {
        "sync": (("sync", "--clean"),), "sync-reinstall": (("sync", "--clean", "--reinstall"),),
        "install": (("install",),), "relock": (("lock", "--update-reuse"), ("sync", "--clean")),
        "upgrade": (("update", "--update-all"),),
    },
    ((("lock", "--check"), ""), (("sync", "--clean", "--dry-run"), "All packages are synced to date")),
    {"PDM_CHECK_UPDATE": "0"},
)  # fmt: skip
MANAGERS = {manager.name: manager for manager in (UV, POETRY, PDM)}


@dataclass(frozen=True)
class Project(Room):
    """The environment of a project, which is in its folder."""

    manager: Manager
    selected: Argv = ()
    """Groups and members that are part of every sync."""

    @property
    def folder(self) -> Path:
        """The project."""
        return self.prefix.parent

    @property
    def manifest(self) -> Path:
        """What people edit."""
        return self.folder / "pyproject.toml"

    @property
    def variables(self) -> Mapping[str, str]:
        """As the tool wants them, which is found by name."""
        path = os.pathsep.join((str(Path(self.manager.program).parent), os.environ["PATH"]))
        return {**self.manager.variables, "PATH": path, "NO_COLOR": "1"}

    @property
    def beside(self) -> tuple[Path, ...]:
        """Manifests and lock."""
        files = (*self.folder.glob("*.lock"), *self.folder.rglob("pyproject.toml"))
        return tuple(path for path in files if not {".venv", ".envmedic"} & set(path.relative_to(self.folder).parts))

    @property
    def asked(self) -> tuple[str, ...]:
        """What the manifest names and is installed."""
        named = re.findall(r'^\s*"([\w.-]+)', self.manifest.read_text(), re.MULTILINE)
        return tuple(
            name for name in dict.fromkeys(named) if [*self.site.glob(f"{name.replace('-', '_')}-*.dist-info")]
        )

    @property
    def ways(self) -> Mapping[str, Commands]:
        """What the tool offers."""
        ways = {name: tuple(map(self._whole, commands)) for name, commands in self.manager.ways.items()}
        return {**ways, "recreate": (self._empty, *ways["sync"])}

    @property
    def _empty(self) -> Argv:
        return (uv.find_uv_bin(), "venv", "-q", "--clear", "--python", sys.executable, str(self.prefix))

    def _whole(self, words: Argv) -> Argv:
        return (self.manager.program, *words, *(self.selected if words[0] in ("sync", "install") else ()))

    def lock(self) -> None:
        """Make the lock of the manifest; what it holds already stays where it can."""
        self._do(self.manager.lock)

    def make(self) -> None:
        """Make an empty environment, in place of one that is there."""
        run(self._empty).check_returncode()

    def sync(self) -> None:
        """Make the environment as the lock says."""
        for words in self.manager.ways["sync"]:
            self._do(words)

    def _do(self, words: Argv) -> None:
        done = run(self._whole(words), variables=self._variables(), folder=self.folder)
        if done.returncode:
            raise RuntimeError(f"{self.manager.name} {' '.join(words)}: {done.stdout[-600:]}{done.stderr[-900:]}")

    def _variables(self) -> dict[str, str]:
        """With the environment as the active one, where there is one."""
        return {**self.variables, "VIRTUAL_ENV": str(self.prefix)} if self.prefix.exists() else dict(self.variables)

    def complaints(self) -> frozenset[str]:
        """What its checks say, other than that all is as it should be."""
        found = set()
        for words, nothing in self.manager.checks:
            done = run(self._whole(words), variables=self._variables(), folder=self.folder)
            said = done.stdout + done.stderr
            if done.returncode or not re.search(nothing, said):
                found.add(f"{self.manager.name} {' '.join(words)}: {' / '.join(said.strip().splitlines()[-4:])}")
        return frozenset(found)

    def edit(self, old: str, new: str) -> None:
        """Change the manifest."""
        text = self.manifest.read_text()
        if old not in text:
            raise ValueError(f"{old} is not in {self.manifest}")
        self.manifest.write_text(text.replace(old, new))


@dataclass(frozen=True)
class Files:
    """What a project is made of."""

    wants: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """What it wanted as its lock was made; empty: the same."""
    tables: str = ""
    """More of its manifest."""
    others: Mapping[str, str] = field(default_factory=dict)
    """More files, by path."""
    selected: Argv = ()
    folder: str = "shop"


def project(name: str, files: Files) -> Callable[[Path], Room]:
    """A scene: the project, locked and synced."""

    def make(place: Path) -> Room:
        made = Project(place / files.folder / ".venv", MANAGERS[name], files.selected)
        for path, text in files.others.items():
            (made.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (made.folder / path).write_text(text)
        made.folder.mkdir(parents=True, exist_ok=True)
        made.make()
        if name == "pdm":
            (made.folder / ".pdm-python").write_text(str(made.python))
        for wants in (files.before, files.wants) if files.before else (files.wants,):
            made.manifest.write_text(_manifest(wants, files.tables, made.manager))
            made.lock()
        made.sync()
        made.compile()
        return made

    return make


def _manifest(wants: tuple[str, ...], tables: str, manager: Manager) -> str:
    listed = "".join(f'    "{line}",\n' for line in wants)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return (
        f'[project]\nname = "shop"\nversion = "1"\nrequires-python = ">={version},<4"\ndependencies = [\n{listed}]\n\n'
        f"{tables}{manager.table.format(index=own_index())}"
    )


@functools.cache
def own_index() -> str:
    """The index that pip asks, by its settings."""
    pip = (sys.executable, "-m", "pip")
    said = run((*pip, "config", "list")).stdout
    found = dict(re.findall(r"""^(:env:|install|global)\.index-url=['"](.*)['"]$""", said, re.MULTILINE))
    if found:
        return str(next(found[of] for of in (":env:", "install", "global") if of in found))
    # nobody has set one: its help names that of everybody (and an index of one's own without the password)
    [named] = re.findall(r"--index-url <url>[^()]*\(default\s+(\S+)\)", run((*pip, "install", "--help")).stdout)
    return str(named)


def of_project(act: Callable[[Project], None]) -> Callable[[Room], None]:
    """What is done to a project."""

    def done(room: Room) -> None:
        if not isinstance(room, Project):
            raise TypeError(f"{room.prefix} is no project's")
        act(room)

    return done
