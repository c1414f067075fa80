"""Effects of the terminal UI on playbooks."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envmedic.api import playbooks
from envmedic.api.knowledge import explanation
from envmedic.errors import EnvmedicError, InputError
from envmedic.model.answers.explanation import Explanation
from envmedic.proc.commands import run_in_terminal
from envmedic.render.pages.playbooks import Book, books, mistakes_of
from envmedic.tui.effects.base import Effects
from envmedic.tui.effects.jobs import BackgroundJob

if TYPE_CHECKING:
    from envmedic.api.context.settings import Settings
    from envmedic.api.playbooks import PlaybookSurvey
    from envmedic.model.playbook import LoadedPlaybook

Stamps = tuple[tuple[str, int, int], ...]


class PlaybookEffects:
    """Playbooks of this user."""

    def __init__(self, effects: Effects, named: Iterable[str]) -> None:
        """`named` are playbooks that were given as files."""
        self._effects = effects
        self._named = tuple(named)
        self._known: tuple[LoadedPlaybook, ...] = ()

    def survey(self, then: Callable[[tuple[Book, ...], Stamps], None]) -> None:
        """Every playbook, and the mistakes of each file that is wrong; with what their files were like before."""

        def work(
            settings: Settings, _job: BackgroundJob[tuple[PlaybookSurvey, Stamps]]
        ) -> tuple[PlaybookSurvey, Stamps]:
            # taken before the files are read: a save in between then counts as a change
            before = self.stamps()
            return playbooks.survey_playbooks(settings), before

        def found(result: tuple[PlaybookSurvey, Stamps]) -> None:
            survey, before = result
            self._known = survey.playbooks
            then(books(survey.playbooks, survey.invalid), before)

        self._effects.job("playbooks", "reading playbooks", work, found, latest="playbooks")

    def stamps(self) -> Stamps:
        """Times and sizes of the user's playbook files, to notice saved, new or removed ones. Raises InputError."""
        return tuple(map(_stamp, sorted({*self._named, *map(str, playbooks.own_playbook_files())})))

    def page(self, book: Book, then: Callable[[Explanation | EnvmedicError], None]) -> None:
        """A playbook in plain words."""
        known = self._known

        def work(settings: Settings, _job: BackgroundJob[Explanation]) -> Explanation:
            return explanation.explain(settings, book.id, known)

        self._effects.job("explain", f"explaining {book.id}", work, then, then, latest="playbook page")

    def source(self, path: str, then: Callable[[tuple[str, ...]], None]) -> None:
        """The lines of a file."""

        def work(_settings: Settings, _job: BackgroundJob[tuple[str, ...]]) -> tuple[str, ...]:
            return source_lines(Path(path))

        self._effects.job("excerpt", f"reading {path}", work, then, latest="playbook source")

    def copy(self, book: Book, then: Callable[[Path], None]) -> None:
        """Copy a shipped one to the user's own."""

        def work(settings: Settings, _job: BackgroundJob[Path]) -> Path:
            return playbooks.copy_playbook(settings, book.id)

        self._effects.job("copy", f"copying {book.id}", work, then)


def _stamp(path: str) -> tuple[str, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116  # a text is at hand
    except OSError:  # gone, or not to be read: reading it tells why
        return path, 0, 0
    return path, status.st_mtime_ns, status.st_size


def source_lines(path: Path) -> tuple[str, ...]:
    """The lines of a file. Raises InputError where it cannot be read."""
    try:
        # some editors begin a file with a byte order mark
        return tuple(path.read_text(encoding="utf-8-sig", errors="replace").split("\n"))
    except OSError as error:
        raise InputError(f"{path} cannot be read", cause=error.strerror, hint="Look whether it is there") from error


def editor_command(book: Book) -> tuple[str, ...]:
    """Command that opens the file of `book` in the user's editor, at its first mistake if the editor supports that.

    Raises InputError where there is no editor.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    words = shlex.split(named) if named else []
    program = shutil.which(words[0] if words else "vi")
    if program is None:
        raise InputError(
            f"There is no editor {words[0]}" if words else "There is no editor",
            cause="VISUAL and EDITOR name none that can be started",
            hint=f"Set EDITOR, or edit {book.path} elsewhere: it is read again whenever it is saved",
        )
    first = mistakes_of(book)[:1]
    # another editor would take +N for the name of a file
    takes_line = Path(program).name in {"vi", "vim", "nvim", "nano", "emacs", "micro", "kak", "joe", "ne"}
    at = [f"+{first[0].line}"] if first and takes_line else []
    return (program, *words[1:], *at, book.path)


def edit(command: tuple[str, ...]) -> None:
    """Run the editor with the terminal. Raises InputError where it fails."""
    try:
        status = run_in_terminal(command)
    except OSError as error:
        raise InputError(f"{command[0]} cannot be started", cause=error.strerror, hint="Set EDITOR") from error
    if status:
        raise InputError(f"{command[0]} ended with {status}", hint=f"Look whether {command[-1]} is as you want it")
