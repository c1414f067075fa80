"""The terminal UI beside those of other programs, each watched from outside, in a pseudo terminal.

What is measured is what somebody at the terminal sees: how long until the screen shows what the program is for, how long from a key
to the first byte that answers it, how many bytes that answer has, and how many are written while nothing happens.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.support.venvs import uv

ROWS, COLUMNS = 40, 120
PATIENCE_S = 60.0
QUIET_S, IDLE_S = 0.7, 5.0
"""Without output for so long a screen is complete; so long an idle one is watched."""
KEYS = 8
TAB, UP = b"\t", b"\x1b[A"


@dataclass(frozen=True)
class Peer:
    """A program with a terminal UI."""

    package: str
    """What uv installs; empty for envmedic itself."""
    command: str
    arguments: tuple[str, ...] = ()
    shows: str = ""
    """A word that stands on its first screen."""
    key: bytes = TAB


@dataclass(frozen=True)
class Watched:
    """What was seen of one start, in seconds and bytes."""

    frame_s: float
    key_s: float
    key_bytes: float
    idle_bytes: int


PEERS: Mapping[str, Peer] = {
    "envmedic": Peer("", "envmedic", shows="Environments"),
    "harlequin": Peer("harlequin", "harlequin", shows="Query Editor"),
    "posting": Peer("posting", "posting", shows="Collection"),
    "toolong": Peer("toolong", "tl", ("LOG",), "of a log", UP),
}


def watched(name: str, home: Path) -> Watched:
    """Start a program, wait for its first screen, press keys, and leave it alone. Raises RuntimeError where it shows nothing."""
    peer = PEERS[name]
    log = home / "some.log"
    log.write_text("".join(f"line {number} of a log\n" for number in range(1000)), encoding="utf-8")
    arguments = [str(log) if item == "LOG" else item for item in peer.arguments]
    with closing(_Terminal([*_program(peer), *arguments], home)) as terminal:
        frame_s = terminal.until(peer.shows)
        terminal.settle()
        answers = [terminal.press(peer.key) for _ in range(KEYS)]
        idle = terminal.read_for(IDLE_S)
    seconds, sizes = zip(*answers, strict=True)
    return Watched(frame_s, median(seconds), median(sizes), len(idle))


def rows(count: int, home: Path) -> list[tuple[str, ...]]:
    """A row for each program: medians over the rounds, each of which starts every program once."""
    seen: dict[str, list[Watched]] = {name: [] for name in PEERS}
    failed: dict[str, str] = {}
    for number in range(count + 1):
        for name in [name for name in PEERS if name not in failed]:
            try:
                found = watched(name, home)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                failed[name] = str(error)
                continue
            if number:  # the first round warms caches
                seen[name].append(found)
    own = seen["envmedic"]
    return [
        (name, *(["shows no screen here"] + [""] * 3 if name in failed else _cells(seen[name], own))) for name in PEERS
    ]


def _cells(items: list[Watched], own: list[Watched]) -> list[str]:
    frame, key = (median(values) for values in zip(*((item.frame_s, item.key_s) for item in items), strict=True))
    own_frame = median(item.frame_s for item in own)
    own_key = median(item.key_s for item in own)
    return [
        f"{frame:.2f} s ({frame / own_frame:.2f} x)",
        f"{key * 1000:.0f} ms ({key / own_key:.2f} x)",
        f"{median(item.key_bytes for item in items):,.0f}",
        f"{median(item.idle_bytes for item in items):,.0f}",
    ]


def _program(peer: Peer) -> list[str]:
    """Its own interpreter and script: starting it by uv would be measured too."""
    if not peer.package:
        return [sys.executable, "-m", "envmedic"]
    asked = [uv(), "tool", "run", "--quiet", "--from", peer.package, "python", "-c", "import sys; print(sys.prefix)"]
    prefix = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    return [f"{prefix}/bin/python", f"{prefix}/bin/{peer.command}"]


class _Terminal:
    """A program in a pseudo terminal of its own."""

    def __init__(self, argv: list[str], home: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "COLORTERM"))}
        variables |= {"TERM": "xterm-256color", "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        self._began = time.perf_counter()
        self._process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, cwd=home, start_new_session=True
        )
        os.close(theirs)
        self._seen = b""

    def close(self) -> None:
        """End the program."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)

    def _some(self, limit_s: float) -> bytes:
        ready, _, _ = select.select([self._ours], [], [], max(limit_s, 0))
        try:
            found = os.read(self._ours, 1 << 16) if ready else b""
        except OSError as error:  # EIO: nobody holds the terminal any more
            raise RuntimeError(f"it ended: {self._seen[-1500:].decode(errors='replace')}") from error
        self._seen += found
        return found

    def until(self, text: str) -> float:
        """Seconds from the start until `text` was drawn."""
        while text.encode() not in self._seen:
            left = self._began + PATIENCE_S - time.perf_counter()
            if left <= 0 or self._process.poll() is not None:
                raise RuntimeError(f"no {text!r} was drawn: {self._seen[-1500:].decode(errors='replace')}")
            self._some(min(left, 0.5))
        return time.perf_counter() - self._began

    def settle(self) -> None:
        """Wait until nothing is drawn any more; a screen that never rests is taken as it is."""
        deadline = time.perf_counter() + 10
        while self._some(QUIET_S) and time.perf_counter() < deadline:
            pass

    def press(self, key: bytes) -> tuple[float, int]:
        """Seconds from a key to the first byte that answers it, and the bytes of the whole answer."""
        began = time.perf_counter()
        os.write(self._ours, key)
        size = len(self._some(PATIENCE_S))
        seconds = time.perf_counter() - began
        while more := self._some(0.1):
            size += len(more)
            if time.perf_counter() - began > 1:
                break
        return seconds, size

    def read_for(self, seconds: float) -> bytes:
        """What is written in that time."""
        before, deadline = len(self._seen), time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self._some(left)
        return self._seen[before:]
