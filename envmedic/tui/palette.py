"""The command palette: everything that keys do, by name, with the keys; those of the screen first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.types import IgnoreReturnCallbackType

from envmedic.tui.panels.help import moves_about

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

    from envmedic.tui.app import EnvmedicApp


class Command(NamedTuple):
    """A line of the palette."""

    title: str
    help: str
    run: IgnoreReturnCallbackType
    key: str = ""
    """The key that does the same."""

    @property
    def text(self) -> str:
        """What is shown below the title."""
        return f"{self.key}  ·  {self.help}" if self.key and self.help else self.key or self.help


class Commands(Provider):
    """Commands of the screen and of the app."""

    @property
    def _envmedic(self) -> EnvmedicApp:
        return cast("EnvmedicApp", self.app)

    def _all(self) -> Iterator[Command]:
        bindings = {_action(item): item for item in self.screen.active_bindings.values() if item.enabled}
        titled = list(self._titled())
        known = {action for action, _ in titled}
        for action, item in bindings.items():
            if (
                action not in known
                and item.binding.description
                and not moves_about(item.binding)
                and not item.binding.system
            ):
                # the action is the screen's, or that of the part which has the focus
                run = partial(self.app.run_action, item.binding.action, item.node)
                yield Command(item.binding.description, "On this screen", run, self._key(item))
        for action, command in titled:
            yield command._replace(key=self._key(bindings[action]) if action in bindings else "")
        app = self._envmedic
        for known_one in app.session.environments:
            title = f"Work on {known_one.found.name or known_one.prefix}"
            yield Command(title, known_one.prefix, partial(app.effects.choose, known_one.prefix))

    def _titled(self) -> Iterator[tuple[str, Command]]:
        """Commands of the app with a title of their own, by their action."""
        app = self._envmedic
        yield "open_log", Command("Open a log file", "Diagnose the error text in it", app.action_open_log)
        yield "run_command", Command("Run a command and watch it", "Diagnosed when it fails", app.action_run_command)
        yield (
            "named_environment",
            Command("Choose an environment by its directory", "One that is not listed", app.action_named_environment),
        )
        yield (
            "history",
            Command("History", "Repairs of the environment, what is kept, and the ways back", app.action_history),
        )
        yield (
            "playbooks",
            Command("Playbooks", "What envmedic knows of faults and repairs, and your own", app.action_playbooks),
        )
        if app.session.repair is not None:
            yield (
                "show_repair",
                Command("The repair", "The one that runs, or how the last one ended", app.action_show_repair),
            )
        yield "undo", Command("Undo the last repair", "Asks before changing anything", app.action_undo)
        yield "report", Command("Write a report", "Of the last repair: Markdown, a card, a page", app.action_report)
        yield "refresh", Command("Refresh", "Look for environments again", app.effects.look_around)
        yield "settings", Command("Settings", "Theme, questions, GPU proof, offline, layout", app.action_settings)
        yield "themes", Command("Theme", "Choose one, with a preview; remembered", app.action_themes)
        yield "help", Command("Help", "For the part that has the focus", app.action_help)
        yield "quit", Command("Quit", "Leave envmedic", app.action_quit)

    def _key(self, item: ActiveBinding) -> str:
        return self.app.get_key_display(item.binding)

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for command in self._all():
            yield DiscoveryHit(command.title, command.run, help=command.text)

    async def search(self, query: str) -> Hits:
        """Commands that match the typed text."""
        matcher = self.matcher(query)
        for command in self._all():
            # titles alone: help texts share too many words
            score = matcher.match(command.title)
            if score > 0:
                yield Hit(score, matcher.highlight(command.title), command.run, help=command.text)


def _action(item: ActiveBinding) -> str:
    return item.binding.action.removeprefix("app.")
