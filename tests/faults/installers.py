"""An installer that hangs, forks away, gives up, or writes where it should not.

It is the environment's own pip, the real one, with a `.pth` file of the environment that does all that when pip is
told to install: any environment can have one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.cli.support import Done
from tests.faults.cases import Case
from tests.faults.room import Room, told
from tests.support.venvs import site_packages

_HOOK = """\
import os, signal, sys, time, pathlib
words = sys.orig_argv if hasattr(sys, "orig_argv") else sys.argv
if "pip" in words and "install" in words:
    root = pathlib.Path(sys.prefix)
    site = pathlib.Path(__file__).parent
    exec(compile({code!r}, "wicked", "exec"))
"""
_FORK = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        time.sleep(100_000)
    os._exit(0)
"""
_LIVE = "/path/of/the/original"
_Result = Callable[[Room, Done], str]


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every misbehaviour, staged both ways where that matters."""
    room = Room.build(folder / "room")
    command = [str(room.case.python), "-m", "ensurepip"]
    subprocess.run(command, check=True, capture_output=True, env=room.user.environment())
    hook = site_packages(room.prefix) / "wicked.py"
    hook.with_suffix(".pth").write_text("import wicked\n")
    for name, (code, stagings, options, result) in _WICKED.items():
        for staging in stagings:
            if not short or (name, staging) in _SLICE:
                yield f"{name}, {staging}", partial(_try, room, hook, code, ("--staging", staging, *options), result)


def _try(room: Room, hook: Path, code: str, arguments: tuple[str, ...], result: _Result) -> tuple[str, str]:
    """Repair with that installer, and see what is there."""
    hook.write_text(_HOOK.format(code=code.replace(_LIVE, str(room.prefix))))
    room.plan_again("--installer", "pip")
    room.remember()
    room.new = None
    done = room.run(*room.repairing("--installer", "pip", *arguments))
    said = result(room, done)
    recovered = room.run(*room.command("recover"))
    assert recovered.document["settled"] == [], recovered.told()
    side = "new" if done.code == 0 else "old"
    if side == "new":
        room.new = room.now()
    assert room.settled() == side
    room.take_back()
    return side, said


def _refused(code: int, *says: str) -> _Result:
    return lambda _room, done: told(done, code, says)


def _repaired(_room: Room, done: Done) -> str:
    assert done.code == 0, done.told()
    return "repaired all the same"


def _wrote_beside(room: Room, done: Done) -> str:
    """What a command does outside the environment is its own affair: it is there, and the environment is whole."""
    assert done.code == 0, done.told()
    (room.prefix.parent / "written").unlink()
    return "repaired; what it wrote elsewhere stays there"


def _wrote_into_original(room: Room, done: Done) -> str:
    """A change of the original is seen and told, and not exchanged away."""
    said = told(done, 6, ("was changed while",))
    written = site_packages(room.prefix) / "written.py"
    assert written.read_text() == "here = 1\n"
    written.unlink()
    room.remember()
    return said


def _edited_shared(room: Room, done: Done) -> str:
    """A file that clone and original share was edited in place: told, since it cannot be undone."""
    said = told(done, 6, ("was changed while",))
    assert room.case.edited.read_text().endswith("# by pip\n")
    room.remember()
    return said


_BOTH, _ONE = ("namespace", "relocate"), ("namespace",)
_EDIT = "open(site / 'PIL' / '__init__.py', 'a').write('# by pip\\n')"
_WICKED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], _Result]] = {
    "hangs": ("time.sleep(100_000)", _BOTH, ("--timeout", "3"), _refused(1)),
    "hangs and cannot be asked to end": (
        "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(100_000)",
        _BOTH, ("--timeout", "3"), _refused(1),
    ),
    "forks away and goes on": (_FORK, _BOTH, (), _repaired),
    "forks away and hangs": (_FORK + "time.sleep(100_000)", _BOTH, ("--timeout", "3"), _refused(1)),
    "forks away and fails": (_FORK + "os._exit(3)", _BOTH, (), _refused(1, "3")),
    "does nothing and says it has": ("os._exit(0)", _BOTH, (), _refused(1, "not installed whole")),
    "fails": ("os._exit(3)", _ONE, (), _refused(1, "3")),
    "is killed": ("os.kill(os.getpid(), 9)", _BOTH, (), _refused(1)),
    "crashes": ("os.kill(os.getpid(), 11)", _ONE, (), _refused(1)),
    "says a hundred megabytes": ("[print('x' * 999) for _ in range(100_000)]", _ONE, (), _repaired),
    "deletes what it was given": ("import shutil; shutil.rmtree(root); os._exit(1)", _BOTH, (), _refused(1)),
    "takes all rights away": (
        "[os.chmod(d, 0) for d, _, _ in sorted(os.walk(site), reverse=True)]; os._exit(1)", _BOTH, (), _refused(1),
    ),
    "writes beside the environment": ("(root.parent / 'written').write_text('x')", _ONE, (), _wrote_beside),
    "writes into the original": (
        f"next(pathlib.Path('{_LIVE}').glob('lib/python3*/site-packages')).joinpath('written.py').write_text('here = 1\\n')",
        ("relocate",), (), _wrote_into_original,
    ),
    "edits a file that both share": (_EDIT, _ONE, ("--clone", "link"), _edited_shared),
    "edits a file that is a copy": (_EDIT, _ONE, ("--clone", "copy"), _repaired),
}  # fmt: skip
"""Name → what pip does, how it is staged, options of the repair, and what has to come of it."""
_SLICE = (
    ("forks away and fails", "relocate"), ("forks away and hangs", "relocate"), ("writes into the original", "relocate"),
)  # fmt: skip
