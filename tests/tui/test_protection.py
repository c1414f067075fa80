"""What protects an environment is told with its risk, and lifted by a yes, as ``--allow`` does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from envmedic.errors import PreflightError
from envmedic.render.pages.starting import protection
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import QuestionPanel
from envmedic.tui.panels.starting import StartPanel
from envmedic.tui.screens.plan import PlanScreen
from envmedic.tui.screens.repair import RepairScreen
from envmedic.tui.widgets.bars import CommandLine
from tests.envs.nms_cuda.case import Case
from tests.real.manifest import manifest
from tests.tui.support import LARGE, drive, shown, until, until_shown
from tests.tui.test_repair import asked, at_result, page, to_plan


@pytest.fixture
def frozen(patient: Case) -> Iterator[Case]:
    """Its maker wants it to stay as it is, and another tool keeps it."""
    meta, times = patient.prefix / "conda-meta", patient.prefix.stat()
    meta.mkdir()
    (meta / "frozen").write_text('{"message": "the class of 2026 counts on it"}')
    (meta / "pixi").write_text("{}")
    yield patient
    shutil.rmtree(meta)
    os.utime(patient.prefix, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.long
def test_each_protection_is_asked_about_with_its_risk_before_the_go_ahead(frozen: Case, error_text: str) -> None:
    before = manifest(frozen.prefix)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        screen = await to_plan(opened, pilot, error_text, can=False)
        assert "the class of 2026 counts on it" in page(opened)
        await decline(opened, pilot, screen)
        for name, risk in (("frozen", "other users and programs"), ("external", "does not know of the repair")):
            await until_shown(pilot, f"(--allow {name})")
            assert risk in shown(opened)
            assert f"--allow {name} " in shown(opened).replace("\n", " ")
            await pilot.press("y")
        await until(pilot, lambda: isinstance(opened.screen, StartPanel), "the go-ahead")
        assert "--allow frozen --allow external" in screen.query_one(CommandLine).line
        await pilot.press("y")
        await until(pilot, lambda: isinstance(opened.screen, RepairScreen))
        await until(pilot, asked(opened), "the question before the exchange")
        await pilot.press("n")
        await until(pilot, at_result(opened), "the result")

    drive(scenario, LARGE)
    assert manifest(frozen.prefix) == before


async def decline(opened: EnvmedicApp, pilot: Pilot[int], screen: PlanScreen) -> None:
    """A no leaves the plan as it was, and the protection in place."""
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
    await pilot.press("n")
    await until(pilot, lambda: opened.screen is screen)
    assert "--allow" not in screen.query_one(CommandLine).line
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))


def test_what_nothing_lifts_is_no_question() -> None:
    assert protection(PreflightError("It belongs to the operating system")) is None
    assert protection(None) is None
