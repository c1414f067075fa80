from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from textual import events
from textual.pilot import Pilot

from envmedic.errors import EnvmedicError
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.screens.finding import FindingScreen
from envmedic.tui.screens.plan import PlanScreen
from envmedic.tui.screens.watch import WatchScreen
from envmedic.tui.widgets.bars import CommandLine
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.log_view import LogView
from tests.envs.nms_cuda.case import Case
from tests.tui.support import LARGE, SMALL, app, drive, shown, until, until_shown

pytestmark = pytest.mark.usefixtures("active")


async def open_first(opened: EnvmedicApp, pilot: Pilot[int], text: str) -> None:
    """Paste `text`, and open what is found first once the facts have judged it."""
    opened.post_message(events.Paste(text))
    await until(pilot, lambda: opened.session.source is not None and opened.session.source.joined is not None)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(opened.screen, FindingScreen))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_a_finding_tells_what_says_so(active: Case, error_text: str, size: tuple[int, int]) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await open_first(opened, pilot, error_text)
        page = opened.screen.query_one(LineView)
        await until(pilot, lambda: "Why it happens" in page.text, "the page in plain words")
        await until(pilot, lambda: "Traceback" in page.text or "impl_abstract" in page.text, "the lines around")
        text = page.text
        assert "> 17  RuntimeError: operator torchvision::nms does not exist" in text
        assert "certain: the text and 2 facts agree" in text
        assert "\nFacts\n" in text
        assert "How it is proven" in text
        assert text.count("It either does not load at all") == 1, "each thing is said once"
        assert "In the text" in shown(opened)
        line = opened.screen.query_one(CommandLine).line
        assert line.startswith("envmedic plan --log ")
        assert line.endswith(f"-p {active.prefix}")
        page.scroll_home(animate=False)
        await pilot.press("slash", *"references", "enter")
        await until(pilot, lambda: size == LARGE or page.scroll_offset.y > 0, "going to what was searched")
        await pilot.press("escape")
        assert not isinstance(opened.screen, FindingScreen)

    drive(scenario, size)


def test_an_environment_that_was_merely_found_is_taken_by_a_yes_before_it_is_planned_for(
    active: Case, error_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.chdir(active.prefix.parent)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await open_first(opened, pilot, error_text)
        await pilot.press("enter")
        await until_shown(pilot, "Is this environment yours?")
        await pilot.press("n")
        assert isinstance(opened.screen, FindingScreen)
        assert opened.effects.merely_found(str(active.prefix))
        await pilot.press("enter", "y")
        await until(pilot, lambda: isinstance(opened.screen, PlanScreen), "the plan's screen")
        await until(pilot, lambda: any("must pass in the copy" in page.text for page in opened.screen.query(LineView)))
        assert not opened.effects.merely_found(str(active.prefix)), "its plan is made as for one that was named"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(opened.screen, FindingScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, PlanScreen), "the plan's screen: asked once")

    drive(scenario)


def test_a_plan_that_is_left_while_the_means_are_tried_is_over(error_text: str) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await open_first(opened, pilot, error_text)
        answers: list[Callable[[EnvmedicError], None]] = []
        with mock.patch.object(opened.effects, "means", lambda _plan, _options, then, _failed: answers.append(then)):
            await pilot.press("enter")
            await until(pilot, lambda: bool(answers), "the plan")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(opened.screen, FindingScreen))
        answers[0](EnvmedicError("too late"))
        await pilot.pause()
        assert isinstance(opened.screen, FindingScreen)

    drive(scenario)


def test_the_plan_is_shown_and_nothing_is_changed(active: Case, error_text: str) -> None:
    before = sorted(active.prefix.parent.iterdir())

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await open_first(opened, pilot, error_text)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, PlanScreen))
        page = opened.screen.query_one(LineView)
        await until(pilot, lambda: "must pass in the copy" in page.text, "the plan")
        assert page.text.startswith("Nothing has been changed yet.")
        assert "torchvision" in page.text
        assert "Steps, in a copy of the environment  d shows the commands" in page.text
        assert "0.18.1  →  0.20.1" in page.text
        assert "$ " not in page.text
        await pilot.press("d")
        assert "$ " in page.text
        line = opened.screen.query_one(CommandLine).line
        assert line.startswith("envmedic apply --log ")
        await pilot.press("y")
        assert opened.clipboard == line

    drive(scenario, driven=app(find_links=(str(active.wheels),), offline=True))
    assert sorted(active.prefix.parent.iterdir()) == before


def test_why_there_is_no_plan_is_a_page(error_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await open_first(opened, pilot, error_text)
        await pilot.press("enter")
        await until_shown(pilot, "There is no plan for this. Nothing has been changed.")
        assert "error:" in shown(opened)

    (tmp_path / "empty").mkdir()
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, (tmp_path / "empty").as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # without the wheels that another test had fetched
    drive(scenario, driven=app(find_links=(str(tmp_path / "empty"),), offline=True))


def test_a_command_is_watched_and_diagnosed() -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.current is not None)
        await pilot.press("w")
        await until_shown(pilot, "Run a command and watch it")
        await pilot.press(*"python -c 'import torchvision'", "enter")
        await until(pilot, lambda: isinstance(opened.screen, WatchScreen))
        await until(pilot, lambda: bool(opened.session.findings) and opened.session.source is not None)
        log = opened.screen.query_one(LogView)
        assert any("torchvision::nms" in line for line in log.lines)
        source = opened.session.source
        assert source is not None
        assert source.argv == ("python", "-c", "import torchvision")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, FindingScreen))
        assert " --last -p " in opened.screen.query_one(CommandLine).line

    drive(scenario)


def test_a_command_can_be_stopped(tmp_path: Path) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.current is not None)
        await pilot.press("w", *"sh -c 'echo $$ > pid; echo up; sleep 60'", "enter")
        await until(pilot, lambda: isinstance(opened.screen, WatchScreen))
        await until(pilot, lambda: opened.screen.query_one(LogView).lines == ("up",))
        await pilot.press("s")
        await until_shown(pilot, "It was stopped")
        assert opened.session.source is None

    drive(scenario)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_news_of_a_screen_that_was_left_are_dropped(active: Case) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: bool(opened.session.findings))
        opened.open_finding(opened.session.findings[0])
        opened.open_plan(opened.session.findings[0])
        await until(pilot, lambda: isinstance(opened.screen, PlanScreen))
        left = opened.screen
        await pilot.press("escape", "escape")
        await until(pilot, lambda: not left.is_attached)
        await until(pilot, lambda: not opened.jobs.running, "the end of the plan")

    assert drive(scenario, driven=app(find_links=(str(active.wheels),), offline=True)).failure is None
