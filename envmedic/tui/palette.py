"""The command palette: everything that keys do, by name, with the keys; those of the screen first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from envmedic.tui.panels.help import moves_about

if TYPE_CHECKING:
    from textual.binding import ActiveBinding, Binding

    from envmedic.tui.app import EnvmedicApp


class Command(NamedTuple):
    """A line of the palette."""

    title: str
    run: IgnoreReturnCallbackType
    key: str = ""
    """The key that does the same."""


class Commands(Provider):
    """Commands of the screen and of the app."""

    @property
    def _envmedic(self) -> EnvmedicApp:
        return cast("EnvmedicApp", self.app)

    def _all(self) -> Iterator[Command]:
        """What the footer of the screen shows, then the commands of the app, then what else has a key here."""
        app = self._envmedic
        bindings = {_action(item): item for item in self.screen.active_bindings.values() if item.enabled}
        titled = dict(self._titled())
        others = [item for action, item in bindings.items() if action not in titled and _has_words(item.binding)]
        yield from (self._of(item) for item in others if item.binding.show)
        for action, command in titled.items():
            yield command._replace(key=self._key(bindings[action]) if action in bindings else "")
        yield from (self._of(item) for item in others if not item.binding.show)
        for known in app.session.environments:
            name = f"{known.found.name}  " if known.found.name else ""
            yield Command(f"Work on {name}{known.prefix}", partial(app.effects.choose, known.prefix))

    def _of(self, item: ActiveBinding) -> Command:
        """The command of a key: its action is the screen's, or that of the part which has the focus."""
        run = partial(self.app.run_action, item.binding.action, item.node)
        return Command(item.binding.description, run, self._key(item))

    def _titled(self) -> Iterator[tuple[str, Command]]:
        """Commands of the app with a title of their own, by their action."""
        app = self._envmedic
        yield "open_log", Command("Open a log file", app.action_open_log)
        yield "run_command", Command("Run a command and watch it", app.action_run_command)
        yield "named_environment", Command("Choose an environment by its directory", app.action_named_environment)
        yield "history", Command("History: repairs, what is kept, and the ways back", app.action_history)
        yield "playbooks", Command("Playbooks: what envmedic knows, and your own", app.action_playbooks)
        if app.session.repair is not None:
            yield "show_repair", Command("The repair", app.action_show_repair)
        yield "undo", Command("Undo the last repair (asks first)", app.action_undo)
        yield "report", Command("Write a report of the last repair", app.action_report)
        yield "refresh", Command("Refresh: look for environments again", app.effects.look_around)
        yield "settings", Command("Settings", app.action_settings)
        yield "themes", Command("Theme: choose one, with a preview", app.action_themes)
        yield "help", Command("Help for the part that has the focus", app.action_help)
        yield "quit", Command("Quit", app.action_quit)

    def _key(self, item: ActiveBinding) -> str:
        return self.app.get_key_display(item.binding)

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for command in self._all():
            yield DiscoveryHit(_shown(Content(command.title), command.key), command.run, command.title)

    async def search(self, query: str) -> Hits:
        """Commands that match the typed text."""
        matcher = self.matcher(query)
        for command in self._all():
            score = matcher.match(command.title)
            if score > 0:
                yield Hit(score, _shown(matcher.highlight(command.title), command.key), command.run, command.title)


def _shown(title: Content, key: str) -> Content:
    return Content.assemble(title, (f"  {key}", "bold $tone-accent")) if key else title


def _has_words(binding: Binding) -> bool:
    return bool(binding.description) and not moves_about(binding) and not binding.system


def _action(item: ActiveBinding) -> str:
    return item.binding.action.removeprefix("app.")
