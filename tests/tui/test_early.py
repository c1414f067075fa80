from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.binding import Binding
from textual.screen import Screen

from envmedic.errors import InputError
from envmedic.render.text import line
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import ErrorPanel, Prompt, QuestionPanel
from envmedic.tui.screens.history import HistoryScreen
from envmedic.tui.screens.home import HomeScreen
from envmedic.tui.screens.playbooks import PlaybooksScreen
from envmedic.tui.screens.watch import WatchScreen
from envmedic.tui.widgets.paste import PasteBox
from tests.envs.nms_cuda.case import Case
from tests.tui.support import app, focused, shown, until, until_shown

pytestmark = pytest.mark.usefixtures("active")

LEAVING = {"q", "ctrl+q", "ctrl+c"}
"""Keys that end the app or suspend it, which tests of endings press."""


def keys_of(*classes: type) -> list[str]:
    """Every key that is bound in them and in what they are made from."""
    found: set[str] = set()
    for owner in classes:
        for base in owner.__mro__:
            for item in base.__dict__.get("BINDINGS", ()):
                made = item if isinstance(item, Binding) else Binding(*item)
                found.update(made.key.split(","))
    return sorted(found - LEAVING)


def key(name: str) -> events.Key:
    """As the terminal's driver makes it."""
    characters = {"slash": "/", "question_mark": "?", "space": " ", "enter": "\r"}
    return events.Key(name, characters.get(name, name if len(name) == 1 else None))


def before_composing(opened: EnvmedicApp, names: list[str]) -> None:
    """Press keys before the app has handled anything else."""
    for name in names:
        opened.post_message(key(name))


@pytest.mark.parametrize("pressed", keys_of(EnvmedicApp, HomeScreen))
def test_every_key_of_home_can_be_pressed_before_the_first_frame(pressed: str) -> None:
    opened = app()

    async def run() -> None:
        before_composing(opened, [pressed])
        async with opened.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: not opened.session.searching)
            assert opened.is_running
            await opened.jobs.stop()

    asyncio.run(run())
    assert opened.failure is None


def test_what_is_typed_before_the_first_frame_arrives_in_its_order() -> None:
    opened = app()

    async def run() -> None:
        before_composing(opened, ["slash", "x", "y", "z"])
        async with opened.run_test(size=(80, 24)) as pilot:
            await until_shown(pilot, "xyz")
            assert focused(opened) == "search"
            await opened.jobs.stop()

    asyncio.run(run())


def test_a_traceback_that_comes_as_keys_before_the_first_frame_is_a_text_and_no_command(error_text: str) -> None:
    opened = app()
    text = error_text.replace("\n", "\r")
    head, tail = text[:-10], text[-10:]

    async def run() -> None:
        for char in head:
            opened.post_message(events.Key("enter" if char == "\r" else char, char))
        async with opened.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: focused(opened) == "paste")
            for char in tail:
                opened.post_message(events.Key("enter" if char == "\r" else char, char))
            await until(pilot, lambda: opened.session.source is not None and bool(opened.session.findings))
            assert opened.screen.query_one(PasteBox).raw == error_text
            assert opened.session.findings[0].playbook == "nms-cuda"
            await opened.jobs.stop()

    asyncio.run(run())


SCREENS: dict[str, Callable[[Case], Screen[Any]]] = {
    "history": lambda case: HistoryScreen(str(case.prefix)),
    "playbooks": lambda _case: PlaybooksScreen(),
    "watch": lambda _case: WatchScreen("true"),
    "error": lambda _case: ErrorPanel(InputError("An error")),
    "question": lambda _case: QuestionPanel("A question", [line("Yes?")]),
    "prompt": lambda _case: Prompt("A line", [line("Type")]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SCREENS)
def test_every_key_of_a_screen_can_be_pressed_before_during_and_after_it_is_composed(active: Case, name: str) -> None:
    opened = app()
    screen = type(SCREENS[name](active))

    async def run() -> None:
        async with opened.run_test(size=(80, 24)) as pilot:
            for pressed in keys_of(EnvmedicApp, screen):
                for pauses in range(3):  # nothing of the screen is there; some of it; all of it
                    opened.push_screen(SCREENS[name](active))
                    for _ in range(pauses):
                        await asyncio.sleep(0.01)
                    opened.post_message(key(pressed))
                    await pilot.pause()
                    assert opened.is_running, pressed
                    while len(opened.screen_stack) > 1:
                        opened.pop_screen()
                    await pilot.pause()
            await opened.jobs.stop()

    asyncio.run(run())
    assert opened.failure is None


def test_escape_leaves_the_error_text_and_keeps_it_and_its_keys_are_named() -> None:
    opened = app()

    async def run() -> None:
        async with opened.run_test(size=(80, 24)) as pilot:
            await until_shown(pilot, "✗ torchvision-ops")
            opened.screen.query_one(PasteBox).focus()
            await until_shown(pilot, "Leave")
            assert "Clear" in shown(opened).splitlines()[-1]
            await pilot.press("question_mark", "q")
            await pilot.pause(0.4)
            assert opened.session.source is None  # two keys are no error text
            assert opened.session.findings
            await pilot.press("escape")
            assert focused(opened) != "paste"
            assert opened.screen.query_one(PasteBox).raw == "?q"
            await opened.jobs.stop()

    asyncio.run(run())


def test_pastes_are_marked_before_the_ui_is_loaded(tmp_path: Path) -> None:
    """Typed in a terminal at once, as by somebody with a traceback in the clipboard."""
    master, slave = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "HOME": str(tmp_path), "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(
        [sys.executable, "-m", "envmedic"], stdin=slave, stdout=slave, stderr=slave, env=variables, cwd=tmp_path
    ) as process:
        os.close(slave)
        os.write(master, b"/")
        seen = bytearray()

        def read() -> None:
            while True:
                with contextlib.suppress(OSError):  # the terminal's other end is closed
                    seen.extend(os.read(master, 65536))
                    continue
                return

        reader = threading.Thread(target=read)
        reader.start()
        while b"\x1b[?1049h" not in seen and process.poll() is None:
            threading.Event().wait(0.05)
        assert b"\x1b[?2004h" in seen[: seen.index(b"\x1b[?1049h")]
        os.write(master, b"\x1b\x11")  # ctrl+q
        threading.Event().wait(1)
        process.terminate()
        process.wait(60)
        os.close(master)
        reader.join(10)
    assert process.returncode in {0, 130}, seen[-2000:]
