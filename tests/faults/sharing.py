"""Several envmedics at once, an environment that a program trains in, and one that users share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.cli.support import LIMIT_S, ROOT, Done, Shell
from tests.faults import armed
from tests.faults.cases import Case
from tests.faults.room import Room, Skipped, told
from tests.support import attacker

_OWNER, _OTHER = 41234, 41235
_TRAIN = """\
import sys, time
import torch, PIL
step = 0
while True:
    step += 1
    if step == 2:
        import box_labels
    print("step", step, torch.__version__, flush=True)
    if not sys.stdin.readline():
        break
"""
_AT_ONCE = 4
_WORK = 'cd "$0" && mkdir -p work && echo weights > work/model'
_ATTACK = "the owner renames, links and swaps while root repairs, undoes, redoes and prunes"
_TRIES = 20_000
"""Of the attacker, before it is believed that there is no way."""


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Who may work on an environment at the same time, and who may not."""
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    yield f"{_AT_ONCE} repairs at once", lambda: _at_once(room, "apply")
    if not short:
        yield f"{_AT_ONCE} undos at once", lambda: _at_once(room, "undo")
        yield f"{_AT_ONCE} redos at once", lambda: _at_once(room, "redo")
        yield f"{_AT_ONCE} recoveries at once", lambda: _recoveries(room)
        for operation, step in (("apply", "swapped"), ("undo", "after-undoing"), ("redo", "after-redoing")):
            name = f"recovery, undo, repair, redo and history at once, after SIGKILL in {operation} at {step}"
            yield name, partial(_mixed, room, operation, step)
        yield "a program trains in it", lambda: _training(room)
        yield "a program trains in it, --allow in-use", lambda: _training_allowed(room)
        yield "root repairs what a user owns, who undoes it", lambda: _of_a_user(folder)
        yield _ATTACK, lambda: _attacked(folder)
        yield "another user repairs it", lambda: _another(folder, 0o755)
        yield "another user of its group repairs it", lambda: _another(folder, 0o775)


def _at_once(room: Room, operation: str) -> tuple[str, str]:
    """One does it; the others say that they cannot."""
    room.prepare(operation)
    ended = _together(room, [room.arguments(operation)] * _AT_ONCE)
    codes = Counter(done.code for done in ended)
    assert codes[0] == 1, [done.told() for done in ended]
    if room.new is None:
        room.new = room.now()
    for done in ended:
        if done.code:
            assert done.code in {1, 2, 6}, done.told()
            told(done, done.code)
    side = room.settled()
    assert side == ("old" if operation == "undo" else "new")
    room.take_back()
    return side, _counted(codes)


def _together(room: Room, commands: Sequence[tuple[str, ...]]) -> list[Done]:
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(
            [*room.user.program, *arguments], stdout=pipe, stderr=pipe, cwd=ROOT, env=room.user.environment()
        )
        for arguments in commands
    ]
    ended = []
    for process in started:
        out, err = process.communicate(timeout=LIMIT_S)
        ended.append(Done(process.returncode, out.decode(), err.decode()))
    return ended


def _recoveries(room: Room) -> tuple[str, str]:
    killed = armed.run(room, room.repairing(), at=0, name="swapped")
    assert killed.killed, killed.done.told()
    ended = _together(room, [room.command("recover")] * _AT_ONCE)
    codes = Counter(done.code for done in ended)
    assert codes[0] >= 1, [done.told() for done in ended]
    assert set(codes) <= {0, 6}, [done.told() for done in ended]
    side = room.settled()
    assert side == "new"
    room.take_back()
    return side, _counted(codes)


def _mixed(room: Room, operation: str, step: str) -> tuple[str, str]:
    """Whoever comes first settles what was interrupted; the others find it settled, or say that somebody is at work."""
    room.prepare(operation)
    killed = armed.run(room, room.arguments(operation), at=0, name=step)
    assert killed.killed, killed.done.told()
    ended = _together(room, [room.arguments(name) for name in ("recover", "undo", "apply", "redo", "history")])
    for done in ended:
        if done.code:
            assert done.code in {1, 2, 6}, done.told()
            told(done, done.code)
    room.whole("recover")
    side = room.settled()
    room.take_back()
    return side, _counted(Counter(done.code for done in ended))


def _counted(codes: Counter[int]) -> str:
    return "exit codes " + ", ".join(f"{code} ({number}x)" for code, number in sorted(codes.items()))


@contextmanager
def _program(room: Room) -> Iterator[subprocess.Popen[str]]:
    """A program of the environment in the middle of its work: it takes a step for each line that it is given."""
    command = [str(room.case.python), "-B", "-c", _TRAIN]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=room.user.environment()) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("step 1 ")
        try:
            yield program
        finally:
            program.kill()


def _training(room: Room) -> tuple[str, str]:
    """The repair is refused and names the program."""
    with _program(room) as program:
        done = room.user.envmedic(*room.repairing())
        said = told(done, 6, ("--allow in-use",))
        assert any(line.startswith(f"{program.pid} ") for line in done.document["details"]), done.told()
    assert room.settled() == "old"
    room.forget()
    return "old", f"refused: {said}"


def _training_allowed(room: Room) -> tuple[str, str]:
    """The program goes on, with what it imports later; the undo is refused while it runs."""
    with _program(room) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        done = room.user.envmedic(*room.repairing("--allow", "in-use"))
        assert done.code == 0, done.told()
        for number in (2, 3):
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline().startswith(f"step {number} ")
        undo = room.user.envmedic(*room.command("undo"))
        told(undo, 6, ("--allow in-use",))
    side = room.settled()
    assert side == "new"
    room.take_back()
    return side, "repaired; the program goes on, and undo is refused meanwhile"


def _as(user: int, room: Room) -> Shell:
    """The shell of an ordinary user."""
    home = room.root / f"home{user}"
    (home / "tmp").mkdir(parents=True)
    shutil.chown(home, user, _OWNER)
    shutil.chown(home / "tmp", user, _OWNER)
    setpriv = ("setpriv", f"--reuid={user}", f"--regid={_OWNER}", "--clear-groups")
    shell = Shell(home, {**room.user.variables, "TMPDIR": str(home / "tmp")}, (*setpriv, *_readable()))
    probe = shell.envmedic("--version")
    if probe.code != 0:
        raise Skipped("an ordinary user cannot read this checkout or its packages")
    return shell


def _readable() -> tuple[str, ...]:
    """The words that start envmedic by an interpreter that every user can start. Raises Skipped."""
    paths = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    start = f"import sys; sys.path[:0] = {paths!r}; from envmedic.__main__ import program; sys.exit(program())"
    return (_system_python(), "-c", start)


def _system_python() -> str:
    """An interpreter that every user can start. Raises Skipped."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise Skipped("only root with setpriv can be two users")
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    if not Path(python).exists():
        raise Skipped(f"there is no {python} that an ordinary user can start")
    return python


def _owned(folder: Path, name: str, mode: int) -> Room:
    room = Room.build(folder / name, python=_system_python())
    for path in (folder, room.root):
        path.chmod(0o755)
    for path in [room.prefix.parent, *room.prefix.parent.rglob("*")]:
        os.chown(path, _OWNER, _OWNER, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            path.chmod(mode)
    room.remember()
    return room


def _of_a_user(folder: Path) -> tuple[str, str]:
    """All that root's repair leaves is the owner's."""
    room = _owned(folder, "owned", 0o755)
    room.user = replace(room.user, program=_readable())
    done = room.user.envmedic(*_planning(room))
    assert done.code == 0, done.told()
    room.new = room.now()
    assert room.settled() == "new"
    foreign = [path for path in (*room.prefix.rglob("*"), *room.store.rglob("*")) if path.lstat().st_uid != _OWNER]
    assert foreign == []
    room.user = _as(_OWNER, room)
    undone = room.run(*room.command("undo"))
    assert undone.code == 0, undone.told()
    assert room.side() == "old"
    return "new", "repaired as the owner, undone by the owner"


def _planning(room: Room) -> tuple[str, ...]:
    """A repair that is planned by whoever carries it out: a plan of another user's names that user's cache."""
    return ("apply", "--playbook", "nms-cuda", "--yes", "--no-gpu", "--json", "-p", str(room.prefix))


def _attacked(folder: Path) -> tuple[str, str]:
    """Nothing of root's changes, whatever becomes of what the owner attacks."""
    rounds = 0
    tries = 0
    target = folder / "roots"
    (target / "env").mkdir(parents=True)
    (target / "env" / "kept").write_text("root's")
    (target / "key").write_text("root's")
    (target / "key").chmod(0o600)
    before = attacker.canaries(target)
    while tries < _TRIES:
        rounds += 1
        room = _owned(folder, f"attacked{rounds}", 0o755)
        room.user = replace(room.user, program=_readable())
        room.plan = room.prefix.parent / "plan.json"  # which the owner writes
        room.plan_again()
        with attacker.started(attacker.RANDOM, _OWNER, _system_python(), room.store, target) as tried:
            room.user.envmedic(*room.repairing())
            # by the owner: root would write through a link
            subprocess.run([*attacker.becoming(_OWNER), "/bin/sh", "-c", _WORK, room.prefix], check=False)
            for words in (
                room.command("undo", "--keep-new"),
                room.command("redo"),
                ("prune", "--yes", "-p", str(room.prefix)),
            ):
                room.user.envmedic(*words)
        tries += tried[0]
        assert attacker.canaries(target) == before
    return "", f"nothing of root's changed: {tries} tries in {rounds} rounds"


def _another(folder: Path, mode: int) -> tuple[str, str]:
    """A user who does not own the environment is refused, or leaves one that is whole."""
    room = _owned(folder, f"other{mode:o}", mode)
    room.user = _as(_OTHER, room)
    done = room.run(*_planning(room))
    if done.code:
        said = told(done, 1)
        assert room.side() == "old"
        assert room.leaks() == []
        return "old", f"refused: {said}"
    room.new = room.now()
    assert room.settled() == "new"
    undone = room.run(*room.command("undo"))
    assert undone.code == 0, undone.told()
    assert room.side() == "old"
    return "new", "repaired and undone by the other user of the group"
