"""Drives the real app, with real effects on real environments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from textual.app import App
from textual.pilot import Pilot

from envmedic.api.context.settings import Settings
from envmedic.model.events import EventStream
from envmedic.model.ports import ApplyOptions
from envmedic.tui.app import EnvmedicApp

SMALL, LARGE = (80, 24), (200, 60)
Scenario = Callable[[EnvmedicApp, Pilot[int]], Awaitable[None]]
PATIENCE_S = 120.0


def app(options: ApplyOptions | None = None, **settings: object) -> EnvmedicApp:
    """The app as `envmedic` opens it, with other options and settings where they are given."""
    return EnvmedicApp(Settings(stream=EventStream([]), **settings), options or ApplyOptions())  # type: ignore[arg-type]


def drive(scenario: Scenario, size: tuple[int, int] = SMALL, driven: EnvmedicApp | None = None) -> EnvmedicApp:
    """Run `scenario` on the app in a terminal of that size."""
    opened = driven or app()

    async def run() -> None:
        async with opened.run_test(size=size) as pilot:
            await scenario(opened, pilot)
            await opened.jobs.stop()

    asyncio.run(run())
    return opened


async def until(pilot: Pilot[int], condition: Callable[[], bool], what: str = "it") -> None:
    """Wait for something to come true. Fails with what the screen shows instead."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true\n{stacked(pilot.app)}\n{shown(pilot.app)}"
        await pilot.pause(0.05)
    await pilot.pause()


async def until_shown(pilot: Pilot[int], text: str) -> None:
    """Wait until the screen shows `text`."""
    await until(pilot, lambda: text in shown(pilot.app), repr(text))


def stacked(opened: App[int]) -> str:
    """The screens above each other, and what has the focus."""
    return f"{' > '.join(type(screen).__name__ for screen in opened.screen_stack)}, focus: {opened.focused}"


def shown(opened: object) -> str:
    """What the terminal shows, line by line."""
    assert isinstance(opened, EnvmedicApp)
    rows = opened.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows)


def focused(opened: EnvmedicApp) -> str:
    """Id of the part that has the focus."""
    return (opened.focused.id or "") if opened.focused is not None else ""
