from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from textual.pilot import Pilot

from envmedic.api import generations, repair
from envmedic.api.context.settings import RepairRequest, Settings
from envmedic.model.events import EventStream
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Difference, DistributionChange, Generation, History, KeptTree
from envmedic.render.pages.history import (
    NOW,
    drop_question,
    prune_question,
    state_item,
    state_page,
    states,
    undo_question,
)
from envmedic.render.text import Line, bare
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import ErrorPanel, Prompt, QuestionPanel, TextPanel
from envmedic.tui.screens.history import HistoryScreen
from envmedic.tui.widgets.bars import CommandLine
from envmedic.tui.widgets.lines import LineView
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case, build
from tests.tui.support import LARGE, SMALL, drive, shown, until, until_shown
from tests.tui.test_repair import reader


def generation(transaction: str, **told: object) -> Generation:
    known: dict[str, object] = {
        "parent": None, "state": "done", "live": False, "started": "2026-01-02T03:04:05Z", "finished": None,
        "playbook": "nms-cuda", "changes": ("torchvision 0.18.1 -> 0.20.1",), "undo_possible": False,
        "redo_possible": False, "size_bytes": 2048, "kept": True,
    }  # fmt: skip
    return Generation(transaction=transaction, **{**known, **told})  # type: ignore[arg-type]


def kept(transaction: str, *only_copies: str) -> KeptTree:
    return KeptTree(transaction=transaction, tree=f"/.envmedic/{transaction}/env", only_copies=only_copies)


def text(lines: list[Line]) -> str:
    return "\n".join(map(bare, lines))


HISTORY = History(
    prefix="/env",
    generations=(generation("b", live=True, parent="a", undo_possible=True), generation("a", kept=False)),
)


class TestViews:
    def test_what_can_be_looked_at_is_now_the_repairs_and_what_was_found(self) -> None:
        assert [item.key for item in states(HISTORY)] == ["now", "b", "a", "found"]
        assert states(History(prefix="/env", generations=())) == ()
        live = text(state_item(states(HISTORY, "b")[1], 40))
        assert live == "+ * 2026-01-02 03:04  live\n  torchvision 0.18.1 -> 0.20.1"

    def test_items_fit_in_their_cells(self) -> None:
        for state in states(HISTORY):
            assert all(len(bare(line)) <= 20 for line in state_item(state, 20))

    def test_a_page_tells_where_one_can_go(self) -> None:
        now, live, old, found = states(HISTORY)
        assert "u brings the environment back" in text(state_page(live, HISTORY, None))
        assert "no tree is kept" in text(state_page(old, HISTORY, None))
        assert "Its tree was removed by prune" in text(state_page(found, HISTORY, None))
        assert "… looking" in text(state_page(now, HISTORY, None))

    def test_what_was_changed_outside_is_on_the_page_of_now(self) -> None:
        change = DistributionChange(name="numpy", before="1.26.4", after="2.1.0")
        same = Difference(prefix="/env", before="b", after=NOW, distributions=(), added=(), removed=(), changed=())
        other = Difference(
            prefix="/env", before="b", after=NOW, distributions=(change,), added=("x.py",), removed=(), changed=()
        )
        now = states(HISTORY)[0]
        assert "✓ nothing" in text(state_page(now, HISTORY, same))
        unknown = msgspec.structs.replace(same, files_compared=False)
        assert "Files are not compared" in text(state_page(now, HISTORY, unknown))
        told = text(state_page(now, HISTORY, other))
        assert "numpy  1.26.4  →  2.1.0" in told
        assert "1 file added" in told

    def test_questions_say_what_will_happen(self) -> None:
        asked = text(undo_question(HISTORY, None, "envmedic undo -p /env"))
        assert "byte for byte" in asked
        assert "torchvision 0.18.1 -> 0.20.1" in asked
        assert "$ envmedic undo -p /env" in asked
        asked = text(prune_question(HISTORY, (kept("b"),), "envmedic prune -p /env --keep 0"))
        assert asked.startswith("1 kept tree will be removed, 2.0 kB freed.")
        assert "no way back" in asked
        asked = text(prune_question(HISTORY, (kept("b"), kept("a", "model.pt")), "envmedic prune -p /env --keep 0"))
        assert asked.startswith("1 kept tree will be removed, 2.0 kB freed.")
        assert "1 kept tree with files that exist nowhere else: asked next." in asked
        asked = text(drop_question((kept("a", *(f"{number}.pt" for number in range(14))),)))
        assert asked.startswith("Remove 1 kept tree with files that exist nowhere else?\n\nOnly in /.envmedic/a/env:\n")
        assert "  and 2 more" in asked


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Case:
    """An environment that was repaired once; the way back and forth leaves it so."""
    case = build(tmp_path_factory.mktemp("history") / "case")
    settings = Settings(stream=EventStream([]), find_links=(str(case.wheels),), offline=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**case.index_variables(), "XDG_CACHE_HOME": str(cache)}.items():
            patch.setenv(name, value)
        record = repair.apply(
            settings,
            case.prefix,
            RepairRequest(playbook="nms-cuda"),
            ApplyOptions(no_gpu=True, offline=True),
            lambda _: True,
        )
    assert getattr(record, "state", None) == "done", record
    return case


@pytest.fixture
def working(repaired: Case, active: Case, monkeypatch: pytest.MonkeyPatch) -> Case:
    """It is active in the user's shell."""
    del active
    monkeypatch.setenv("VIRTUAL_ENV", str(repaired.prefix))
    return repaired


def torchvision(case: Case) -> str:
    return (
        next(case.prefix.glob("lib/python*/site-packages/torchvision-*.dist-info"))
        .name.split("-")[1]
        .removesuffix(".dist")
    )


async def at_history(opened: EnvmedicApp, pilot: Pilot[int]) -> LineView:
    await until(pilot, lambda: bool(opened.session.chosen))
    await pilot.press("h")
    await until(pilot, lambda: isinstance(opened.screen, HistoryScreen))
    await until_shown(pilot, "✓ nothing")
    return opened.screen.query_one("#page", LineView)


def no_jobs(opened: EnvmedicApp) -> Callable[[], bool]:
    return lambda: not opened.jobs.unfinished()


@pytest.mark.long
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_what_was_done_and_what_was_changed_since_is_told(working: Case, size: tuple[int, int]) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        page = await at_history(opened, pilot)
        assert opened.screen.query_one(CommandLine).line == f"envmedic history -p {working.prefix}"
        await pilot.press("down")
        await until(pilot, lambda: "u brings the environment back" in page.text)
        assert f"torchvision {BROKEN} -> {REPAIRED}" in page.text
        await pilot.press("space", "down", "d")
        await until(pilot, lambda: isinstance(opened.screen, TextPanel), "the difference")
        told = opened.screen.query_one(LineView).text
        assert "torchvision" in told
        assert f"$ envmedic diff -p {working.prefix}" in told
        assert told.endswith(" found")

    drive(scenario, size)


def test_undo_and_redo_ask_do_and_tell(working: Case) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: bool(opened.session.chosen))
        await pilot.press("z")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        assert "byte for byte" in shown(opened)
        await pilot.press("n")
        await pilot.pause()
        assert torchvision(working) == REPAIRED
        await pilot.press("z")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        await pilot.press("y")
        await until_shown(pilot, "back as it was before the repair")
        assert torchvision(working) == BROKEN
        await pilot.press("escape")
        await at_history(opened, pilot)
        await pilot.press("z")
        await until(pilot, lambda: isinstance(opened.screen, ErrorPanel))
        assert "There is nothing to undo" in shown(opened)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(opened.screen, HistoryScreen))
        await pilot.press("down", "r")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        await pilot.press("y")
        await until_shown(pilot, "brought back")
        assert torchvision(working) == REPAIRED

    drive(scenario)


def test_what_would_be_lost_is_asked_before_an_undo(working: Case) -> None:
    note = working.prefix / "note.txt"
    note.write_text("mine")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: bool(opened.session.chosen))
        await pilot.press("z")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        await pilot.press("y")
        await until_shown(pilot, "n leaves them in the tree that is kept")
        assert "note.txt" in shown(opened)
        await pilot.press("n")
        await until_shown(pilot, "Changed since, and not in the other tree")
        assert "note.txt" in shown(opened)
        with mock.patch.object(opened, "notify", wraps=opened.notify) as told:
            await pilot.press("n")
            await until(pilot, lambda: told.called and no_jobs(opened)(), "that nothing was done")
        assert told.call_args.args == ("Nothing was done: the environment is as it was",)
        assert not isinstance(opened.screen, ErrorPanel)

    try:
        drive(scenario)
        assert torchvision(working) == REPAIRED
    finally:
        note.unlink()


def test_an_undo_offers_to_carry_new_files_over(working: Case) -> None:
    note = working.prefix / "note.txt"
    note.write_text("mine")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: bool(opened.session.chosen))
        await pilot.press("z")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        await pilot.press("y")
        await until_shown(pilot, "y copies them there (--keep-new)")
        await pilot.press("y")
        await until_shown(pilot, "back as it was before the repair")
        assert "Carried over from the repaired environment: 1 file: note.txt" in shown(opened)

    drive(scenario)
    assert (torchvision(working), note.read_text()) == (BROKEN, "mine")
    # in-use: what the app still asked of this Python when it was left may not have ended yet
    generations.redo(Settings(stream=EventStream([])), working.prefix, None, ("in-use",), lambda _losses: False)
    (kept_note,) = working.prefix.parent.glob(".envmedic/*/env/note.txt")
    for path in (note, kept_note):
        path.unlink()
    assert torchvision(working) == REPAIRED


def test_an_undo_under_running_programs_is_asked_about(working: Case) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: bool(opened.session.chosen))
        with reader(working) as pid:
            for answer in "ny":
                await until(pilot, no_jobs(opened))
                await pilot.press("z")
                await until_shown(pilot, "byte for byte")
                await pilot.press("y")
                await until_shown(pilot, "(--allow in-use)")
                assert str(pid) in shown(opened)
                assert "$ envmedic undo -p " in shown(opened)
                await pilot.press(answer)
            await until(pilot, lambda: isinstance(opened.screen, TextPanel), "what was done")
        assert torchvision(working) == BROKEN
        generations.redo(opened.session.settings, working.prefix, None, ("in-use",), lambda _losses: True)

    drive(scenario)
    assert torchvision(working) == REPAIRED


def test_files_that_exist_nowhere_else_are_asked_about_separately(working: Case) -> None:
    (tree,) = working.prefix.parent.glob(".envmedic/*/env")
    only = tree / "note.txt"
    only.write_text("mine")

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await at_history(opened, pilot)
        await pilot.press("down")
        await until_shown(pilot, "Files that exist nowhere else")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(opened.screen, Prompt))
        await pilot.press("0", "enter")
        await until_shown(pilot, "1 kept tree with files that exist nowhere else: asked next.")
        await pilot.press("y")
        await until_shown(pilot, "y removes them for good (--drop-new)")
        assert "note.txt" in shown(opened)
        with mock.patch.object(opened, "notify", wraps=opened.notify) as told:
            await pilot.press("n")
            await until(pilot, lambda: told.called and no_jobs(opened)(), "that the tree stays")
        assert told.call_args.args == ("Trees with files that exist nowhere else stay",)

    try:
        drive(scenario)
        assert only.read_text() == "mine"
    finally:
        only.unlink()


def test_prune_says_what_goes_before(working: Case) -> None:
    store = working.prefix.parent / ".envmedic"

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await at_history(opened, pilot)
        await pilot.press("p")
        await until(pilot, lambda: isinstance(opened.screen, Prompt))
        await pilot.press("m", "enter")
        await until_shown(pilot, "is no number of trees")
        await pilot.press("escape", "p")
        await until(pilot, lambda: isinstance(opened.screen, Prompt))
        await pilot.press("0", "enter")
        await until_shown(pilot, "1 kept tree will be removed")
        assert opened.screen.query_one(LineView).text.endswith("--keep 0")
        await pilot.press("n")
        assert list(store.glob("*/env"))
        await pilot.press("p")
        await until(pilot, lambda: isinstance(opened.screen, Prompt))
        await pilot.press("0", "enter")
        await until_shown(pilot, "1 kept tree will be removed")
        await pilot.press("y")
        await until(pilot, lambda: not list(store.glob("*/env")))
        await until(pilot, no_jobs(opened))
        await pilot.press("u")
        await until_shown(pilot, "was pruned")

    drive(scenario)
