from __future__ import annotations

import shutil
import stat
from pathlib import Path

import msgspec
import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from envmedic.engine.store import journal as journals
from envmedic.engine.store.layout import Store, new_transaction_id
from envmedic.model.answers.environments import FoundEnvironment
from envmedic.model.findings import Diagnosis
from envmedic.probe.prefix import finder
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import ErrorPanel
from envmedic.tui.screens.finding import FindingScreen
from envmedic.tui.screens.home_lines import listed
from envmedic.tui.session import Known
from envmedic.tui.widgets.choices import ChoiceList
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.paste import PasteBox
from tests.cli.support import state_of
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import make_venv
from tests.tui.support import LARGE, SMALL, drive, focused, shown, until, until_shown

pytestmark = pytest.mark.usefixtures("active")


async def paste(app: EnvmedicApp, pilot: Pilot[int], text: str) -> None:
    """As a terminal with bracketed paste does."""
    app.post_message(events.Paste(text))
    await pilot.pause()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_the_active_environment_comes_first_and_is_read(active: Case, tmp_path: Path, size: tuple[int, int]) -> None:
    make_venv(tmp_path / ".venv")

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(
            pilot, lambda: all(item.phase == "read" for item in app.session.environments) and not app.session.searching
        )
        first, second = app.session.environments
        assert first.prefix == str(active.prefix) == app.session.chosen
        assert second.prefix == str(tmp_path / ".venv")
        await until_shown(pilot, "✗ torchvision-ops")
        await until_shown(pilot, "✓ no fault found")
        text = shown(app)
        assert "torch  2.5.1" in text or "torch 2.5.1" in text
        assert f"$ envmedic diagnose -p {active.prefix}"[: size[0] - 4] in text
        assert "? Help" in text
        assert max(map(len, text.splitlines())) <= size[0]
        assert app.session.host is not None

    drive(scenario, size)


def test_an_interrupted_transaction_is_told_and_left_as_it_is(active: Case) -> None:
    store = Store.of(active.prefix)
    store.prepare()
    identity, now = new_transaction_id(), journals.now()
    journal = journals.Journal(
        transaction=identity, parent=None, prefix=str(active.prefix), state="repairing", method="exchange",
        started=now, updated=now,
    )  # fmt: skip
    store.create({"journal.json": journals.encode(journal)}, transaction=identity)
    before = state_of(active.prefix.parent)

    async def scenario(_app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "! interrupted: envmedic recover -p")
        await until_shown(pilot, "✗ torchvision-ops")

    try:
        drive(scenario, LARGE)
        assert state_of(active.prefix.parent) == before
    finally:
        shutil.rmtree(store.root)


def test_a_paste_anywhere_is_matched_alone_and_then_with_the_facts(error_text: str) -> None:
    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        assert focused(app) == "environments"
        await paste(app, pilot, error_text)
        await until(pilot, lambda: app.session.source is not None and app.session.source.alone is not None)
        assert app.session.findings[0].playbook == "nms-cuda"
        await until(pilot, lambda: app.session.source is not None and app.session.source.joined is not None)
        assert app.session.findings[0].confirmed is True
        await until_shown(pilot, "by the pasted text, with the facts")
        assert focused(app) == "findings"
        box = app.screen.query_one(PasteBox)
        assert box.raw == error_text
        assert "operator torchvision::nms does not exist" in box.text
        source = app.session.source
        assert source is not None
        kept.append(Path(source.name))
        await pilot.press("escape")
        await until(pilot, lambda: app.session.source is None)
        assert box.raw == ""

    kept: list[Path] = []
    drive(scenario)
    assert kept[0].read_text() == error_text
    assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600


def test_text_that_arrives_key_by_key_is_matched_too() -> None:
    message = "RuntimeError: operator torchvision::nms does not exist"

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        app.screen.query_one(PasteBox).focus()
        await pilot.press(*["colon" if char == ":" else "space" if char == " " else char for char in message])
        await until(pilot, lambda: bool(app.session.source) and bool(app.session.findings))
        assert app.screen.query_one(PasteBox).raw == message
        assert app.session.findings[0].fault == "torchvision-ops"

    drive(scenario)


def test_escapes_and_markup_in_a_paste_are_shown_as_text() -> None:
    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await paste(app, pilot, "[bold]x[/bold]\x1b[2J\x07 日本\ttab")
        await until_shown(pilot, "[bold]x[/bold]␛[2J␇ 日本")
        await until(pilot, lambda: app.session.diagnosis is not None and app.session.source is not None)
        assert app.session.source is not None
        assert app.session.source.alone is not None
        assert app.session.source.alone.verdict == "unknown"

    drive(scenario)


def test_a_log_is_opened_by_its_path_with_completion(tmp_path: Path, error_text: str) -> None:
    (tmp_path / "error of today.log").write_text(error_text)

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await pilot.press("o")
        await until_shown(pilot, "Open a log")
        await pilot.press(*"err")
        await until_shown(pilot, "error of today.log")
        await pilot.press("right", "enter")
        await until(pilot, lambda: app.session.source is not None)
        source = app.session.source
        assert source is not None
        assert source.name == str(tmp_path / "error of today.log")
        await until_shown(pilot, "torchvision-ops")
        await until(pilot, lambda: app.session.source is not None and app.session.source.joined is not None)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FindingScreen))

    drive(scenario)


def test_a_log_that_is_not_there_is_a_panel_and_nothing_else_changes() -> None:
    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await pilot.press("o", *"nowhere", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorPanel))
        text = app.screen.query_one(LineView).text  # on the screen, where a line breaks depends on the path
        assert "nowhere cannot be read" in text
        assert "No such file or directory" in text
        assert "hint: Give the path of a text file" in text
        assert "The environment is unchanged" in text
        await pilot.press("escape")
        assert app.session.source is None

    drive(scenario)


def test_what_is_typed_at_once_with_the_slash_is_searched_for(active: Case) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.current is not None)
        assert focused(opened) == "environments"
        for key, character in (("slash", "/"), ("q", "q"), ("slash", "/"), ("z", "z")):
            opened.post_message(events.Key(key, character))
        await until(pilot, lambda: "Nothing here holds q/z" in shown(opened), "what was typed")
        await pilot.press("escape")
        await until_shown(pilot, str(active.prefix.name))
        await pilot.press("shift+tab")
        assert focused(opened) == "paste"
        await pilot.press("slash")
        await until(pilot, lambda: opened.screen.query_one(PasteBox).raw == "/")

    drive(scenario)


def test_typing_after_a_slash_leaves_matching_environments(tmp_path: Path) -> None:
    make_venv(tmp_path / ".venv")

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: len(app.session.environments) == 2)
        shown_list = app.screen.query_one("#environments", ChoiceList)
        await pilot.press("slash", *".venv")
        await until(pilot, lambda: shown_list.option_count == 1)
        assert shown_list.chosen == str(tmp_path / ".venv")
        await pilot.press("escape")
        await until(pilot, lambda: shown_list.option_count == 2)
        assert focused(app) == "environments"

    drive(scenario)


def test_another_environment_is_chosen_and_judged(tmp_path: Path, error_text: str) -> None:
    make_venv(tmp_path / ".venv")

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: len(app.session.environments) == 2)
        await paste(app, pilot, error_text)
        await until(pilot, lambda: app.session.source is not None)
        app.screen.query_one("#environments").focus()
        await pilot.press("down", "enter")
        assert app.session.chosen == str(tmp_path / ".venv")

        def judged() -> bool:
            return app.session.source is not None and app.session.source.prefix == str(tmp_path / ".venv")

        await until(pilot, judged, "the text with the facts of the other environment")
        assert app.session.findings[0].confirmed is not True

    drive(scenario)


def test_an_environment_is_named_by_hand(tmp_path: Path) -> None:
    make_venv(tmp_path / "deep" / "down" / "env")

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: not app.session.searching)
        await pilot.press("e")
        await until_shown(pilot, "Another environment")
        app.screen.query_one("#typed", Input).value = str(tmp_path / "deep" / "down" / "env")
        await pilot.press("enter")
        await until(pilot, lambda: app.session.chosen == str(tmp_path / "deep" / "down" / "env"))

    drive(scenario)


def test_without_an_environment_the_keys_are_those_that_lead_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finder, "everywhere", lambda *_: ())

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "No environment was found here")
        keys = shown(app).splitlines()[-1]
        assert keys.split("  ")[:2] == [" o Open log", "e Other env"]
        assert not any(word in keys for word in ("Work on it", "Watch", "History"))

    drive(scenario)


def test_work_on_an_environment_knows_whether_the_user_chose_it(tmp_path: Path) -> None:
    make_venv(tmp_path / ".venv")
    found = str(tmp_path / ".venv")

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        async def unnamed() -> bool:
            seen: list[bool] = []
            app.effects.job("excerpt", "asking", lambda settings, _: settings.unnamed, seen.append)
            await until(pilot, lambda: bool(seen))
            return seen[0]

        await until(pilot, lambda: len(app.session.environments) == 2)
        assert not await unnamed(), "the active one"
        app.update(app.session.choosing(found))
        assert await unnamed()
        app.effects.choose(found)
        assert not await unnamed()

    drive(scenario)


def test_environments_without_torch_are_folded_below_the_broken_one(active: Case, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make_venv(tmp_path / name / ".venv")

    async def scenario(app: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until_shown(pilot, "3 others, without torch")
        items = app.screen.query_one("#environments", ChoiceList)
        assert (items.option_count, items.chosen) == (2, str(active.prefix))
        await pilot.press("slash", *"b/.venv")
        await until(pilot, lambda: items.chosen == str(tmp_path / "b" / ".venv"))
        await pilot.press("escape", "end", "enter")
        await until(pilot, lambda: items.option_count == 4)
        assert items.chosen == str(tmp_path / "a" / ".venv")
        assert app.session.chosen == str(active.prefix), "to look at the rest chooses nothing"

    drive(scenario)


def test_broken_environments_are_listed_first_then_those_with_torch() -> None:
    found = FoundEnvironment(prefix="", kind="venv", found_by="project")

    def known(prefix: str, *, torch: str | None = None, active: bool = False, broken: bool = False) -> Known:
        item = msgspec.structs.replace(found, prefix=prefix, torch=torch, active=active)
        verdict = Diagnosis(prefix=prefix, facts=None, verdict="env" if broken else "healthy")
        return Known(found=item, phase="read", diagnosis=verdict)

    plain = [known(f"/{number}") for number in range(4)]
    every = [known("/active", active=True), *plain, known("/torch", torch="2.5.1"), known("/broken", broken=True)]
    first, rest = listed(every, chosen="/2")
    assert [item.prefix for item in first] == ["/broken", "/torch", "/active", "/2"]
    assert [item.prefix for item in rest] == ["/0", "/1", "/3"]
    few, none = listed(every[:3], chosen="")
    assert (len(few), none) == (3, [])
