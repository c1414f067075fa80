from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot

from envmedic.errors import EnvmedicError, InternalError
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.effects.jobs import BackgroundJob
from envmedic.tui.panels.base import ErrorPanel, QuestionPanel
from envmedic.tui.themes import CONTRAST, DARK, LIGHT
from tests.tui.support import LARGE, SMALL, app, drive, focused, shown, until, until_shown

pytestmark = pytest.mark.usefixtures("active")

ROOT = Path(__file__).resolve().parent.parent.parent


def test_help_is_about_the_part_that_has_the_focus() -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await pilot.press("question_mark")
        await until_shown(pilot, "The environments found here")
        assert "Open log" in shown(opened)
        await pilot.press("escape")
        opened.screen.query_one("#host").focus()
        await pilot.press("question_mark")
        await until_shown(pilot, "This machine: GPUs, driver")
        assert "Tab goes to the next part" in shown(opened)

    drive(scenario, LARGE)


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (SMALL, ["environments", "findings", "paste"]),  # a line each for host and environment: nothing to scroll
        (LARGE, ["environments", "findings", "about", "host", "paste"]),
    ],
)
def test_every_part_is_reached_by_keys_alone(size: tuple[int, int], parts: list[str]) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not opened.session.searching)
        seen = []
        for _ in parts:
            seen.append(focused(opened))
            await pilot.press("tab")
        assert seen == parts
        assert focused(opened) == "environments"

    drive(scenario, size)


def test_a_key_has_its_name_where_the_terminal_has_no_sign_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "⏎ Open finding")
        monkeypatch.setattr("sys.__stdout__", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
        opened.screen.refresh_bindings()
        await until_shown(pilot, "Enter Open finding")

    drive(scenario)


def test_the_command_palette_does_what_keys_do() -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(opened.screen, CommandPalette))
        await pilot.press(*"open a log", "enter")
        await until_shown(pilot, "The file with the error text")

    drive(scenario)


@pytest.mark.parametrize("theme", [DARK, LIGHT, CONTRAST])
def test_themes_are_three_and_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, theme: str) -> None:
    monkeypatch.setenv("ENVMEDIC_THEME", theme)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await pilot.pause()
        assert opened.theme == theme
        assert set(opened.available_themes) == {DARK, LIGHT, CONTRAST}

    drive(scenario)


def test_without_colour_the_marks_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "✗ torchvision-ops")
        colours = {
            colour.triplet
            for row in opened.screen._compositor.render_strips()
            for segment in row.apply_filter(opened._filters[-1], opened.screen.background_colors[1])
            if segment.style is not None and (colour := segment.style.color) is not None and colour.triplet is not None
        }
        assert colours
        assert all(len(set(triplet)) == 1 for triplet in colours)

    drive(scenario)
    assert os.environ["NO_COLOR"] == "1"


def test_what_is_known_survives_other_sizes() -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "✗ torchvision-ops")
        for size in ((200, 60), (60, 18), (80, 24)):
            await pilot.resize_terminal(*size)
            await until_shown(pilot, "✗ torchvision")
            assert max(map(len, shown(opened).splitlines())) <= size[0]

    drive(scenario)


def test_a_bug_in_an_effect_is_a_panel_with_what_to_report() -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        opened.effects.job("probe", "failing", lambda _settings, _job: 1 // 0, lambda _value: None)
        await until(pilot, lambda: isinstance(opened.screen, ErrorPanel))
        text = shown(opened)
        assert "A bug of envmedic: ZeroDivisionError" in text
        await pilot.press("c")
        assert "Traceback" in opened.clipboard
        assert "Press c to copy this text" in opened.clipboard

    drive(scenario, LARGE)


def test_a_bug_of_the_ui_itself_ends_it_and_is_told_by_its_caller() -> None:
    opened = app()

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        opened.call_later(lambda: 1 // 0)
        await pilot.pause(0.5)

    with pytest.raises(ZeroDivisionError):
        drive(scenario, driven=opened)
    assert isinstance(opened.failure, ZeroDivisionError)


def test_quitting_while_something_is_changed_asks_and_waits() -> None:
    ended: list[EnvmedicError] = []

    def work(_settings: object, job: BackgroundJob[None]) -> None:
        while not job.token():
            time.sleep(0.01)
        time.sleep(0.2)
        raise InternalError("cleaned up")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        opened.effects.job("repair", "repairing", work, lambda _value: None, ended.append, must_end=True)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        await pilot.press("n")
        assert opened.is_running
        assert opened.jobs.unfinished()
        await pilot.press("q")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        await pilot.press("y")
        await until(pilot, lambda: not opened.jobs.unfinished())

    opened = drive(scenario, SMALL)
    assert opened.return_value == 0


def _in_terminal(argv: list[str], home: Path, keys: bytes, until_text: bytes) -> tuple[int, bytes]:
    """Run a program in a pseudo terminal of its own, send `keys` once it shows a text, and wait for its end."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "HOME": str(home), "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True)
    os.close(theirs)
    seen, sent, deadline = b"", False, time.monotonic() + 1800
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                seen += os.read(ours, 1 << 16)
            except OSError:
                break
        elif process.poll() is not None:
            break
        if until_text in seen and not sent:
            os.write(ours, keys)
            sent = True
    os.close(ours)
    return process.wait(10), seen


def test_envmedic_alone_opens_it_in_a_terminal(tmp_path: Path) -> None:
    code, seen = _in_terminal([sys.executable, "-m", "envmedic"], tmp_path, b"q", b"Environments")
    assert code == 0, seen[-2000:].decode(errors="replace")
    assert b"Error text" in seen


def test_envmedic_alone_without_a_terminal_is_short_help() -> None:
    argv = [sys.executable, "-m", "envmedic"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: envmedic")
