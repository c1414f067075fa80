"""What breaks in environments of conda. Each is made by conda, by pip, or as a full disk and a killed process leave it."""

from __future__ import annotations

from collections.abc import Callable

from ..faults import CONTOUR, Ending, Fault
from ..room import Room, run
from .room import CondaRoom, environment

FLASK = "import flask; flask.Flask('shop')"
GRID = "import grid; assert grid.threads == 2"
PARAMETERS = "from click.core import ParameterSource; ParameterSource.DEFAULT"
PROBES = {
    "numpy": "import numpy; numpy.linalg.inv(numpy.eye(3))", "contour": CONTOUR, "flask": FLASK, "grid": GRID,
    "tqdm": "import tqdm", "pip": "import subprocess, sys; subprocess.run([sys.prefix + '/bin/pip', '--version'], check=True)",
}  # fmt: skip
RECORDED = (
    "import glob, sys; assert glob.glob(sys.prefix + '/conda-meta/contourpy-*.json'), 'conda does not list contourpy'"
)

Act = Callable[[CondaRoom], None]


def _of_conda(act: Act) -> Callable[[Room], None]:
    def done(room: Room) -> None:
        if not isinstance(room, CondaRoom):
            raise TypeError(f"{room.prefix} is no environment of conda's")
        act(room)

    return done


def _by_pip(*words: str) -> Act:
    """``pip install`` over what conda put there."""

    def make(room: CondaRoom) -> None:
        run(
            [str(room.python), "-m", "pip", "install", "-q", "--no-deps", *words], variables=room.variables
        ).check_returncode()

    return make


def _file(stem: str) -> Act:
    """A package given as a file: conda then asks no solver, and looks at no dependency."""

    def make(room: CondaRoom) -> None:
        room.conda("install", "--yes", str(next(room.channel.glob(f"*/{stem}-*"))))

    return make


def _nothing(room: CondaRoom) -> None:
    del room


def _pinned(room: CondaRoom) -> None:
    """A release that its user does not know, and a pin that keeps it."""
    _file("jinja2-2.11.3")(room)
    (room.prefix / "conda-meta" / "pinned").write_text("jinja2 2.11.*\n")


def _no_record(room: CondaRoom) -> None:
    room.record("contourpy").unlink()


def _interrupted(room: CondaRoom) -> None:
    """A transaction that was killed: some files are linked, and no record is written."""
    room.record("contourpy").unlink()
    room.delete("contourpy/_contourpy*.so", "contourpy/util")


def _clobbered(room: CondaRoom) -> None:
    """A package came that has a file of another one, and went with it."""
    _file("click-completion-fork")(room)
    room.conda("remove", "--yes", "--force", "click-completion-fork")


def _again(room: CondaRoom) -> None:
    """What was once asked for, made anew."""
    room.make()


def _fault(
    name: str,
    kind: str | None,
    make: Act,
    program: str,
    *,
    ending: Ending = "repaired",
    says: str = "",
    silent: bool = False,
) -> Fault:
    return Fault(
        f"conda: {name}", kind, _of_conda(make), program, base="conda", scene=environment, reference=_of_conda(_again),
        probes=PROBES, ending=ending, says=says, silent=silent,
    )  # fmt: skip


CONDA: tuple[Fault, ...] = (
    _fault("a record gone", "conda-records", _no_record, RECORDED),
    _fault("an interrupted transaction", "half-installed", _interrupted, CONTOUR),
    _fault("a compiled file cut short", "half-installed", lambda room: room.cut("contourpy/_contourpy*.so"), CONTOUR),
    _fault("a file deleted", "half-installed", lambda room: room.delete("markupsafe/__init__.py"), FLASK),
    _fault("an older release, by its file", "companion-version", _file("jinja2-2.11.3"), FLASK),
    _fault("an older library, by its file", "companion-version", _file("libsolve-1.4"), GRID),
    _fault("pip over conda's package", "companion-version", _by_pip("jinja2==2.11.3"), FLASK),
    _fault(
        "pip beside conda's package", "duplicate-install", _by_pip("--ignore-installed", "click==7.1.2"), PARAMETERS
    ),
    _fault("a file of two packages, of which one was removed", "half-installed", _clobbered, PARAMETERS),
    _fault("a pin that forbids the repair", "companion-version", _pinned, FLASK, ending="refused", says="pin"),
    _fault("healthy", None, _nothing, "import numpy", ending="untouched", silent=True),
)
"""Faults of environments of conda."""
