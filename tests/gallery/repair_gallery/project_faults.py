"""What breaks in projects: an environment that drifted from a sound lock, a lock that holds the fault, files that moved."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from .faults import CONTOUR, Fault
from .projects import Files, Project, of_project, project
from .room import Base, Room, run

WANTS = ("numpy>=2,<2.3", "contourpy>=1.3,<1.4", "flask>=3", "tqdm>=4.66")
SHOP = Files(WANTS)
FLASK = "import flask; flask.Flask('shop')"
FRAME = "import pandas; assert pandas.DataFrame({'a': [1, 2]}).a.sum() == 3"
PARAMETERS = "from click.core import ParameterSource; ParameterSource.DEFAULT"
ATTRS = "import attrs; attrs.define"
SIX = "import six; six.moves"
PROBES = {"numpy": "import numpy; numpy.linalg.inv(numpy.eye(3))", "tqdm": "import tqdm"}

Act = Callable[[Project], None]
ALL: tuple[Base, ...] = ("uv", "poetry", "pdm")


def _again(room: Project) -> None:
    """What the lock says, with every file new."""
    room.make()
    room.sync()


def _edited(old: str, new: str) -> Act:
    """Another line in the manifest, then lock and environment."""

    def repair(room: Project) -> None:
        room.edit(old, new)
        room.lock()
        room.sync()

    return repair


def _upgraded(name: str) -> Act:
    """A lock with the newest release of one distribution."""

    def repair(room: Project) -> None:
        run([*_UPGRADE[room.manager.name](room), name], variables=room.variables, folder=room.folder).check_returncode()
        room.sync()

    return repair


_UPGRADE: dict[str, Callable[[Project], tuple[str, ...]]] = {
    "uv": lambda room: (room.manager.program, "lock", "--upgrade-package"),
    "poetry": lambda room: (room.manager.program, "update", "--lock"),
    "pdm": lambda room: (room.manager.program, "update", "--no-sync"),
}


def _by_pip(*words: str) -> Act:
    """As who does not think of the project: ``pip install`` into its environment."""

    def make(room: Project) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(room.python), "install", "-q", "--no-deps", *words]
        run(command, variables=room.variables).check_returncode()

    return make


def _rewritten(room: Project) -> None:
    """The manifest was edited by hand, and nobody made the lock anew."""
    room.edit('    "tqdm', '    "six>=1.16",\n    "tqdm')


def _moved(room: Project) -> None:
    """The source of an editable distribution gets another place, and nobody tells the project."""
    (room.folder / "libs").rename(room.folder / "packages")


def _nothing(room: Room) -> None:
    del room


def _fault(  # noqa: PLR0917  a row of a table
    base: Base,
    name: str,
    kind: str | None,
    make: Callable[[Room], None] | Act,
    program: str,
    mend: Act,
    files: Files = SHOP,
    **more: object,
) -> Fault:
    probes = {**PROBES, "flask": FLASK, "contour": CONTOUR} if files.wants == WANTS else {}
    return Fault(
        f"{base}: {name}", kind, make if make is _nothing else of_project(make), program, base=base,
        scene=project(base, files), reference=of_project(mend), probes=probes, options=("--edit-project",), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def _drifted() -> Iterator[Fault]:
    """The lock is right."""
    for base in ALL:
        yield _fault(base, "a release by pip that its neighbour does not know", "companion-version",
                     _by_pip("jinja2==2.11.3"), FLASK, _again)  # fmt: skip
        yield _fault(base, "two copies of one distribution", "duplicate-install",
                     _by_pip("--ignore-installed", "click==7.1.2"), PARAMETERS, _again)  # fmt: skip
    for base in ("uv", "pdm"):
        yield _fault(base, "a package removed", "missing-requirement", lambda room: room.uninstall("contourpy"), CONTOUR,
                     _again)  # fmt: skip
    for base in ("uv", "poetry"):
        yield _fault(base, "a compiled file cut short", "half-installed", lambda room: room.cut("contourpy/_contourpy*.so"),
                     CONTOUR, _again)  # fmt: skip
    yield _fault(
        "pdm", "files deleted", "half-installed", lambda room: room.delete("markupsafe/__init__.py"), FLASK, _again
    )
    yield _fault("uv", "built for another NumPy, by pip", "numpy-abi", _by_pip("pandas==2.0.3"), FRAME,
                 _again, Files((*WANTS, "pandas>=2.2,<3")))  # fmt: skip
    yield _fault("uv", "healthy", None, _nothing, "import numpy", _again, silent=True, ending="untouched")


def _locked() -> Iterator[Fault]:
    """The lock holds the fault."""
    pair = Files(("flask==2.2.2", "tqdm"))
    for base in ALL:
        yield _fault(base, "a pair in the lock that disagrees", "companion-version", _nothing, FLASK,
                     _edited('"flask==2.2.2"', '"flask==2.2.2",\n    "werkzeug<3"'), pair)  # fmt: skip
        yield _fault(base, "a release in the lock that is too old", "companion-version", _nothing, ATTRS,
                     _upgraded("attrs"), Files(("attrs>=20", "tqdm"), before=("attrs>=20,<21", "tqdm")))  # fmt: skip
    for base in ("uv", "pdm"):
        yield _fault(base, "NumPy 2 in the lock beside what was built for 1", "numpy-abi", _nothing, FRAME,
                     _edited('"pandas==2.0.3"', '"pandas==2.0.3",\n    "numpy<2"'), Files(("pandas==2.0.3", "tqdm", "python-dateutil<3")))  # fmt: skip
    yield _fault("uv", "a pin in the manifest that is too old", "companion-version", _nothing, ATTRS,
                 _edited('"attrs==20.3.0"', '"attrs>=21.3"'), Files(("attrs==20.3.0", "tqdm")),
                 ending="refused")  # fmt: skip


def _structured() -> Iterator[Fault]:
    """Groups, workspaces, sources of one's own, and a lock that nobody made anew."""
    group = '[dependency-groups]\nweb = ["flask==2.2.2"]\n\n'
    yield _fault("uv", "a group in the lock that disagrees", "companion-version", _nothing, FLASK,
                 _edited('["flask==2.2.2"]', '["flask==2.2.2", "werkzeug<3"]'),
                 Files(("tqdm",), tables=group, selected=("--group", "web")))  # fmt: skip
    yield _fault("poetry", "a group in the lock that disagrees", "companion-version", _nothing, FLASK,
                 _edited('flask = "2.2.2"', 'flask = "2.2.2"\nwerkzeug = "<3"'),
                 Files(("tqdm",), tables='[tool.poetry.group.web.dependencies]\nflask = "2.2.2"\n\n'))  # fmt: skip
    yield _fault("pdm", "a group in the lock that disagrees", "companion-version", _nothing, FLASK,
                 _edited('["flask==2.2.2"]', '["flask==2.2.2", "werkzeug<3"]'),
                 Files(("tqdm",), tables=group, selected=("-G", "web")))  # fmt: skip
    member = '[project]\nname = "till"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["flask==2.2.2"]\n'
    workspace = Files(("tqdm",), tables='[tool.uv.workspace]\nmembers = ["till"]\n\n', others={"till/pyproject.toml": member},
                      selected=("--all-packages",))  # fmt: skip
    yield _fault("uv", "a member of a workspace whose pair disagrees", "companion-version", _nothing, FLASK,
                 _in_member, workspace)  # fmt: skip
    yield _fault("uv", "a release by pip in a workspace", "companion-version", _by_pip("jinja2==2.11.3"), FLASK, _again,
                 Files(("tqdm",), tables=workspace.tables, others={"till/pyproject.toml": member.replace("==2.2.2", ">=3")},
                       selected=("--all-packages",)))  # fmt: skip
    source = '[tool.uv.sources]\ntill = { path = "libs/till", editable = true }\n\n'
    own = {"libs/till/pyproject.toml": _BUILT, "libs/till/src/till/__init__.py": "OPEN = True\n"}
    yield _fault("uv", "an editable source that was moved", "half-installed", _moved, "import till; till.OPEN",
                 _edited("libs/till", "packages/till"), Files(("tqdm", "till"), tables=source, others=own))  # fmt: skip
    for base in ALL:
        yield _fault(base, "a stale lock", "missing-requirement", _rewritten, SIX, _relocked)


_BUILT = '[project]\nname = "till"\nversion = "1"\n[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'


def _relocked(room: Project) -> None:
    room.lock()
    room.sync()


def _in_member(room: Project) -> None:
    manifest = room.folder / "till" / "pyproject.toml"
    manifest.write_text(manifest.read_text().replace('["flask==2.2.2"]', '["flask==2.2.2", "werkzeug<3"]'))
    _relocked(room)


PROJECTS: tuple[Fault, ...] = (*_drifted(), *_locked(), *_structured())
"""Faults of projects."""
