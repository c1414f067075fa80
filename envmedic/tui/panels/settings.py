"""All settings of the terminal UI in one panel, and the themes with a preview."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from msgspec.structs import replace
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import OptionList

from envmedic.render.cells import end
from envmedic.render.text import Line, TextPart
from envmedic.tui.panels.base import Panel
from envmedic.tui.panels.choosing import Picks
from envmedic.tui.widgets.choices import ChoiceList

if TYPE_CHECKING:
    from envmedic.tui.app import EnvmedicApp


class Setting(NamedTuple):
    """A row: what it is, how it is set, and what that means."""

    key: str
    title: str
    value: str
    meaning: str
    change: Callable[[], None]


class SettingsPanel(Panel[None]):
    """Every setting; Enter changes the highlighted one."""

    DEFAULT_CSS = "SettingsPanel > #frame ChoiceList { height: auto; max-height: 80vh; background: $panel; }"

    def __init__(self) -> None:
        super().__init__("Settings")

    @property
    def _envmedic(self) -> EnvmedicApp:
        return cast("EnvmedicApp", self.app)

    def inside(self) -> Iterable[Widget]:
        """The list."""
        yield Picks(_row, _key, empty="", id="settings")

    def on_mount(self) -> None:
        """Fill it."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        choices: ChoiceList[Setting] = self.query_one(ChoiceList)
        choices.show(self._settings())
        choices.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Change it."""
        event.stop()
        found = next((item for item in self._settings() if item.key == event.option_id), None)
        if found is not None:
            found.change()
            self._fill()

    def _settings(self) -> Sequence[Setting]:
        app = self._envmedic
        session, layout = app.session, app.layout
        return (
            Setting("theme", "Theme", app.theme, "Enter shows all of them as you go through", self._themes),
            Setting("asks", "Ask before the swap", _word(on=session.asks), "Until envmedic ends",
                    lambda: app.update(replace(session, asks=not session.asks))),
            Setting("gpu", "Accept repairs without proof on a GPU", _word(on=session.options.no_gpu), "--no-gpu, until envmedic ends",
                    lambda: app.update(replace(session, options=replace(session.options, no_gpu=not session.options.no_gpu)))),
            Setting("offline", "Stay offline", _word(on=session.settings.offline), "--offline, until envmedic ends", self._offline),
            Setting("commands", "Show commands in plans", _word(on=layout.commands), "Kept",
                    lambda: app.keep(commands=not layout.commands)),
            Setting("width", "Width of the list", f"{layout.list_percent} %", "Kept; [ and ] change it on the first screen",
                    lambda: app.keep(list_percent=36)),
        )  # fmt: skip

    def _offline(self) -> None:
        app, session = self._envmedic, self._envmedic.session
        offline = not session.settings.offline
        settings, options = replace(session.settings, offline=offline), replace(session.options, offline=offline)
        app.update(replace(session, settings=settings, options=options))

    def _themes(self) -> None:
        self.app.push_screen(ThemePanel(), lambda _: self._fill())


class ThemePanel(Panel[None]):
    """The themes: the highlighted one is seen at once, and Enter keeps it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "As it was")]
    DEFAULT_CSS = """
    ThemePanel { align: right middle; background: $background 0%; }
    ThemePanel > #frame { width: 32; }
    ThemePanel > #frame ChoiceList { height: auto; max-height: 80vh; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__("Theme")
        self._before = ""

    @property
    def _envmedic(self) -> EnvmedicApp:
        return cast("EnvmedicApp", self.app)

    def inside(self) -> Iterable[Widget]:
        """The list."""
        yield Picks(_name, str, empty="", id="themes")

    def on_mount(self) -> None:
        """Begin at the theme that is used."""
        self._before = self._envmedic.theme
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        choices: ChoiceList[str] = self.query_one(ChoiceList)
        choices.show(self._envmedic.offer_themes())
        choices.highlight(self._before)
        choices.focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show it."""
        event.stop()
        # the first item is highlighted before the list begins at the theme that is used
        if event.option_id and self.query_one(ChoiceList).has_focus:
            self._envmedic.use_theme(event.option_id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Keep it."""
        event.stop()
        if event.option_id:
            self._envmedic.choose_theme(event.option_id)
        self.dismiss(None)

    def action_close(self) -> None:
        """Back to the one before."""
        self._envmedic.use_theme(self._before)
        self.dismiss(None)


def _word(*, on: bool) -> str:
    return "yes" if on else "no"


def _row(item: Setting, cells: int) -> list[Line]:
    head = f"{item.title}  "
    return [
        (TextPart(head), TextPart(end(item.value, max(cells - len(head), 4)), "accent")),
        (TextPart("  " + end(item.meaning, max(cells - 2, 4)), "dim"),),
    ]


def _key(item: Setting) -> str:
    return item.key


def _name(name: str, cells: int) -> list[Line]:
    return [(TextPart(end(name, cells)),)]
