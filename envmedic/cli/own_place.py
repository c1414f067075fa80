"""The extra ``repair`` in a place of its own, where the running envmedic came without it.

``uvx envmedic`` and ``pipx run envmedic`` bring the core alone. What needs more offers to make an environment with the
whole of envmedic below the user's data, and goes on there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from envmedic import __version__, xdg
from envmedic.cli.context import ask
from envmedic.errors import InstallerError
from envmedic.proc import run
from envmedic.render.streams import write

_INSTALL_S = 1800.0


def place() -> Path:
    """The environment with the whole of this version of envmedic, whether it exists or not."""
    return xdg.data() / "envmedic" / f"repair-{__version__}"


def go_on(words: Sequence[str]) -> None:
    """Run the command line `words` with the whole of envmedic, in the place of this process; return where that cannot be.

    It is made first where it is not there, after a yes on the terminal. Raises InstallerError where that fails.
    """
    python = place() / "bin" / "python"
    if place() == Path(sys.prefix) or "-" in words:  # standard input, which cannot be read again
        return
    if not python.exists():
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        if not ask(f"Put the packages of the extra `repair` into {place()} (some 250 MB), and go on there?"):
            return
        write(sys.stderr, "fetching them, which takes a minute or more\n")
        _make()
    write(sys.stderr, f"going on with {python}\n")
    os.execv(python, [str(python), "-m", "envmedic", *words])  # noqa: S606  # no shell: the words as given


def _make() -> None:
    """Make the environment beside its place, and move it there when it is whole."""
    new = place().with_name(f"{place().name}.{os.getpid()}")
    uv = shutil.which("uv")
    python = new / "bin" / "python"
    if uv is None:
        commands = [
            [sys.executable, "-m", "venv", str(new)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _source()],
        ]
    else:
        commands = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(new)],
            [uv, "pip", "install", "--quiet", "--python", str(python), _source()],
        ]
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        for argv in commands:
            result = run(argv, on_line=lambda line: write(sys.stderr, f"{line}\n"), timeout_s=_INSTALL_S)
            if result.returncode != 0:
                raise _failed(f"{argv[0]} ended with {result.returncode}; its output stands above")
        # another command may have been quicker: its environment is as good
        if not place().exists():
            new.rename(place())
    except OSError as error:
        raise _failed(f"{new}: {error.strerror}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _failed(cause: str) -> InstallerError:
    return InstallerError(
        "The packages of the extra `repair` could not be installed",
        cause=cause,
        hint="Install them beside envmedic: pip install 'envmedic[repair]', or: uv tool install 'envmedic[repair]'",
    )


def _source() -> str:
    """The requirement that installs this very envmedic with the extra: from its index, or from where it was installed."""
    text = metadata.distribution("envmedic").read_text("direct_url.json")
    url = json.loads(text).get("url") if text else None
    return f"envmedic[repair] @ {url}" if url else f"envmedic[repair]=={__version__}"
