"""Themes for what a terminal shows, colours in logs, settings, and what is kept between runs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES

from envmedic.render.log_tones import toned
from envmedic.render.text import bare
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.settings import SettingsPanel
from envmedic.tui.preferences import UiLayout, keep_layout, kept_layout, layout_file
from envmedic.tui.themes import OWN, TONES, Depth, built_in_themes, own_themes, tone_styles
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import make_venv
from tests.tui.support import LARGE, app, drive, shown, until, until_shown


def test_colours_are_those_of_the_palette_so_that_nothing_is_replaced() -> None:
    for theme in own_themes("256"):
        for colour in (
            theme.foreground,
            theme.background,
            theme.surface,
            *(theme.variables[f"tone-{tone}"] for tone in TONES),
        ):
            assert colour is not None
            drawn = RichColor.parse(colour).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
            apart = max(
                abs(one - other) for one, other in zip(drawn, RichColor.parse(colour).get_truecolor(), strict=True)
            )
            assert apart <= 10, (theme.name, colour, drawn.hex)


def test_of_sixteen_colours_each_tone_has_its_own() -> None:
    for theme in own_themes("standard"):
        numbers = {
            tone: RichColor.parse(theme.variables[f"tone-{tone}"]).downgrade(ColorSystem.STANDARD).number
            for tone in TONES
        }
        assert len({numbers[tone] for tone in ("good", "bad", "warn", "accent")}) == 4, (theme.name, numbers)
        ground = RichColor.parse(theme.surface or "").downgrade(ColorSystem.STANDARD).number
        assert ground not in numbers.values()


def _luminance(colour: str) -> float:
    """Source: https://www.w3.org/TR/WCAG21/#dfn-relative-luminance."""
    parts = [value / 255 for value in RichColor.parse(colour).get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


GROUNDS = ("surface", "background", "panel", "block-cursor-background", "block-cursor-blurred-background")


@pytest.mark.parametrize("depth", ["truecolor", "256", "standard"])
def test_all_that_is_written_can_be_read_on_every_ground(depth: Depth) -> None:
    """The rows of the cursor too, where the colours of the tones stay. Source: WCAG 2.1, 1.4.3 (4.5) and 1.4.11 (3)."""
    for theme, name in itertools.product(own_themes(depth), GROUNDS):
        ground = _luminance(getattr(theme, name, None) or theme.variables[name])
        text = theme.variables["block-cursor-foreground"] if name == GROUNDS[3] else theme.foreground
        written: dict[str, str | None] = {
            "text": text,
            "number": theme.secondary,
            **{tone: theme.variables[f"tone-{tone}"] for tone in TONES},
        }
        for tone, colour in written.items():
            own = _luminance(colour or "")
            contrast = (max(own, ground) + 0.05) / (min(own, ground) + 0.05)
            # of sixteen colours no green is darker
            assert contrast >= (2.9 if depth == "standard" else 4.5), (theme.name, name, tone, contrast)


def test_every_theme_of_textual_has_the_tones() -> None:
    found = built_in_themes()
    assert {theme.name for theme in found} == set(BUILTIN_THEMES)
    for theme in found:
        styles = tone_styles(theme)
        assert styles["good"].color != styles["bad"].color
        assert styles["dim"].color is not None


@pytest.mark.long
def test_any_of_them_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVMEDIC_THEME", "nord")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await pilot.pause()
        assert opened.theme == "nord"
        for name in opened.offer_themes():
            opened.use_theme(name)
            await pilot.pause()
        assert set(OWN) < set(opened.available_themes)

    drive(scenario)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("RuntimeError: operator x", {"RuntimeError": "bad"}),
        ('  File "/opt/x/y.py", line 16, in f', {"/opt/x/y.py": "accent", "16": "number"}),
        ("UserWarning: torch 2.5.1 is old", {"UserWarning": "warn", "2.5.1": "number"}),
        ("no error here, and 3 errors", {"3": "number"}),
    ],
)
def test_a_log_has_colours_and_all_of_its_text(text: str, pieces: dict[str, str]) -> None:
    drawn = toned(text)
    assert bare(drawn) == text
    assert {part.text: part.tone for part in drawn if part.tone != "plain"} == pieces


def test_the_palette_has_keys_and_the_commands_of_the_screen(active: Case) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.chosen == str(active.prefix))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(opened.screen, CommandPalette))
        await until_shown(pilot, "Copy line  y")
        assert "History: repairs, what is kept, and the ways back  h" in shown(opened)

    drive(scenario, LARGE)


def test_settings_are_on_one_screen_and_what_is_kept_is_kept(active: Case) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.chosen == str(active.prefix))
        await pilot.press("comma")
        await until(pilot, lambda: isinstance(opened.screen, SettingsPanel) and opened.screen.focused is not None)
        assert "Ask before the swap  yes" in shown(opened)
        await pilot.press("down", "enter", "down", "down", "down", "enter")
        assert (opened.session.asks, opened.layout.commands) == (False, True)
        await pilot.press("escape", "right_square_bracket")
        opened.effects.choose(str(active.prefix))

    drive(scenario, LARGE)
    assert kept_layout() == UiLayout(environment=str(active.prefix), list_percent=40, commands=True)


@pytest.mark.usefixtures("active")
def test_the_last_environment_is_chosen_again_if_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    make_venv(tmp_path / "another")  # found too, and first by name
    make_venv(tmp_path / "left")
    keep_layout(UiLayout(environment=str(tmp_path / "left")))

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not opened.session.searching)
        assert opened.session.chosen == str(tmp_path / "left")
        assert len(opened.session.environments) > 1

    drive(scenario)


def test_a_damaged_layout_is_told(tmp_path: Path) -> None:
    del tmp_path
    layout_file().parent.mkdir(parents=True, exist_ok=True)
    layout_file().write_text("{")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "The layout of the last run")
        assert "damaged" in shown(opened)
        assert opened.layout == UiLayout()

    drive(scenario, driven=app())
