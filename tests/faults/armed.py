"""The real command line in a child process that SIGKILL ends at a step of it, or at a moment.

A step is a point (where a crash leaves a state of its own on disk: `envmedic.engine.store.swap.Point`), an event or a fork. The
child is forked from a process that has the modules loaded, so that a thousand of them take minutes.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import envmedic.api.generations
import envmedic.api.repair
import envmedic.cli.commands.generations
import envmedic.cli.commands.repair
import envmedic.cli.output
import envmedic.engine.stage.runners
import envmedic.installers.uv
from envmedic.cli.main import main
from envmedic.engine.generations import generations, recovery
from envmedic.engine.store.context import TransactionContext
from envmedic.engine.transaction import transaction
from envmedic.model.events import EventData, EventStream
from tests.cli.support import ROOT, Done
from tests.engine.world import Crash, die
from tests.faults.room import Room, no_children

FORK = "fork"
"""What the steps are called, with a number, at which a part of the work is given to a fork."""
_PR_SET_CHILD_SUBREAPER = 36
_OPERATIONS: tuple[Callable[..., object], ...] = (
    transaction.apply, TransactionContext.of.__func__, generations.prune, recovery.recover,  # type: ignore[attr-defined]
)  # fmt: skip
LOADED = (
    envmedic.api.generations,
    envmedic.api.repair,
    envmedic.cli.commands.generations,
    envmedic.cli.output,
    envmedic.cli.commands.repair,
    envmedic.engine.stage.runners,
    envmedic.installers.uv,
)


def adopt_orphans() -> None:
    """Let every process whose parent has died become a child of this one, so that none can hide."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@dataclass(frozen=True)
class Ended:
    """How a child came to its end."""

    done: Done
    """The code is minus the number of a signal, if that ended it."""
    steps: tuple[str, ...]
    """The steps that it reached; killed, it died at the last."""
    orphans: int
    """Processes that it left, all of which ended by themselves."""

    @property
    def code(self) -> int:
        """Exit code, or minus the number of a signal."""
        return self.done.code

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.code == -signal.SIGKILL


def run(
    room: Room,
    arguments: Sequence[str],
    *,
    at: int | None = None,
    name: str = "",
    act: Callable[[], None] = die,
    after_s: float | None = None,
) -> Ended:
    """Run a command line of the room's user to its end, or to SIGKILL.

    That comes at step number `at` (from 0), or `after_s` seconds from the start. Another `act` may take place at
    that step. With `name` the steps called so are counted alone. Returns when every process that it left has ended.
    Raises AssertionError where one does not.
    """
    variables, log = room.user.environment(), room.user.home / "log"
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(arguments, variables, log, writer, Crash(sys.maxsize if at is None else at, {name} if name else (), act))
    os.close(writer)
    if after_s is not None:
        time.sleep(after_s)  # the moment is what is tried, not a wait for anything
        os.kill(pid, signal.SIGKILL)
    with open(reader, "rb") as steps:  # noqa: PTH123  # a descriptor
        names = steps.read().decode().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    orphans = no_children(f"envmedic {arguments[0]} killed at {names[-1:]}")
    out, err = (path.read_text(encoding="utf-8", errors="replace") for path in _streams(log))
    return Ended(Done(code, out, err), tuple(names), orphans)


def _streams(log: Path) -> tuple[Path, Path]:
    return log.with_suffix(".out"), log.with_suffix(".err")


def _child(arguments: Sequence[str], variables: Mapping[str, str], log: Path, steps: int, crash: Crash) -> None:
    """Be the command. Never returns."""
    code = 99
    try:
        os.set_inheritable(steps, False)
        _become(variables, log)
        _arm(steps, crash)
        code = main(list(arguments))
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  # told by the log and the exit code
        traceback.print_exc()
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(code)  # whatever happens: this is a fork of the harness


def _become(variables: Mapping[str, str], log: Path) -> None:
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(ROOT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for path in _streams(log)]
    for target, source in enumerate((nothing, *written)):
        os.dup2(source, target)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # for the life of the process
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115  # as above


def _arm(steps: int, crash: Crash) -> None:
    """Count every point, event and fork, and die at the chosen one."""

    own = os.getpid()

    def step(name: str) -> None:
        if os.getpid() == own:  # what forks do is not counted: they work beside it
            os.write(steps, f"{name}\n".encode())
            crash(name)

    emit = EventStream.emit

    def emit_armed(stream: EventStream, data: EventData) -> None:
        step(f"event {name_of(data)}")
        emit(stream, data)

    for operation in _OPERATIONS:
        defaults = operation.__kwdefaults__  # what the command line leaves out
        assert defaults is not None
        defaults["point"] = step
    EventStream.emit = emit_armed  # type: ignore[assignment, method-assign]
    fork, forks = os.fork, itertools.count(1)

    def fork_armed() -> int:
        step(f"{FORK} {next(forks)}")
        return fork()

    os.fork = fork_armed


def name_of(data: EventData) -> str:
    """The kind of an event, with the stage or state where it has one."""
    more = getattr(data, "stage", None) or getattr(data, "state", None) or ""
    return f"{data.__struct_config__.tag} {more}".rstrip()
