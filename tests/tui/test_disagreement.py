from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from envmedic.tui.app import EnvmedicApp
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import make_venv
from tests.tui.support import LARGE, SMALL, app, drive, focused, shown, until, until_shown

pytestmark = pytest.mark.usefixtures("active")


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE], ids=["80x24", "120x40", "200x60"])
def test_home_says_in_one_glance_who_disagrees_and_what_enter_does(size: tuple[int, int]) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "─✗─ torchvision 0.18.1, needs torch 2.3.1")
        text = shown(opened)
        assert "No NVIDIA GPU here" in text or "gpu " in text
        assert "▸* " in text
        keys = text.splitlines()[-1]
        assert keys.lstrip().startswith("⏎ Open finding")
        assert keys.endswith("q Quit  ^p Commands  ? Help")
        await pilot.press("enter")
        await until_shown(pilot, "Who disagrees")
        assert "certain: the text and" in shown(opened) or "certain: " in shown(opened)
        assert shown(opened).index("Who disagrees") < shown(opened).index("Facts")

    drive(scenario, size)


def test_enter_on_another_environment_chooses_it(active: Case) -> None:
    other = active.prefix.parent / "second"
    make_venv(other)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        from envmedic.tui.screens.environment_list import EnvironmentList

        await until_shown(pilot, "─✗─ torchvision 0.18.1, needs torch 2.3.1")
        opened.effects.choose_by_path(str(other))
        await until(pilot, lambda: opened.session.chosen == str(other))
        opened.screen.query_one(EnvironmentList).highlight(str(active.prefix))
        await until_shown(pilot, "⏎ Work on it")
        await pilot.press("enter")
        await until(pilot, lambda: opened.session.chosen == str(active.prefix))
        assert focused(opened) == "findings"

    drive(scenario)


def test_the_cursor_is_where_the_chosen_environment_is(active: Case) -> None:
    other = active.prefix.parent / "another"
    make_venv(other)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not opened.session.searching)
        opened.effects.choose_by_path(str(other))
        await until(pilot, lambda: opened.session.chosen == str(other))
        row = next(row for row in shown(opened).splitlines() if "▸" in row)
        assert "another" in row
        from envmedic.tui.screens.environment_list import EnvironmentList

        assert opened.screen.query_one(EnvironmentList).chosen == str(other)

    drive(scenario)


def test_it_opens_on_a_named_environment(active: Case) -> None:
    other = active.prefix.parent / "named"
    make_venv(other)
    opened = app()
    opened._place = str(other)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not opened.session.searching and opened.session.chosen == str(other))
        assert opened.session.known(str(active.prefix)) is not None
        await until(pilot, lambda: opened.session.current is not None and opened.session.current.phase == "read")
        assert opened.session.current is not None
        environment = opened.session.current.environment
        assert environment is not None
        assert environment.interpreter.named

    drive(scenario, driven=opened)


def test_nothing_runs_of_an_environment_that_was_merely_found_until_it_is_chosen(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    trap = tmp_path / "checkout" / ".venv"
    make_venv(trap)
    python = trap / "bin" / "python"
    real = python.resolve()
    python.unlink()
    python.write_text(f'#!/bin/sh\necho ran >> "{ran}"\nexec {real} "$@"\n')
    python.chmod(0o755)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        def read() -> bool:
            known = opened.session.known(str(trap))
            return known is not None and known.phase in {"read", "failed"}

        await until(pilot, read)
        assert not ran.exists()
        opened.effects.choose(str(trap))
        await until(pilot, ran.exists, "its Python was started after it was chosen")

    drive(scenario)
