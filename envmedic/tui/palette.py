"""The command palette: everything that keys do, by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.types import IgnoreReturnCallbackType

from envmedic.tui.themes import THEMES

if TYPE_CHECKING:
    from envmedic.tui.app import EnvmedicApp


class Command(NamedTuple):
    """A line of the palette."""

    title: str
    help: str
    run: IgnoreReturnCallbackType


class Commands(Provider):
    """Commands of the app."""

    @property
    def _envmedic(self) -> EnvmedicApp:
        return cast("EnvmedicApp", self.app)

    def _all(self) -> Iterator[Command]:
        app = self._envmedic
        yield Command("Open a log file", "Match the error text in it", app.action_open_log)
        yield Command("Run a command and watch it", "It is diagnosed when it fails", app.action_run_command)
        yield Command("Choose an environment by its directory", "One that is not listed", app.action_named_environment)
        yield Command("History", "Repairs of the environment, what is kept, and the ways back", app.action_history)
        yield Command("Playbooks", "What envmedic knows of faults and repairs, and your own", app.action_playbooks)
        if app.session.repair is not None:
            yield Command("The repair", "The one that runs, or how the last one ended", app.action_show_repair)
        yield Command("Undo the last repair", "It is asked first", app.action_undo)
        yield Command("Look around again", "Find and read environments anew", app.effects.look_around)
        yield Command("Help", "For the part that has the focus", app.action_help)
        for theme in THEMES:
            yield Command(
                f"Theme: {theme.name}", "What it looks like, also in later runs", partial(app.choose_theme, theme.name)
            )
        for known in app.session.environments:
            title = f"Work on {known.found.name or known.prefix}"
            yield Command(title, known.prefix, partial(app.effects.choose, known.prefix))
        yield Command("Quit", "Leave envmedic", app.action_quit)

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for command in self._all():
            yield DiscoveryHit(command.title, command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        """Commands that match the typed text."""
        matcher = self.matcher(query)
        for command in self._all():
            # titles alone: help texts share too many words
            score = matcher.match(command.title)
            if score > 0:
                yield Hit(score, matcher.highlight(command.title), command.run, help=command.help)
