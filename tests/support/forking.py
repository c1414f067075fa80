"""Runs commands of envmedic to their end, each in a fork of one process that has imported its modules.

Most of a short command is the import of some six hundred modules, and the tests run a thousand commands. A fork has its
own memory, arguments, variables, directory and standard streams, and ends as ``python -m envmedic`` does. Commands that
are watched, interrupted or killed while they run, and those with a program or Python variables of their own, are
processes from the start (`subprocess`), as all are with ``ENVMEDIC_TEST_PROCESSES=1``.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-X", "faulthandler", "-m", "envmedic")
"""It can say where each of its threads stands."""
LIMIT_S = 1800.0
"""Longer than the guard of a test, which strikes first and reports every process (tests.support.guard)."""

_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC_")
"""Variables that Python or the C library reads when a process starts: one importing process for each set of them."""
_SHARED = {"PYTHONDONTWRITEBYTECODE", "LC_ALL", "LC_CTYPE", "LANG"}
_OTHERS = ("re2", "uv._find_uv")
"""Modules that functions import."""
_LEFT_OUT = ("envmedic.tui", "envmedic.kernels.", "envmedic.__main__")
"""Parts that no command, or another Python, imports."""
_MESSAGE = 1 << 17
_AT_ONCE = 1 << 15
"""Bytes that a pipe takes while nobody reads."""

IMPORTERS: set[int] = set()
"""Process ids of those that run commands for this process until it ends."""
FORMER: set[int] = set()
"""Process ids of those that the tests before the present one have left: none of its business."""

Ended = tuple[int, bytes, bytes]
"""Exit code (negative: the signal), stdout and stderr."""


def run_envmedic(
    arguments: Sequence[str], variables: Mapping[str, str], cwd: Path = ROOT, *, stdin: bytes = b""
) -> Ended:
    """Run ``envmedic`` with exactly these variables, and wait for its end and that of its streams."""
    at_start = {name: value for name, value in variables.items() if name.startswith(_AT_START)}
    message = json.dumps([list(arguments), dict(variables), str(cwd)]).encode()
    forkable = at_start.keys() <= _SHARED and len(stdin) <= _AT_ONCE and len(message) < _MESSAGE
    if not forkable or os.environ.get("ENVMEDIC_TEST_PROCESSES") == "1":
        return run_process([*PROGRAM, *arguments], variables, cwd, stdin=stdin)
    return _importer(os.getpid(), tuple(sorted(at_start.items()))).run(message, stdin)


def run_process(
    argv: Sequence[str], variables: Mapping[str, str], cwd: Path, *, stdin: bytes = b"", limit_s: float = LIMIT_S
) -> Ended:
    """Run any program likewise. Raises TimeoutExpired after `limit_s` seconds."""
    done = subprocess.run(
        argv, input=stdin, capture_output=True, cwd=cwd, env=dict(variables), timeout=limit_s, check=False
    )
    return done.returncode, done.stdout, done.stderr


def children() -> set[int]:
    """Processes of the present test that are there, zombies included, except those in which tests run commands."""
    return _listed() - IMPORTERS - FORMER


def forget_children() -> None:
    """Have `children` return none of those that are there now."""
    FORMER.clear()
    FORMER.update(_listed())


def _listed() -> set[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return set(map(int, text.split()))


@cache
def _importer(_owner: int, variables: tuple[tuple[str, str], ...]) -> _Importer:
    """The process for those variables; a fork of the tests' process, which is another owner, starts its own."""
    return _Importer(dict(variables))


class _Importer:
    """A process that has imported envmedic, and ends with the process of the tests."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            argv = [sys.executable, "-X", "faulthandler", "-m", "tests.support.forking", str(theirs.fileno())]
            kept = {"PATH": os.environ["PATH"], **variables}
            # pipes, since Python remembers whether its standard streams can seek, and those of commands cannot
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=kept, pass_fds=[theirs.fileno()]
            )
        IMPORTERS.add(self._process.pid)
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.communicate()

    def run(self, message: bytes, stdin: bytes) -> Ended:
        """Have one command run. Raises RuntimeError where the importing process is gone."""
        pipes = [os.pipe() for _ in range(4)]
        (given, feed), (out, stdout), (err, stderr), (status, told) = pipes
        os.write(feed, stdin)
        os.close(feed)
        with self._lock:
            socket.send_fds(self._socket, [message], [given, stdout, stderr, told])
        for descriptor in (given, stdout, stderr, told):
            os.close(descriptor)
        outputs = _read((out, err, status))
        if not outputs[status]:
            raise RuntimeError(f"no command was run: exit code {self._process.poll()} of what imports envmedic")
        return int(outputs[status]), outputs[out], outputs[err]


def _read(descriptors: Sequence[int]) -> dict[int, bytes]:
    """All that comes from each, until all are at their ends."""
    read = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, 1 << 16)
                read[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return read


def _import_all() -> None:
    import envmedic

    for module in pkgutil.walk_packages(envmedic.__path__, "envmedic."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    for name in _OTHERS:
        importlib.import_module(name)


def _serve(control: socket.socket) -> list[str]:
    """Run commands until the tests end; returns in the fork of each, with its arguments."""
    while True:
        while _ended_one():
            pass
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE, 4)
        if not message:
            sys.exit(0)
        if os.fork() == 0:
            return _command(control, message, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _ended_one() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _command(control: socket.socket, message: bytes, descriptors: list[int]) -> list[str]:
    """Fork once more; return in the child, with its streams in place, and report its end in the parent."""
    control.close()
    *streams, told = descriptors
    child = os.fork()
    if child:
        for descriptor in (0, 1, 2, *streams):
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(told, str(code).encode())
        os._exit(0)
    os.close(told)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments: list[str]
    arguments, variables, cwd = json.loads(message)
    coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}  # by Python as it started
    os.environ.clear()
    os.environ.update({**coerced, **variables})
    os.chdir(cwd)
    sys.path[0] = cwd
    return arguments


def _main() -> int:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    _import_all()
    arguments = _serve(control)
    from envmedic import __main__ as command

    sys.argv = [str(command.__file__), *arguments]
    sys.orig_argv = [*PROGRAM, *arguments]
    return command.program()


if __name__ == "__main__":
    sys.exit(_main())
