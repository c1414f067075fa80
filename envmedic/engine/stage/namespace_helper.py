"""Run one command where a clone appears at its environment's path, and let nothing outlive it.

A script of its own, started as ``python -I -S namespace_helper.py STATUS_FD`` with the request as JSON
on standard input, because unsharing needs a single-threaded process. It uses the standard library
alone and is never imported by envmedic.

    envmedic ── helper ─(PID namespace)─ init ── command ── …
                      └─(none allowed)────────── command ── …

Request: ``parent`` (pid), ``bind`` ([clone, prefix] or null), ``pid_namespace``, ``argv`` (null: only
try the set-up), ``env``, ``directories`` (the first that can be entered is the command's cwd). Strings are bytes
decoded as latin-1, so every path survives.

One JSON object per line goes to STATUS_FD: ``{"failed": step, "errno": n}``, ``{"ready": true, …}``,
``{"exec": n}`` when the program cannot be started, ``{"exit": n}`` with a negative signal number.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import sys
import time
from typing import Any, NoReturn

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FAILED = 125
REAP_S = 0.002

libc = ctypes.CDLL(None, use_errno=True)


class SetupError(Exception):
    """A step of the set-up was refused."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step)
        self.step = step
        self.number = number


class Status:
    """The pipe to envmedic. Commands do not inherit it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor

    def send(self, **message: Any) -> None:
        """Write one line, and end one that a child has left unfinished by its death.

        Without a reader envmedic has died, and its death signal ends this process.
        """
        with contextlib.suppress(BrokenPipeError):
            os.write(self._descriptor, b"\n" + json.dumps(message).encode() + b"\n")


def _call(step: str, result: int) -> None:
    if result != 0:
        raise SetupError(step, ctypes.get_errno())


def _prctl(option: int, value: int) -> None:
    _call("prctl", libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0))


def _mount(step: str, source: bytes, target: bytes, kind: bytes | None, flags: int) -> None:
    _call(step, libc.mount(source, target, kind, ctypes.c_ulong(flags), None))


def _write(step: str, path: str, content: bytes) -> None:
    """Write a file of /proc."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
        os.write(descriptor, content)
        os.close(descriptor)
    except OSError as error:
        raise SetupError(step, error.errno or errno.EIO) from error


def die_with(parent: int) -> None:
    """Ask for SIGTERM when the thread that started this process ends; exit when it has ended already."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have died before the request, and the kernel reports no death that is past.
    if os.getppid() != parent:
        os._exit(FAILED)


def own_mounts() -> bool:
    """Give this process mounts of its own; return whether that took a user namespace.

    The user namespace maps the own ids to themselves, so that installers do not take themselves for
    root.
    """
    if libc.unshare(CLONE_NEWNS) == 0:
        return False  # root, or a process with CAP_SYS_ADMIN: no user namespace needed
    if ctypes.get_errno() != errno.EPERM:
        raise SetupError("unshare", ctypes.get_errno())
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    # The kernel refuses a gid map of an unprivileged process until setgroups is denied (user_namespaces(7)).
    _write("setgroups", "/proc/self/setgroups", b"deny")
    _write("uid-map", "/proc/self/uid_map", b"%d %d 1" % (uid, uid))
    _write("gid-map", "/proc/self/gid_map", b"%d %d 1" % (gid, gid))
    return True


def show_clone(clone: bytes, prefix: bytes) -> None:
    """Bind the clone over the prefix, for this namespace alone."""
    # systemd mounts / as shared: without this the bind would appear in every namespace, over the live environment.
    _mount("private", b"none", b"/", None, MS_REC | MS_PRIVATE)
    _mount("bind", clone, prefix, None, MS_BIND)
    # A bind that landed elsewhere would let steps change the live environment.
    wanted, seen = os.stat(clone), os.stat(prefix)  # noqa: PTH116  # bytes: any name
    if (wanted.st_dev, wanted.st_ino) != (seen.st_dev, seen.st_ino):
        raise SetupError("bind", errno.ESTALE)


def fresh_proc() -> None:
    """Mount /proc for the new PID namespace, keeping what was mounted inside the old one.

    Container runtimes mount files of their own there, such as /proc/driver/nvidia; hiding them
    would change what GPU libraries see.
    """
    # O_PATH descriptors keep the old mounts reachable once the new /proc covers them.
    kept = [(os.open(path, os.O_PATH), path) for path in _proc_mounts()]
    _mount("proc", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for descriptor, path in kept:
        _mount("proc-inside", b"/proc/self/fd/%d" % descriptor, path, None, MS_BIND | MS_REC)
        os.close(descriptor)


def _proc_mounts() -> list[bytes]:
    with open("/proc/self/mountinfo", "rb") as stream:  # noqa: PTH123
        points = sorted({line.split(b" ")[4] for line in stream if line.split(b" ")[4].startswith(b"/proc/")})
    return [point for point in points if not any(point.startswith(other + b"/") for other in points)]


def enter(directories: list[bytes]) -> None:
    """Change to the first directory that can be entered."""
    for directory in directories:
        try:
            os.chdir(directory)
        except OSError:  # the next one is tried; the last is the root
            continue
        return
    raise SetupError("chdir", errno.EACCES)


def command(request: dict[str, Any], status: Status) -> NoReturn:
    """Become the command. Never returns."""
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        enter([_bytes(path) for path in request["directories"]])
    except SetupError as error:
        status.send(failed=error.step, errno=error.number)
        os._exit(FAILED)
    if request["argv"] is None:
        os._exit(0)
    arguments = [_bytes(item) for item in request["argv"]]
    try:
        os.execve(arguments[0], arguments, {_bytes(k): _bytes(v) for k, v in request["env"].items()})  # noqa: S606
    except OSError as error:
        status.send(exec=error.errno)
    os._exit(FAILED)


def wait_for(child: int) -> int:
    """Reap processes until `child` has ended; return its exit code or negative signal number."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def init(request: dict[str, Any], status: Status, alive: int) -> NoReturn:
    """Be process 1 of the PID namespace. When it exits the kernel kills all that is left in it."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.set_blocking(alive, False)
    try:
        os.read(alive, 1)
        os._exit(FAILED)  # end of file: the helper died before the death signal was set
    except BlockingIOError:
        pass
    try:
        fresh_proc()
    except SetupError as error:
        status.send(failed=error.step, errno=error.number)
        os._exit(FAILED)
    except OSError as error:
        status.send(failed="proc", errno=error.errno)
        os._exit(FAILED)
    child = os.fork()
    if child == 0:
        command(request, status)
    status.send(exit=wait_for(child))
    os._exit(0)


def in_pid_namespace(request: dict[str, Any], status: Status) -> None:
    """Run the command under an init of its own and wait for both."""
    _call("pid-namespace", libc.unshare(CLONE_NEWPID))
    # The child has pid 1 and sees no parent, so a pipe tells it whether the helper still lives.
    alive, held = os.pipe()
    # A SIGTERM between the fork and the handler would end the helper and leave its child running.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    child = os.fork()
    if child == 0:
        os.close(held)
        init(request, status, alive)
    os.close(alive)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    code = wait_for(child)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if code < 0:
        status.send(exit=code)


def without_pid_namespace(request: dict[str, Any], status: Status) -> None:
    """Run the command, then kill every descendant, which as their subreaper all come to this process."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    child = os.fork()
    if child == 0:
        command(request, status)
    signal.signal(signal.SIGTERM, lambda *_: kill_children())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    code = wait_for(child)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    left = kill_all()
    status.send(exit=code, left=left)


def children() -> list[int]:
    """Pids of this process's children."""
    own, found = os.getpid(), []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123
                fields = stream.read().rpartition(b") ")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[1]) == own:
            found.append(int(name))
    return found


def kill_children() -> list[int]:
    """Send SIGKILL to every child; return those that may not be signalled (set-user-id programs)."""
    refused = []
    for pid in children():
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:  # noqa: PERF203  # rarely more than one child
            refused.append(pid)
        except ProcessLookupError:
            continue
    return refused


def kill_all() -> int:
    """Kill and reap descendants, generation by generation; return how many refused to die.

    A process may fork between being listed and being killed, and its child comes to this process
    only then: so nothing is waited for that has not been killed, and the list is made again.
    """
    while True:
        refused = kill_children()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        if refused and len(refused) == len(children()):
            return len(refused)
        time.sleep(REAP_S)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def run(request: dict[str, Any], status: Status) -> None:
    """Set up what the request asks for and run its command."""
    user_namespace = False
    if request["bind"] is not None:
        user_namespace = own_mounts()
        show_clone(*map(_bytes, request["bind"]))
    status.send(ready=True, user_namespace=user_namespace, pid_namespace=request["pid_namespace"])
    work = in_pid_namespace if request["pid_namespace"] else without_pid_namespace
    work(request, status)


def main() -> int:
    """Read the request and serve it; the status pipe says how it went."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    status = Status(int(sys.argv[1]))
    request = json.loads(sys.stdin.buffer.read())
    die_with(request["parent"])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        run(request, status)
    except SetupError as error:
        status.send(failed=error.step, errno=error.number)
        return FAILED
    except OSError as error:
        status.send(failed="setup", errno=error.errno)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
