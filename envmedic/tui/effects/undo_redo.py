"""Undo, redo and prune as they go on the screen: what will happen is asked first, what happened is shown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from envmedic.errors import EnvironmentBusy, EnvmedicError, InputError, Interrupted, RepairDeclined
from envmedic.model.record import Generation, History, KeptTree, Record
from envmedic.render.documents.record import record_lines
from envmedic.render.pages.history import (
    busy_question,
    keep_question,
    live_of,
    prune_question,
    redo_question,
    undo_question,
)
from envmedic.tui.command_lines import prune_line, travel_line
from envmedic.tui.effects.history import HistoryEffects, Way
from envmedic.tui.panels.base import Prompt, TextPanel

if TYPE_CHECKING:
    from envmedic.model.registries.modes import AllowName
    from envmedic.tui.app import EnvmedicApp


class UndoRedo:
    """The ways between the generations of one environment."""

    def __init__(self, app: EnvmedicApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix
        self.effects = HistoryEffects(app.effects, app, prefix)

    def undo(self, to: str | None = None) -> None:
        """Ask, then go back: to the state from before the live generation, or to the one named."""
        if self._free():
            self.effects.history(partial(self._ask_undo, to))

    def _ask_undo(self, to: str | None, history: History) -> None:
        live = live_of(history)
        if live is None or not live.kept:
            self._app.show_error(
                InputError(
                    f"There is nothing to undo for {self._prefix}",
                    cause="No repair of envmedic is in place there"
                    if live is None
                    else "The tree from before it was pruned",
                    hint="The history (h) shows what was done, and what is kept",
                )
            )
            return
        command = travel_line("undo", self._prefix, to)
        self._app.ask("Undo?", undo_question(history, to, command), partial(self._go, "undo", to))

    def redo(self, history: History, item: Generation) -> None:
        """Ask, then bring an undone repair back."""
        if self._free():
            command = travel_line("redo", self._prefix, item.transaction)
            question = redo_question(history, item, command)
            self._app.ask("Redo?", question, partial(self._go, "redo", item.transaction))

    def _go(self, way: str, to: str | None, yes: bool) -> None:
        # asked again: another job may have begun while the question was on the screen
        if yes and self._free():
            self._travel("undo" if way == "undo" else "redo", to, self._app.session.options.allow)

    def _travel(self, way: Way, to: str | None, allow: tuple[AllowName, ...]) -> None:
        self.effects.travel(way, to, allow, self._gone, partial(self._not_gone, way, to, allow))

    def _not_gone(self, way: Way, to: str | None, allow: tuple[AllowName, ...], error: EnvmedicError) -> None:
        """Ask again where running programs are in the way; a no, or a stop, is no error."""
        if isinstance(error, RepairDeclined | Interrupted):
            self._app.notify("Nothing was done: the environment is as it was", markup=False)
        # once: a second refusal after the user has agreed is an error
        elif error.allow == "in-use" and "in-use" not in allow:
            command = travel_line(way, self._prefix, to, "in-use")
            again = partial(self._all_the_same, way, to, (*allow, "in-use"))
            self._app.ask("In use", busy_question(error, command), again)
        else:
            self._app.show_error(error)

    def _all_the_same(self, way: Way, to: str | None, allow: tuple[AllowName, ...], yes: bool) -> None:
        if yes and self._free():
            self._travel(way, to, allow)

    def _gone(self, record: Record) -> None:
        title = "Brought back" if record.failure is None else "Not done"
        # the whole record: a smoke test may have failed after the trees were swapped
        self._app.push_screen(TextPanel(title, record_lines(record, moved=True)))
        self._changed()

    def _changed(self) -> None:
        # its facts are those of the other tree now
        if self._app.session.known(self._prefix) is not None:
            self._app.effects.read(self._prefix)
        self._app.moved.publish(self._prefix)

    def prune(self, history: History) -> None:
        """Ask how many kept trees stay, then whether the others may go."""
        if not any(item.kept for item in history.generations):
            self._app.show_error(InputError("No tree is kept here", hint="There is nothing to remove"))
        elif self._free():
            self._app.push_screen(Prompt("Remove kept trees", keep_question(history)), partial(self._kept, history))

    def _kept(self, history: History, text: str | None) -> None:
        if text is None:
            return
        if not text.isdecimal():
            self._app.show_error(InputError(f"{text!r} is no number of trees", hint="Type 0, 1, 2 or more"))
            return
        # the trees are named in the question, so that a yes is about exactly these
        self.effects.surplus(int(text), partial(self._ask_prune, history, int(text)))

    def _ask_prune(self, history: History, keep: int, trees: tuple[KeptTree, ...]) -> None:
        if not trees:
            self._app.notify("No more trees are kept than that", markup=False)
            return
        question = prune_question(history, trees, prune_line(self._prefix, keep))
        self._app.ask("Remove them?", question, partial(self._prune, keep))

    def _prune(self, keep: int, yes: bool) -> None:
        if yes and self._free():
            self.effects.prune(keep, self._pruned)

    def _pruned(self, history: History) -> None:
        stay = any(item.only_copies for item in history.generations)
        told = "Trees with files that exist nowhere else stay" if stay else "The trees were removed"
        self._app.notify(told, markup=False)
        self._app.moved.publish(self._prefix)

    # The lock of the environment would refuse too, but only after the questions.
    def _free(self) -> bool:
        """Whether nothing else is being changed; otherwise an error is shown."""
        running = self._app.jobs.unfinished()
        if running:
            hint = "Wait until it has ended, or stop it"
            self._app.show_error(EnvironmentBusy(f"envmedic is {running[0].title}", hint=hint))
        return not running
