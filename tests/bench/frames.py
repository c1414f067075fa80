"""The terminal UI: its first frame against that of an empty app, and keys while a log pours in against an idle screen."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from textual import events

from envmedic.api.context.settings import Settings
from envmedic.model.events import Event, EventStream, OutputLine
from envmedic.model.ports import ApplyOptions
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.effects.jobs import BackgroundJob
from envmedic.tui.widgets.log_view import LogView
from tests.bench.sampling import Samples, rounds

LINES, CHUNK, PAUSE_S = 60_000, 400, 0.02
"""A log of that many lines, that many at once, which takes three seconds."""
KEYS, FEWEST = 30, 10
"""Keys of a round, as far as the log lasts."""
ROWS, COLUMNS = 24, 80
_EMPTY = """
import os
from textual.app import App
class Empty(App):
    def on_ready(self): self.call_after_refresh(os._exit, 0)
Empty().run()
"""
ENVMEDIC = """
import os
from envmedic import program
opened = program._terminal_ui
def timed(settings, options, place):
    from envmedic.tui.app import EnvmedicApp
    ready = EnvmedicApp.on_ready
    EnvmedicApp.on_ready = lambda self: (self.call_after_refresh(os._exit, 0), ready(self))
    return opened(settings, options, place)
program._terminal_ui = timed
program.program()
"""
"""The command without arguments, as people type it."""


def first_frames(count: int) -> Samples:
    """From the start of a process in a terminal to its first frame: of an empty Textual app, and of `envmedic`.

    Byte code is at hand from the second round on, as it is for people.
    """
    with tempfile.TemporaryDirectory() as home:
        measures = {"empty": lambda _: frame(_EMPTY, home), "envmedic": lambda _: frame(ENVMEDIC, home)}
        return rounds(measures, count)


def frame(program: str, home: str) -> float:
    """Seconds until a program in a pseudo terminal has drawn its first frame, which is when it ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", "HOME": home, "XDG_CACHE_HOME": home}
    variables |= {"PYTHONPYCACHEPREFIX": f"{home}/byte-code", "PYTHONDONTWRITEBYTECODE": ""}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=variables,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        drained = _drained(ours)
        seconds = time.perf_counter() - began
        code = process.wait()
    os.close(ours)
    if code:
        raise RuntimeError(f"the program ended with {code}: {drained[-2000:].decode(errors='replace')}")
    return seconds


def _drained(terminal: int) -> bytes:
    """What is drawn, until nobody holds the terminal any more."""
    seen = b""
    with suppress(OSError):  # EIO: the program has ended
        while True:
            seen += os.read(terminal, 1 << 16)
    return seen


def key_presses(count: int, home: Path) -> Samples:
    """From a key to what it paints: on an idle screen, and while 60,000 lines pour into a log on it.

    A sample is the median of the keys of a round.
    """
    os.environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home)}
    return rounds({"idle": lambda _: keys(pouring=False), "pouring": lambda _: keys(pouring=True)}, count)


def keys(*, pouring: bool) -> float:
    """The median of some keys, in seconds."""
    return asyncio.run(_keys(pouring=pouring))


async def _keys(*, pouring: bool) -> float:
    app = EnvmedicApp(Settings(stream=EventStream([])), ApplyOptions())
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        while app.jobs.running or app.session.searching:
            await pilot.pause(0.05)
        log = LogView(id="log")
        await app.screen.mount(log, before="#top")
        log.styles.height = 8
        log.add(f"line {number}" for number in range(ROWS))
        if pouring:
            app.effects.job(
                "bench", "printing", _pour, lambda _lines: None, on_events=lambda batch: log.add(_lines(batch))
            )
        taken: list[float] = []
        while len(taken) < KEYS and (app.jobs.running or not pouring):
            taken.append(await _key(app))
        if len(taken) < FEWEST:
            raise RuntimeError(f"the log had ended after {len(taken)} keys")
        await app.jobs.stop()
        return median(taken)


async def _key(app: EnvmedicApp) -> float:
    """Seconds from a Tab to the frame that shows where it leads."""
    painted = asyncio.Event()
    before = app.focused
    began = time.perf_counter()
    app.post_message(events.Key("tab", None))
    while app.focused is before:  # noqa: ASYNC110  # Textual tells of it by no event of asyncio's
        await asyncio.sleep(0)
    app.screen.call_after_refresh(painted.set)
    await painted.wait()
    seconds = time.perf_counter() - began
    await asyncio.sleep(PAUSE_S)
    return seconds


def _pour(settings: Settings, job: BackgroundJob[int]) -> int:
    for number in range(LINES):
        settings.stream.emit(OutputLine(source="pip", line=f"line {number} of a log that pours in"))
        if number % CHUNK == 0:
            time.sleep(PAUSE_S)
        if job.token():
            break
    return LINES


def _lines(batch: list[Event]) -> list[str]:
    return [item.data.line for item in batch if isinstance(item.data, OutputLine)]
