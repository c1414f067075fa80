from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import ErrorPanel
from envmedic.tui.panels.settings import ThemePanel
from envmedic.tui.themes import CONTRAST, DARK, LIGHT
from tests.tui.support import app, drive, shown, until

PROGRAM = """
import sys, time
from pathlib import Path
from envmedic.api.context.settings import Settings
from envmedic.errors import Interrupted
from envmedic.model.events import EventStream
from envmedic.model.ports import ApplyOptions
from envmedic.tui.app import EnvmedicApp

MARK = Path(sys.argv[1])

class Busy(EnvmedicApp):
    def on_ready(self):
        self.effects.job("repair", "repairing", self.change, lambda _: None, lambda _: None, must_end=True)

    def change(self, settings, job):
        MARK.write_text("begun")
        while not job.token():
            time.sleep(0.01)
        for _ in range(50):  # more is drawn than waits for a terminal
            time.sleep(0.01)
            self.later(lambda: self.notify("going back"))
        MARK.write_text("as it was")
        raise Interrupted("Interrupted")

sys.exit(Busy(Settings(stream=EventStream([])), ApplyOptions()).run())
"""
LEFT_ALTERNATE_SCREEN = b"\x1b[?1049l"


class Opened:
    """A program in a pseudo terminal of its own, which leads the session there."""

    def __init__(self, tmp_path: Path) -> None:
        self.mark = tmp_path / "mark"
        self.seen = b""
        variables = {**os.environ, "TERM": "xterm-256color", "HOME": str(tmp_path), "COLUMNS": "80", "LINES": "24"}
        self.ours, theirs = pty.openpty()
        argv = [sys.executable, "-c", PROGRAM, str(self.mark)]
        self.process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
        )
        os.close(theirs)

    def read_until_begun(self) -> None:
        """Take what is drawn until the work has begun."""
        deadline = time.monotonic() + 1800
        while not (self.mark.exists() and self.mark.read_text() == "begun"):
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read()

    def read(self) -> None:
        if select.select([self.ours], [], [], 0.05)[0]:
            try:
                self.seen += os.read(self.ours, 1 << 16)
            except OSError:  # the other end is closed
                time.sleep(0.05)

    def end(self) -> int:
        """Exit code, what is drawn being taken meanwhile."""
        deadline = time.monotonic() + 1800
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read()
        self.read()
        return self.process.returncode


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_is_changed_first_and_gives_the_terminal_back(tmp_path: Path, number: int) -> None:
    opened = Opened(tmp_path)
    opened.read_until_begun()
    opened.process.send_signal(number)
    assert opened.end() == 130, opened.seen[-2000:]
    os.close(opened.ours)
    assert opened.mark.read_text() == "as it was"
    assert LEFT_ALTERNATE_SCREEN in opened.seen
    assert b"Traceback" not in opened.seen


def test_a_terminal_that_goes_away_does_too(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    opened.read_until_begun()
    os.close(opened.ours)
    assert opened.process.wait(60) == 130
    assert opened.mark.read_text() == "as it was"


@pytest.mark.usefixtures("active")
class TestTheme:
    def test_it_stays_for_later_runs_unless_a_variable_names_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def choosing(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
            assert opened.theme == DARK
            await pilot.press("ctrl+p")
            await pilot.press(*"theme", "enter")
            await until(pilot, lambda: isinstance(opened.screen, ThemePanel) and opened.screen.focused is not None)
            await pilot.press("down")
            await until(pilot, lambda: opened.theme == LIGHT, "the preview")
            await pilot.press("escape")
            await until(pilot, lambda: opened.theme == DARK, "the theme as it was")
            opened.action_themes()
            await until(pilot, lambda: isinstance(opened.screen, ThemePanel) and opened.screen.focused is not None)
            await pilot.press("down", "enter")
            await until(pilot, lambda: opened.theme == LIGHT)

        async def later(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
            await pilot.pause()
            assert opened.theme == LIGHT

        async def named(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
            await pilot.pause()
            assert opened.theme == CONTRAST

        drive(choosing)
        drive(later)
        monkeypatch.setenv("ENVMEDIC_THEME", CONTRAST)
        drive(named)

    def test_that_it_cannot_be_kept_or_read_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "envmedic").write_text("a file where a directory is wanted")

        async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
            await until(pilot, lambda: isinstance(opened.screen, ErrorPanel))
            assert "cannot be read" in shown(opened)
            await pilot.press("escape")
            opened.choose_theme(LIGHT)
            await until(pilot, lambda: isinstance(opened.screen, ErrorPanel))
            assert opened.theme == LIGHT
            assert "The theme cannot be kept" in shown(opened)

        drive(scenario, driven=app())


def test_motion_is_left_out_where_the_user_says_so(tmp_path: Path) -> None:
    program = (
        "from envmedic.tui.app import EnvmedicApp; from envmedic.api.context.settings import Settings;"
        "from envmedic.model.events import EventStream; from envmedic.model.ports import ApplyOptions;"
        "print(EnvmedicApp(Settings(stream=EventStream([])), ApplyOptions()).animation_level)"
    )
    variables = {**os.environ, "HOME": str(tmp_path), "TEXTUAL_ANIMATIONS": "none"}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "none\n"
