"""How the terminal UI looks: its themes, and the layout that later runs find again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.app import App

from envmedic.errors import EnvmedicError, InputError
from envmedic.tui.preferences import UiLayout, keep_layout, keep_theme, kept_layout, kept_theme
from envmedic.tui.terminal import Terminal
from envmedic.tui.themes import DARK, VARIABLE, built_in_themes, depth_of, own_themes, tone_styles

if TYPE_CHECKING:
    from rich.style import Style

    from envmedic.render.text import Tone


class ThemedApp(App[int]):
    """An App with envmedic's themes and a layout, which are kept."""

    def __init__(self) -> None:
        colourless = os.environ.get("NO_COLOR")
        super().__init__(driver_class=Terminal)
        if colourless is not None:
            os.environ["NO_COLOR"] = colourless  # Textual takes it away; the commands that a repair runs read it too
        # Textual's own themes lack the variables for tones, which the style sheet needs: they come when they are wanted
        for name in tuple(self.available_themes):
            self.unregister_theme(name)
        self._own_themes = own_themes(depth_of(self.console.color_system))
        for theme in self._own_themes:
            self.register_theme(theme)
        self._tones: tuple[str, dict[Tone, Style]] = ("", {})
        self.unreadable: EnvmedicError | None = None
        """The error from reading what the last run kept."""
        self.layout = self._kept_layout()
        """How the UI looks beside its theme, and where it was left."""
        self._begin_with(os.environ.get(VARIABLE) or self._kept_theme())

    def show_error(self, error: EnvmedicError) -> None:
        """The panel of an error."""
        # Screens and panels are imported on use: the first frame is drawn without them.
        from envmedic.tui.panels.base import ErrorPanel

        self.push_screen(ErrorPanel(error))

    def layout_changed(self) -> None:
        """Draw for another layout."""

    @property
    def tones(self) -> dict[Tone, Style]:
        """Styles of the tones in the theme that is used."""
        if self._tones[0] != self.theme:
            self._tones = (self.theme, tone_styles(self.current_theme))
        return self._tones[1]

    def offer_themes(self) -> tuple[str, ...]:
        """Make Textual's own themes usable too, and return the names of all."""
        if len(self.available_themes) == len(self._own_themes):
            for theme in built_in_themes():
                self.register_theme(theme)
        own = tuple(theme.name for theme in self._own_themes)
        return (*own, *(name for name in self.available_themes if name not in own))

    def use_theme(self, name: str) -> None:
        """Use the theme `name`, or the dark one for an unknown name."""
        if name not in self.available_themes:
            self.offer_themes()
        self.theme = name if name in self.available_themes else DARK

    def _begin_with(self, name: str) -> None:
        """Look like that from the first frame; Textual would make every style twice."""
        theme = self.available_themes.get(name)
        if theme is None or not theme.dark:
            self.use_theme(name)
            return
        # What Textual does when `theme` changes, without a second run over all styles.
        self.set_reactive(App.theme, theme.name)
        self.stylesheet.set_variables(self.get_css_variables())
        self.update_classes({f"-theme-{theme.name}": True}, update=False)

    def choose_theme(self, name: str) -> None:
        """Use the theme `name` now and in later runs."""
        self.use_theme(name)
        try:
            keep_theme(self.theme)
        except InputError as error:
            self.show_error(error)

    def keep(self, **changes: str | int | bool) -> None:  # fields of `UiLayout`
        """Change the layout, now and for later runs."""
        changed = replace(self.layout, **changes)
        if changed == self.layout:
            return
        self.layout = changed
        self.layout_changed()
        try:
            keep_layout(self.layout)
        except InputError as error:
            self.show_error(error)

    def _kept_layout(self) -> UiLayout:
        try:
            return kept_layout()
        except InputError as error:
            self.unreadable = error
            return UiLayout()

    def _kept_theme(self) -> str:
        try:
            return kept_theme() or DARK
        except InputError as error:
            self.unreadable = error
            return DARK
