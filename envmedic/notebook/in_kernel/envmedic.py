"""The magics ``%envmedic`` and ``%%envmedic``, loaded by ``%load_ext envmedic``.

The standard library alone, for every Python from 3.7 on: the kernel runs in the environment that may be broken, and need
not have envmedic. A process of envmedic's own reads the environment and answers.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import traceback

TYPE_CHECKING = False  # as in typing, which kernels need not load
if TYPE_CHECKING:
    from typing import Any

_WORDS = {"-v", "--verbose"}
_EARLIER_CELLS = 300
"""Cells of the session whose imports a kept cell may need: the newest ones."""


class CellFailed(Exception):
    """Ends a cell under ``%%envmedic`` whose traceback is shown already; its cause is the cell's own error."""

    def _render_traceback_(self) -> list[str]:  # IPython asks errors for it
        return [str(self)]


def load_ipython_extension(shell: Any) -> None:
    """Register the magics."""

    def envmedic(line: str, cell: str | None = None) -> None:
        """Say what is wrong with this environment.

        %envmedic    the last error of a cell; without one, what the environment's files show
        %%envmedic   run the cell; where it fails, say why, and keep it for `envmedic apply --last`

        -v           every finding with all of its proof
        """
        words = shlex.split(line)
        if not _WORDS.issuperset(words):
            sys.stderr.write("envmedic: the one option is -v. %envmedic? tells more\n")
        elif cell is None:
            error = _last_error()
            _ask(shell, {"text": "" if error is None else _traceback(error), "detail": bool(words)})
        else:
            _run_cell(shell, cell, detail=bool(words))

    shell.register_magic_function(envmedic, magic_kind="line_cell", magic_name="envmedic")


def _last_error() -> BaseException | None:
    found = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return found.__cause__ if isinstance(found, CellFailed) else found


def _traceback(error: BaseException) -> str:
    """As Python prints it, without the frames by which IPython came to the cell."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] == "IPython":
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _run_cell(shell: Any, cell: str, *, detail: bool) -> None:
    """Run a cell as IPython does, and ask about its failure. Raises CellFailed, so that `Run all` ends here."""
    started = time.monotonic()
    done = shell.run_cell(cell)
    error = done.error_in_exec or done.error_before_exec
    if error is None:
        return
    if not isinstance(error, (KeyboardInterrupt, SystemExit)):
        request = {
            "text": _traceback(error),
            "source": _transformed(shell, cell),
            "earlier": _earlier(shell),
            "seconds": time.monotonic() - started,
            "detail": detail,
        }
        _ask(shell, request)
    raise CellFailed("the cell failed: " + type(error).__name__) from error


def _transformed(shell: Any, cell: str) -> str:
    """The Python of a cell: lines with % and ! are calls of IPython."""
    try:
        return str(shell.transform_cell(cell))
    except SyntaxError:
        return cell


def _earlier(shell: Any) -> list[str]:
    """The Python of the cells that ran before this one."""
    cells = []
    for text in list(shell.history_manager.input_hist_raw)[-_EARLIER_CELLS - 1 : -1]:
        first, _, rest = text.partition("\n")
        own = rest if first.startswith("%%envmedic") else text
        if not own.startswith("%%"):
            cells.append(_transformed(shell, own))
    return cells


def _ask(shell: Any, question: dict[str, Any]) -> None:
    """Have envmedic answer in a process of its own, and show that."""
    argv = _program()
    if not argv:
        sys.stderr.write(
            "envmedic: there is no program envmedic on PATH of this kernel. Install it: uv tool install envmedic\n"
        )
        return
    request = {
        "schema": "envmedic.cell/1",
        "prefix": sys.prefix,
        "python": sys.executable,
        "pid": os.getpid(),
        "modules": _loaded(),
        "columns": _columns(shell),
    }
    request.update(question)
    # a terminal's Ctrl-C ends both; stdin is the question, so nothing waits for an answer of the user
    done = subprocess.run([*argv, "notebook", "--answer"], input=json.dumps(request).encode(), capture_output=True)
    try:
        answer = json.loads(done.stdout.decode("utf-8"))
        _show(shell, answer["text"], answer["html"])
    except (ValueError, KeyError, TypeError):
        told = done.stderr.decode("utf-8", "replace").strip()
        sys.stderr.write("envmedic: no answer from {} (exit code {})\n{}\n".format(argv[0], done.returncode, told))


def _program() -> list[str]:
    """The command of envmedic: that of this environment where it is installed here, that which this file is of, or PATH's."""
    # a module of the installed package, not this file by itself; a checkout in the working directory lacks the libraries
    if __name__ != "envmedic" and importlib.util.find_spec("msgspec") is not None:
        return [sys.executable, "-m", "envmedic"]
    # <prefix>/lib/pythonX.Y/site-packages/envmedic/notebook/in_kernel/envmedic.py; a checkout has no such place
    site = os.path.realpath(os.path.join(__file__, "..", "..", "..", ".."))
    found = os.path.realpath(os.path.join(site, "..", "..", "..", "bin", "envmedic"))
    if os.path.basename(site) == "site-packages" and os.access(found, os.X_OK):
        return [found]
    on_path = shutil.which("envmedic")
    return [on_path] if on_path else []


def _loaded() -> dict[str, str]:
    """Versions of the packages that this process has loaded."""
    versions = {}
    for name, module in list(sys.modules.items()):
        if "." not in name and name != "__main__":
            version = vars(module).get("__version__") if hasattr(module, "__dict__") else None
            if isinstance(version, str):
                versions[name] = str(version)
    return versions


def _columns(shell: Any) -> int:
    """Width of the terminal; 0 in a notebook, and where colours are not wanted."""
    in_terminal = type(shell).__name__ == "TerminalInteractiveShell" and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if in_terminal and not os.environ.get("NO_COLOR") else 0


def _show(shell: Any, text: str, html: str) -> None:
    if type(shell).__name__ == "TerminalInteractiveShell":
        sys.stdout.write(text + "\n")
    else:
        shell.display_pub.publish({"text/plain": text, "text/html": html})
