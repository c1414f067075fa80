"""The program from the first word of its command line to the end of its process."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from envmedic import __version__

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from envmedic.api.context.settings import Settings
    from envmedic.model.ports import ApplyOptions

_VERSION = {"--version", "-v", "--verbose"}
_COLLECT_AFTER = 100_000
"""Containers. One command makes some ten thousand that live to its end; looking through them again and again for
garbage is a twentieth of a diagnosis."""

_MARK_PASTES, _MARK_NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"
"""Bracketed paste. Source: xterm's control sequences, DECSET 2004."""
_LAST_STANDARD = 2
"""Number of standard error."""


def _terminal_ui(settings: Settings, options: ApplyOptions, place: str) -> int:
    """Open the terminal UI. Raises ModuleNotFoundError without Textual, which `main` reports."""
    from envmedic.render.encodings import CELLS

    _replace_what_is_lacking(CELLS)
    # Loading takes a moment, in which a paste may come already: it is to be marked as one from the start.
    _write_mode(_MARK_PASTES)
    try:
        from envmedic.tui.app import run
    except BaseException:
        _write_mode(_MARK_NO_PASTES)
        raise
    return run(settings, options, place)


def _write_mode(sequence: str) -> None:
    sys.stderr.write(sequence)
    sys.stderr.flush()


def _replace_what_is_lacking(signs: str) -> None:
    """Let streams whose encoding isn't UTF-8 show other signs, instead of ending a help text in an error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and (stream.encoding or "").lower().replace("_", "-") not in {"utf-8", "utf8"}:
            from envmedic.render.encodings import tolerate

            tolerate(stream, signs)


def program() -> int:
    """Run one command in a process that is its own, and return its exit code."""
    gc.set_threshold(_COLLECT_AFTER)
    _open_standard_streams()
    _replace_what_is_lacking("envmedic-words")
    words = sys.argv[1:]
    asked = "--version" in words and _VERSION.issuperset(words)
    code = _show_version(tables=len(words) > 1) if asked else _command()
    return _left(code)


def _show_version(*, tables: bool) -> int:
    """What argparse would show: this alone needs no part of it. With `tables` also the days of the tables."""
    print(f"envmedic {__version__}")  # noqa: T201
    if tables:
        from envmedic.compat.tables import chosen, version, written

        print(f"compatibility tables {version()}, {chosen().origin}")  # noqa: T201
        for name, day in written().items():
            print(f"compatibility table {name}: of {day}")  # noqa: T201
    return 0


def _command() -> int:
    import argparse

    vars(argparse)["_"] = (
        str  # it looks for a translation of each word in the file system, and there is none of envmedic
    )
    from envmedic.cli.main import main

    return main(ui=_terminal_ui)


def _open_standard_streams() -> None:
    """Put the null device where a standard stream is closed (``>&-``), lest the next opened file takes its place."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD:
        os.set_inheritable(number, True)
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  # until the end


def _left(code: int) -> int:
    """End the process with `code` after all that is registered for its end has run.

    What Python does after that is taking down each module and value by itself, which for the ten thousands of a
    diagnosis is a twentieth of its time. Returns `code` where other threads still run: Python waits for them.
    """
    threading = sys.modules.get("threading")  # loaded where a thread was started
    if threading is not None and threading.active_count() > 1:
        return code
    atexit._run_exitfuncs()  # noqa: SLF001  # as Python does then; the only way to do it before
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # the reader went away, or the stream was closed: Python's own end says what it says
        return code
    os._exit(code)
