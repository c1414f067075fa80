"""The App of the terminal UI, which owns its state and its jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

from msgspec.structs import replace
from textual import events
from textual.binding import Binding, BindingType
from textual.signal import Signal

from envmedic.api.context.settings import Settings
from envmedic.errors import EnvmedicError, ExitCode
from envmedic.render.text import Line, bare, line
from envmedic.tui.appearance import ThemedApp
from envmedic.tui.early import EarlyInput, Typed
from envmedic.tui.effects.base import LIMITS, Effects
from envmedic.tui.effects.jobs import JobEnded, JobEvents, Jobs, JobsChanged
from envmedic.tui.effects.repair import Repairs
from envmedic.tui.screens.home import HomeScreen
from envmedic.tui.screens.watch import WatchScreen
from envmedic.tui.session import AppState, no_plan, not_chosen

if TYPE_CHECKING:
    from textual.command import Provider

    from envmedic.model.findings import Finding
    from envmedic.model.ports import ApplyOptions
    from envmedic.render.progress.repair_state import Repair


ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals that ask the UI to end."""


def _commands() -> type[Provider]:
    from envmedic.tui.palette import Commands

    return Commands


class EnvmedicApp(ThemedApp):
    """Screens over the session, which effects update."""

    TITLE = "envmedic"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}
    # `priority`: these work in input lines too, where other keys are text.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("ctrl+p", "command_palette", "Commands", priority=True),
        Binding("g", "show_repair", "The repair"),
        Binding("z", "undo", "Undo", show=False),
        Binding("comma", "settings", "Settings", key_display=",", show=False),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+q", "quit", "Quit", priority=True, show=False),
    ]
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, settings: Settings, options: ApplyOptions, place: str = "") -> None:
        """`place` is an environment to begin with."""
        super().__init__()
        self.early = EarlyInput(self._can_take_keys, self._give_on, self.set_timer)
        self._place = place
        self._given_on: events.Event | None = None
        self.jobs = Jobs(self, LIMITS)
        self.effects = Effects(self)
        self.repairs = Repairs(self)
        self.changed: Signal[AppState] = Signal(self, "session")
        self.repairing: Signal[Repair] = Signal(self, "repair")
        self._leaving = False
        self.moved: Signal[str] = Signal(self, "moved")
        """The environment of that prefix is of another generation now, or trees of it were removed."""
        self.failure: Exception | None = None
        """A bug of the UI itself, which ended it."""
        self._session = replace(AppState(settings, options), last=self.layout.environment)

    @property
    def session(self) -> AppState:
        """What is known now."""
        return self._session

    def update(self, session: AppState) -> None:
        """Show what is known from now on."""
        self._session = session
        self.changed.publish(session)

    def layout_changed(self) -> None:
        """Draw for another layout."""
        self.changed.publish(self._session)

    # Textual is not thread-safe: code of jobs changes the screen only through this.
    def later(self, call: Callable[[], object]) -> None:
        """Do something on the App's own thread; may be called from any."""
        self.call_later(call)

    def get_default_screen(self) -> HomeScreen:
        """Home."""
        return HomeScreen()

    def on_ready(self) -> None:
        """Look around as soon as the first frame is drawn."""
        self.call_after_refresh(self.effects.look_around)
        if self._place:
            self.effects.choose_by_path(self._place)
        if self.unreadable is not None:
            self.show_error(self.unreadable)

    def on_load(self) -> None:
        """Handle the signals that ask the UI to end, except ignored ones, as under nohup."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python allows signal handlers in the main thread only
        loop = asyncio.get_running_loop()
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self.hung_up)

    def on_job_events(self, message: JobEvents) -> None:
        """A batch of events, for who started the job."""
        message.take(message.events)

    def on_job_ended(self, message: JobEnded) -> None:
        """A result or an error, for who started the job."""
        message.settle()

    def on_jobs_changed(self, _message: JobsChanged) -> None:
        """Redraw the list of running jobs in the title bar."""
        self.changed.publish(self._session)

    # keys before there is a screen for them

    async def on_event(self, event: events.Event) -> None:
        """Let keys and pastes wait for the screen that they are for."""
        new = isinstance(event, Typed) and not event.is_forwarded and event is not self._given_on
        if new and self.early.holds(cast("Typed", event)):
            return
        await super().on_event(event)

    def _can_take_keys(self) -> bool:
        """Whether the widgets of the screen are there; they come a moment after it."""
        return bool(self.screen_stack) and self.screen._is_mounted and self.screen.is_attached  # noqa: SLF001  # nothing public says so

    def _give_on(self, event: Typed) -> None:
        self._given_on = event
        self.post_message(event)

    # panels

    def action_help(self) -> None:
        """Help for what has the focus."""
        from envmedic.tui.panels.base import Panel
        from envmedic.tui.panels.help import help_panel

        if not isinstance(self.screen, Panel):
            self.push_screen(help_panel(self.screen))

    def open_finding(self, finding: Finding) -> None:
        """The screen of a finding."""
        from envmedic.tui.screens.finding import FindingScreen

        self.push_screen(FindingScreen(finding))

    def open_plan(self, finding: Finding) -> None:
        """The screen of the plan that repairs a finding, where an environment is chosen and a playbook repairs it."""
        refusal, prefix = no_plan(finding, self.session), self.session.chosen
        if refusal is not None:
            self.show_error(refusal)
        elif self.effects.merely_found(prefix):
            from envmedic.render.pages.starting import merely_found_question

            self.ask("Is this environment yours?", merely_found_question(prefix), partial(self._taken, finding, prefix))
        else:
            self._open_plan(finding)

    def _taken(self, finding: Finding, prefix: str, yes: bool) -> None:
        """Plan for an environment that was merely found, once the user takes it."""
        if yes and prefix == self.session.chosen:
            self.effects.choose(prefix)
            self._open_plan(finding)

    def _open_plan(self, finding: Finding) -> None:
        from envmedic.tui.screens.plan import PlanScreen

        self.push_screen(PlanScreen(finding))

    def show_repair(self, repair: Repair) -> None:
        """Publish the progress of the repair, many times a second: only screens that show it are notified."""
        self._session = replace(self._session, repair=repair)
        self.repairing.publish(repair)

    def repair_asks(self, _repair: Repair) -> None:
        """Ask the question on the screen of the repair; on other screens, notify the user that it waits."""
        from envmedic.tui.screens.repair import RepairScreen

        if isinstance(self.screen, RepairScreen):
            self.screen.ask()
        else:
            self.notify("It waits for your answer: g", title="The repair asks", timeout=20, markup=False)

    def repair_ended(self, repair: Repair) -> None:
        """Show the result on the screen of the repair; on other screens, notify the user."""
        from envmedic.tui.panels.base import Panel
        from envmedic.tui.screens.repair import RepairScreen

        if not isinstance(repair.result, EnvmedicError | None) and repair.result.environment != "unchanged":
            self.moved.publish(repair.prefix)
        # the UI is closing: `farewell` reports the result in the shell
        if self._leaving:
            return
        watched = [screen for screen in self.screen_stack if isinstance(screen, RepairScreen)]
        while watched and isinstance(self.screen, Panel) and watched[-1] is self.screen_stack[-2]:
            self.pop_screen()  # a question about what is over
        if watched and self.screen is watched[-1]:
            self.show_result()
        else:
            self.notify(_ended(repair), title="The repair has ended: g", timeout=20, markup=False)

    def action_show_repair(self) -> None:
        """The repair, or how it ended."""
        repair = self._session.repair
        if repair is not None:
            (self.show_running_repair if repair.running else self.show_result)()

    def show_running_repair(self) -> None:
        """The screen of the repair with its log, once."""
        from envmedic.tui.screens.repair import RepairScreen

        if not isinstance(self.screen, RepairScreen):
            self.push_screen(RepairScreen())

    def show_result(self) -> None:
        """Show the result in the place of the repair's screen."""
        from envmedic.tui.screens.repair import RepairScreen
        from envmedic.tui.screens.result import ResultScreen

        # Opened from the result to show the log: the result is still below.
        below = self.screen_stack[-2] if len(self.screen_stack) > 1 else None
        if isinstance(self.screen, RepairScreen) and isinstance(below, ResultScreen):
            self.pop_screen()
        elif isinstance(self.screen, RepairScreen):
            self.switch_screen(ResultScreen())
        elif not isinstance(self.screen, ResultScreen):
            self.push_screen(ResultScreen())

    def get_key_display(self, binding: Binding) -> str:
        """The key as keyboards show it; by its name where the terminal's encoding lacks that sign."""
        sign = super().get_key_display(binding)
        try:
            sign.encode(getattr(sys.__stdout__, "encoding", None) or "utf-8")  # sys.stdout is Textual's now
        except UnicodeEncodeError:
            return binding.key.capitalize()
        return sign

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that would do nothing are not shown: the way to a repair that there is not, and work without an environment."""
        if action == "show_repair":
            return self._session.repair is not None and not getattr(self.screen, "SHOWS_REPAIR", False)
        if action in {"run_command", "history"}:
            return bool(self._session.chosen)
        return super().check_action(action, parameters)

    def ask(self, title: str, lines: Sequence[Line], then: Callable[[bool], None]) -> None:
        """Ask for a yes or no; closing the panel is no."""
        from envmedic.tui.panels.base import QuestionPanel

        self.push_screen(QuestionPanel(title, lines), lambda yes: then(bool(yes)))

    def action_history(self) -> None:
        """The generations of the chosen environment."""
        from envmedic.tui.screens.history import HistoryScreen

        if not self.session.chosen:
            self.show_error(not_chosen())
        elif not isinstance(self.screen, HistoryScreen):
            self.push_screen(HistoryScreen(self.session.chosen))

    def action_playbooks(self) -> None:
        """Open the playbooks."""
        from envmedic.tui.screens.playbooks import PlaybooksScreen

        if not isinstance(self.screen, PlaybooksScreen):
            self.push_screen(PlaybooksScreen())

    def action_undo(self) -> None:
        """Bring the chosen environment back as it was before the last repair; asks first."""
        from envmedic.tui.effects.undo_redo import UndoRedo
        from envmedic.tui.panels.base import Panel

        if isinstance(self.screen, Panel):
            return
        if self.session.chosen:
            UndoRedo(self, self.session.chosen).undo()
        else:
            self.show_error(not_chosen())

    def action_settings(self) -> None:
        """Open the settings."""
        from envmedic.tui.panels.base import Panel
        from envmedic.tui.panels.settings import SettingsPanel

        if not isinstance(self.screen, Panel):
            self.push_screen(SettingsPanel())

    def action_themes(self) -> None:
        """Choose a theme, with a preview."""
        from envmedic.tui.panels.settings import ThemePanel

        self.push_screen(ThemePanel())

    def action_report(self) -> None:
        """Ask for a directory, and write a report of the last repair of the chosen environment there."""
        if not self.session.chosen:
            self.show_error(not_chosen())
            return
        text = "The directory for Markdown, a card (SVG) and a page (HTML). The Markdown is copied, too."
        self._ask_path("Write a report", text, self._report, value=os.getcwd())  # noqa: PTH109  # a text

    def _report(self, folder: str | None) -> None:
        if folder:
            self.effects.report(self.session.chosen, folder, self._reported)

    def _reported(self, written: tuple[tuple[str, ...], str]) -> None:
        paths, text = written
        self.copy_to_clipboard(text)
        self.notify("\n".join(paths), title="Written; the Markdown was copied", markup=False)

    def action_open_log(self) -> None:
        """Ask for a file with an error text."""
        text = "The file with the error text. The right arrow key takes what is suggested."
        self._ask_path("Open a log", text, self._opened)

    def _opened(self, path: str | None) -> None:
        if path:
            self.effects.open_log(path)
            if isinstance(self.screen, HomeScreen):
                self.screen.show_findings()

    def action_named_environment(self) -> None:
        """Ask for an environment that is not listed."""
        self._ask_path("Another environment", "The directory of an environment, or its interpreter.", self._named)

    def _named(self, path: str | None) -> None:
        if path:
            self.effects.choose_by_path(path)

    def _ask_path(self, title: str, text: str, then: Callable[[str | None], None], *, value: str = "") -> None:
        from envmedic.tui.panels.base import Prompt
        from envmedic.tui.widgets.paths import PathSuggester

        self.push_screen(Prompt(title, [line(text)], suggester=PathSuggester(), value=value), then)

    def action_run_command(self) -> None:
        """Ask for a command to run in the chosen environment."""
        from envmedic.tui.panels.base import Prompt

        where = self.session.chosen or "no environment is chosen"
        text = [
            line(f"Runs in {where}. Files that it writes are kept; it can ask you nothing."),
            line("When it fails, it is diagnosed.", "dim"),
        ]
        self.push_screen(Prompt("Run a command and watch it", text), self._run)

    def _run(self, command: str | None) -> None:
        if command:
            self.push_screen(WatchScreen(command))

    # the end

    async def action_quit(self) -> None:
        """Leave; ask first where something is being changed."""
        jobs = self.jobs.unfinished()
        if not jobs:
            self._quit(yes=True)
            return
        from envmedic.tui.panels.base import QuestionPanel

        text = [line(f"envmedic is {jobs[0].title}."), line("Quitting stops it first; nothing is left half done.")]
        self.push_screen(QuestionPanel("Quit?", text), self._quit)

    def _quit(self, yes: bool | None) -> None:
        if yes:
            self._leave(ExitCode.OK)

    # Without questions: nobody may be left to answer them.
    def hung_up(self) -> None:
        """End the UI without questions (a signal, a lost terminal), after the jobs that change something."""
        self._leave(ExitCode.INTERRUPTED)

    def _leave(self, code: ExitCode) -> None:
        if not self._leaving:
            self._leaving = True
            self.run_worker(self._end(code))

    async def _end(self, code: ExitCode) -> None:
        unfinished = self.jobs.unfinished()
        repair = self._session.repair
        if repair is not None and repair.running:
            self.repairs.stop(leaving=True)
        if unfinished:
            # shown until the App ends, however long that takes
            self.notify(f"Stopping: {unfinished[0].title}", timeout=3600, markup=False)
        await self.jobs.stop()
        self.call_later(self.exit, int(code))  # after what the jobs have brought

    def farewell(self) -> str:
        """The result of a repair that was stopped because the user left the UI; empty without one."""
        repair = self._session.repair
        if not self._leaving or repair is None or repair.running or not repair.left:
            return ""
        return f"{repair.prefix}: {_ended(repair)}"

    def _handle_exception(self, error: Exception) -> None:
        """A bug ends the UI; `run` reports it as every command does, instead of Textual's own traceback."""
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        """Nothing here: see above."""
        self._exit_renderables.clear()


def run(settings: Settings, options: ApplyOptions, place: str) -> int:
    """Open the terminal UI, on the environment at `place` if there is one, and return the exit code.

    A bug of it is raised.
    """
    app = EnvmedicApp(settings, options, place)
    code = app.run()
    told = app.farewell()
    if told:
        # the UI drew on the alternate screen, which is gone now
        sys.stderr.write(f"{told}\n")
    if app.failure is not None:
        raise app.failure
    return code or 0


def _ended(repair: Repair) -> str:
    from envmedic.render.progress.result import verdict_line  # no first frame needs it

    return bare(verdict_line(repair))
