"""Where each process of a test stands: what a test that hangs leaves in its report.

Of every process below one, the kernel's part: state, the function it waits in, its system call and its open pipes. Of a
Python started with ``-X faulthandler``, and of its forks, the stack of every thread too, which SIGABRT makes it print;
that is read from where its standard error leads, and ends it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
_ANSWER_S = 2.0
"""For printing stacks, on a busy machine."""
_MOST_BYTES = 1 << 16


def tree(pid: int) -> list[int]:
    """The processes below `pid`, parents first."""
    below: dict[int, list[int]] = {}
    for entry in PROC.glob("[0-9]*/stat"):
        fields = _text(entry).rpartition(")")[2].split()
        if fields:
            below.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found = list(below.get(pid, ()))
    for process in found:  # grows
        found += below.get(process, ())
    return found


def report(pid: int) -> str:
    """Everything about the processes below `pid`; those that can print their stacks end by it."""
    processes = tree(pid)
    standing = "".join(map(_kernel, processes))
    spoken = "".join(f"--- {process} says\n{text}\n" for process in reversed(processes) for text in _python(process))
    return standing + spoken


def _kernel(process: int) -> str:
    own = PROC / str(process)
    command = _text(own / "cmdline").replace("\0", " ").strip()
    state = next((line for line in _text(own / "status").splitlines() if line.startswith("State:")), "State: gone")
    lines = [
        f"--- {process} {command[:300]}",
        f"    {state.expandtabs(1)}, in {_text(own / 'wchan')}, call {_text(own / 'syscall')}",
    ]
    for thread in sorted((own / "task").glob("*")):
        lines += [f"    thread {thread.name}: {line}" for line in _text(thread / "stack").splitlines()]  # root reads it
    return "\n".join([*lines, *_descriptors(own)]) + "\n"


def _descriptors(own: Path) -> Iterator[str]:
    for link in sorted((own / "fd").glob("*")):
        try:
            target = str(link.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("pipe:"):
            yield f"    {link.name} -> {target}"


def _python(process: int) -> Iterator[str]:
    """What a Python prints of its threads where it was started to do so."""
    if "faulthandler" not in _text(PROC / str(process) / "cmdline").split("\0"):
        return
    try:
        reading = os.open(PROC / str(process) / "fd" / "2", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # it has ended, or its standard error is a socket
        return
    try:
        os.kill(process, signal.SIGABRT)
        yield _printed(reading)
    except ProcessLookupError:
        return
    finally:
        os.close(reading)


def _printed(reading: int) -> str:
    """What comes until a stack has ended, or for some seconds."""
    text, deadline = b"", time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            text += os.read(reading, _MOST_BYTES)
        if b"most recent call first" in text and text.endswith(b"\n"):
            break
        time.sleep(0.05)
    return text.decode(errors="replace")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # it has ended, or only root may read this
        return ""
