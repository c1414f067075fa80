"""Every screen of the terminal UI, as it shows one recorded repair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input

from envmedic.api.context.settings import Settings
from envmedic.api.knowledge.explanation import explain
from envmedic.api.planning.plan_choice import PlanChoices
from envmedic.api.playbooks import PlaybookSurvey
from envmedic.api.repair import Prepared
from envmedic.errors import EnvmedicError, InstallerError, PreflightError
from envmedic.model.answers.environments import FoundEnvironment
from envmedic.model.events import CheckFinished, Event, EventStream
from envmedic.model.findings import Finding
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import ApplyOptions, Exchange, Means
from envmedic.playbook.schema.loader import load_file, shipped_directory
from envmedic.render.pages.playbooks import Book
from envmedic.render.progress.repair import log_lines
from envmedic.render.progress.repair_state import Repair
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.effects.base import Effects
from envmedic.tui.effects.jobs import BackgroundJob
from envmedic.tui.panels.base import QuestionPanel, TextPanel
from envmedic.tui.panels.choosing import ChoicePanel
from envmedic.tui.panels.starting import StartPanel
from envmedic.tui.screens.history import HistoryScreen
from envmedic.tui.screens.plan import PlanScreen
from envmedic.tui.screens.playbooks import PlaybooksScreen
from envmedic.tui.screens.repair import RepairScreen
from envmedic.tui.screens.result import ResultScreen
from envmedic.tui.screens.watch import WatchScreen
from envmedic.tui.session import Known, TextSource
from envmedic.tui.widgets.log_view import LogView
from envmedic.tui.widgets.paste import DEBOUNCE_S, PasteBox
from tests.tui.recording import HOME, LOG, Recorded
from tests.tui.support import shown, until

T = TypeVar("T")
Scene = Callable[["Still", Pilot[int]], Awaitable[None]]
PREFIX = f"{HOME}/env"
OTHERS = (
    FoundEnvironment(
        prefix="/opt/conda/envs/日本語-e\u0301tude",
        name="日本語-e\u0301tude",
        kind="conda",
        found_by="envs_dirs",
        python="3.12.4",
    ),
    FoundEnvironment(prefix="/home/me/old/.venv", kind="uv", found_by="project", python="3.10.14"),
)
BAD = Book(
    "/home/me/.config/envmedic/playbooks/mine.yaml",
    mistakes=("/home/me/.config/envmedic/playbooks/mine.yaml:3:8: fault: 'torchvison-ops' is not one of the values",),
)
FEW = ("duplicate-install", "nms-cuda", "numpy-abi")


@cache
def _shipped() -> tuple[LoadedPlaybook, ...]:
    """A few playbooks, as installed."""
    loaded = (load_file(shipped_directory() / f"{name}.yaml", "shipped") for name in FEW)
    return tuple(
        msgspec.structs.replace(item, path=f"/opt/envmedic/playbooks/{item.playbook.id}.yaml") for item in loaded
    )


class Answers(Effects):
    """Effects whose answers are known before."""

    def __init__(self, still: Still) -> None:
        super().__init__(still)
        self._still = still

    def look_around(self) -> None:
        """What is there is known."""

    def job(
        self,
        kind: str,
        title: str,
        work: Callable[[Settings, BackgroundJob[T]], T],
        then: Callable[[T], None],
        failed: Callable[[EnvmedicError], None] | None = None,
        **how: Any,
    ) -> BackgroundJob[T]:
        """Hand the answer over, after what the App does now; what only reads texts of envmedic's own is really done."""
        del how
        settings = self._still.session.settings
        job = BackgroundJob(kind, title, lambda job: work(settings, job), then, failed or self._show)
        known = self._still.answers.get(kind)
        if kind in self._still.answers:
            self._still.call_later(then, cast("T", known))
        elif kind == "explain":
            page = explain(settings, title.removeprefix("explaining "), _shipped())
            self._still.call_later(then, cast("T", page))
        return job


class Still(EnvmedicApp):
    """The app, which shows what was recorded and does nothing by itself."""

    def __init__(self, recorded: Recorded) -> None:
        settings = Settings(stream=EventStream([]), find_links=("wheels",), offline=True)
        super().__init__(settings, ApplyOptions(no_gpu=True))
        self.animation_level = "none"
        self.recorded = recorded
        self.effects = Answers(self)
        prepared = Prepared(recorded.plan, settings, cast("PlanChoices", None))
        means = Means(clone="link", staging="namespace", exchange="exchange", clone_bytes=recorded.plan.disk_bytes)
        self.answers: dict[str, object] = {
            "plan": prepared,
            "means": means,
            "history": recorded.history,
            "diff": recorded.outside,
            "playbooks": (PlaybookSurvey(_shipped(), ()), ()),
            "excerpt": dict(enumerate(LOG.read_text().splitlines(), start=1)),
        }
        found = FoundEnvironment(prefix=PREFIX, kind="uv", active=True, found_by="VIRTUAL_ENV", python="3.11.7")
        left, failed = OTHERS
        error = InstallerError("It cannot be read", cause="permission denied", hint="Look who owns it")
        self.update(
            replace(
                self.session,
                searching=False,
                environments=(
                    Known(found, "read", recorded.alone),
                    Known(left, "reading"),
                    Known(failed, "failed", error=error),
                ),
                chosen=PREFIX,
                host=recorded.alone.facts.host if recorded.alone.facts is not None else None,
            )
        )

    @property
    def finding(self) -> Finding:
        """What is wrong."""
        return self.recorded.joined.findings[0]

    def repair(self, *, ended: bool) -> Repair:
        """The repair until the first half of its checks has ended, or until its end."""
        events = self.recorded.events
        checks = [number for number, event in enumerate(events) if _proves(event)]
        events = events if ended else events[: checks[len(checks) // 2] + 1]
        line = f"envmedic apply --log {HOME}/error.log --no-gpu -p {PREFIX}"
        repair = Repair(PREFIX, self.recorded.plan, line, events[0].time).after(events)
        repair.log.add(log_lines(list(events)))
        return repair

    def now(self) -> float:
        """A moment of the repair."""
        return self.recorded.events[0].time + 4.2


def _proves(event: Event) -> bool:
    return isinstance(event.data, CheckFinished) and event.data.phase == "after"


async def _home(still: Still, pilot: Pilot[int]) -> None:
    del still
    await pilot.pause()


async def _text(still: Still, pilot: Pilot[int]) -> None:
    text = LOG.read_text()
    source = TextSource("paste", f"{HOME}/error.log", lines=text.count("\n"))
    joined = still.recorded.joined
    still.screen.query_one(PasteBox).put(text)
    still.update(replace(still.session, source=replace(source, alone=joined, joined=joined, prefix=PREFIX)))
    await pilot.pause(DEBOUNCE_S * 2)  # what is given then is no news


async def _finding(still: Still, pilot: Pilot[int]) -> None:
    await _text(still, pilot)
    still.open_finding(still.finding)


async def _plan(still: Still, pilot: Pilot[int]) -> None:
    await _text(still, pilot)
    still.open_plan(still.finding)
    await until(pilot, lambda: isinstance(still.screen, PlanScreen) and still.screen._means is not None, "the plan")


async def _ways(still: Still, pilot: Pilot[int]) -> None:
    await _plan(still, pilot)
    await pilot.press("a")
    await until(pilot, lambda: isinstance(still.screen, ChoicePanel))


async def _start(still: Still, pilot: Pilot[int]) -> None:
    await _plan(still, pilot)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(still.screen, StartPanel))


async def _protected(still: Still, pilot: Pilot[int]) -> None:
    error = PreflightError(
        f"{PREFIX} is protected",
        cause="conda-meta/frozen marks it as frozen: the class of 2026 counts on it",
        hint="Use --allow frozen if you mean it",
    )
    error.allow = "frozen"
    await _plan(still, pilot)
    cast("PlanScreen", still.screen)._tried(error)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(still.screen, QuestionPanel))


async def _repair(still: Still, pilot: Pilot[int]) -> None:
    del pilot
    still.update(replace(still.session, repair=still.repair(ended=False)))
    still.push_screen(RepairScreen())


async def _asks(still: Still, pilot: Pilot[int]) -> None:
    del pilot
    asked = Exchange(still.recorded.record, f"{HOME}/.envmedic/repaired/env", ())
    still.update(replace(still.session, repair=still.repair(ended=False).asking(asked, still.now())))
    still.push_screen(RepairScreen())


async def _result(still: Still, pilot: Pilot[int]) -> None:
    del pilot
    repair = still.repair(ended=True)
    ended = repair.ending(still.recorded.record, still.recorded.events[-1].time)
    still.update(replace(still.session, repair=ended))
    still.push_screen(ResultScreen())


async def _locks(still: Still, pilot: Pilot[int]) -> None:
    await _result(still, pilot)
    await pilot.pause()
    await pilot.press("l")
    await pilot.pause()
    still.screen.query_one(Input).value = HOME


async def _history(still: Still, pilot: Pilot[int]) -> None:
    await pilot.press("h")
    await until(pilot, lambda: isinstance(still.screen, HistoryScreen) and still.screen._outside is not None)


async def _generation(still: Still, pilot: Pilot[int]) -> None:
    await _history(still, pilot)
    await pilot.press("down")


async def _undo(still: Still, pilot: Pilot[int]) -> None:
    await _history(still, pilot)
    await pilot.press("u")
    await until(pilot, lambda: isinstance(still.screen, QuestionPanel))


async def _difference(still: Still, pilot: Pilot[int]) -> None:
    await _history(still, pilot)
    await pilot.press("d")
    await until(pilot, lambda: isinstance(still.screen, TextPanel))


async def _playbooks(still: Still, pilot: Pilot[int]) -> None:
    await pilot.press("b")
    await until(pilot, lambda: isinstance(still.screen, PlaybooksScreen) and bool(still.screen.page.text))


async def _mistakes(still: Still, pilot: Pilot[int]) -> None:
    await _playbooks(still, pilot)
    screen = still.screen
    assert isinstance(screen, PlaybooksScreen)
    still.answers["excerpt"] = ("id: mine", "title: ours", "fault: torchvison-ops")
    screen._surveyed((BAD, *screen._books), ())
    screen.choices.highlight(BAD.path)
    await until(pilot, lambda: "1 mistake" in screen.page.text)


async def _watch(still: Still, pilot: Pilot[int]) -> None:
    screen = WatchScreen("python train.py")
    still.push_screen(screen)
    await until(pilot, lambda: screen.standing)
    lines = [*LOG.read_text().splitlines(), "a log \x1b[31mwith escapes\x1b[0m, [bold]markup[/bold] and 日本語"]
    screen.query_one(LogView).add(lines)
    screen._ended(still.recorded.joined)


async def _help(still: Still, pilot: Pilot[int]) -> None:
    del still
    await pilot.press("question_mark")


async def _error(still: Still, pilot: Pilot[int]) -> None:
    del pilot
    error = InstallerError("uv could not resolve", cause="no wheel fits", hint="Try another way", details=("line",))
    still.show_error(error)


async def _prompt(still: Still, pilot: Pilot[int]) -> None:
    del still
    await pilot.press("o")


async def _palette(still: Still, pilot: Pilot[int]) -> None:
    await pilot.press("ctrl+p")
    await until(pilot, lambda: "Open a log file" in shown(still))


SCENES: dict[str, Scene] = {
    "home": _home,
    "home-text": _text,
    "finding": _finding,
    "plan": _plan,
    "ways": _ways,
    "protected": _protected,
    "start": _start,
    "repair": _repair,
    "asks": _asks,
    "result": _result,
    "locks": _locks,
    "history": _history,
    "generation": _generation,
    "undo": _undo,
    "difference": _difference,
    "playbooks": _playbooks,
    "mistakes": _mistakes,
    "watch": _watch,
    "help": _help,
    "error": _error,
    "prompt": _prompt,
    "palette": _palette,
}
"""Every screen and panel."""
