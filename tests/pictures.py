"""The pictures in README: the real app on a really broken environment, from its error text to its repair.

``make pictures`` builds a small environment from miniature wheels, goes through the app as a user does, and writes what
it shows to ``docs/pictures``. Paths of the machine are replaced by some of nobody's, as long as they are.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

from textual import events
from textual.pilot import Pilot

import envmedic
from envmedic.api.context.settings import Settings
from envmedic.installers.uv import find_uv
from envmedic.model.events import EventStream
from envmedic.model.ports import ApplyOptions
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import AskPanel
from envmedic.tui.panels.starting import StartPanel
from envmedic.tui.screens.finding import FindingScreen
from envmedic.tui.screens.plan import PlanScreen
from envmedic.tui.screens.repair import RepairScreen
from envmedic.tui.screens.result import ResultScreen
from tests.envs.nms_cuda.case import Case, build
from tests.tui.support import until, until_shown

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
LOG = Path(__file__).resolve().parent / "envs" / "nms_cuda" / "sample_operator_does_not_exist.log"
NAMES = ("home", "plan", "repair", "result")
SIZE = (100, 30)
USER = "/home/me"
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Take them."""
    with tempfile.TemporaryDirectory() as outer:
        room = _room(Path(outer))
        try:
            pictures = asyncio.run(_story(build(room / "vision"), room))
        finally:
            shutil.rmtree(room)
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        text = _FONTS.sub("", pictures[name])  # they would be fetched from elsewhere
        for path, shown in _names(room):
            text = text.replace(path, shown)
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")


def _room(outer: Path) -> Path:
    """A directory whose path is as long as that of the user who is shown."""
    name = outer.name.strip("_")[: len(USER) - len("/tmp/")]
    room = Path("/tmp") / name
    room.mkdir()
    return room


async def _story(case: Case, room: Path) -> dict[str, str]:
    """What a user does, and what is seen meanwhile."""
    variables = {
        **case.index_variables(),
        "HOME": str(room),
        "PATH": os.defpath,
        "VIRTUAL_ENV": str(case.prefix),
        "XDG_CACHE_HOME": str(room / "cache"),
        "XDG_CONFIG_HOME": str(room / "config"),
    }
    dropped = {"NO_COLOR", "ENVMEDIC_THEME", "CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    with mock.patch.dict(os.environ, {**kept, **variables}, clear=True), _working_in(case.project):
        settings = Settings(stream=EventStream([]), find_links=(str(case.wheels),), offline=True)
        app = EnvmedicApp(settings, ApplyOptions(no_gpu=True, offline=True))
        async with app.run_test(size=SIZE) as pilot:
            found = await _seen(app, pilot)
            await app.jobs.stop()
    return found


class _working_in:  # noqa: N801  # contextlib.chdir is of Python 3.11
    """Another working directory meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self._folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)


async def _seen(app: EnvmedicApp, pilot: Pilot[int]) -> dict[str, str]:
    found: dict[str, str] = {}
    await until(pilot, lambda: app.session.current is not None and app.session.current.phase == "read")
    app.post_message(events.Paste(LOG.read_text()))
    await until(pilot, lambda: app.session.source is not None and app.session.source.joined is not None)
    found["home"] = app.export_screenshot(title="envmedic")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, FindingScreen))
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, PlanScreen))
    await until_shown(pilot, "must pass in the copy")
    await until(pilot, lambda: not app.jobs.running)
    found["plan"] = app.export_screenshot(title="envmedic")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, StartPanel))
    await pilot.press("y")
    await until(pilot, lambda: isinstance(app.screen, AskPanel))
    await pilot.press("escape")
    await until(pilot, lambda: isinstance(app.screen, RepairScreen))
    found["repair"] = app.export_screenshot(title="envmedic")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, AskPanel))
    await pilot.press("y")
    await until(pilot, lambda: isinstance(app.screen, ResultScreen))
    found["result"] = app.export_screenshot(title="envmedic")
    return found


def _names(room: Path) -> list[tuple[str, str]]:
    """Names of this machine, longest first, with some that are as long."""
    tools = [
        str(Path(find_uv()).parent.parent),
        sys.prefix,
        sys.base_prefix,
        str(Path(envmedic.__file__).parent.parent),
    ]
    names = {tool: (f"{USER}/.envmedic-{'x' * len(tool)}")[: len(tool)] for tool in tools}
    names |= {str(room): USER, platform.release(): "6.8.0-45-generic".ljust(len(platform.release()))}
    return sorted(names.items(), key=lambda item: -len(item[0]))


if __name__ == "__main__":
    main()
