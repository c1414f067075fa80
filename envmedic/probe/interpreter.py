"""The interpreter of an environment, asked for what only it knows."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from envmedic import proc
from envmedic.model.facts import Interpreter
from envmedic.model.ports import CommandResult
from envmedic.probe.layout import Layout

TIMEOUT_S = 20.0
_QUESTION = """\
import json, sys, sysconfig
print(json.dumps({
    "version": sys.version.split()[0],
    "implementation": sys.implementation.name,
    "soabi": sysconfig.get_config_var("SOABI"),
    "base_prefix": getattr(sys, "base_prefix", sys.prefix),
    "platform_tag": sysconfig.get_platform().replace("-", "_").replace(".", "_"),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""


def observe(layout: Layout) -> Interpreter:
    """Start the interpreter in isolated mode, without its site-packages and without writing byte code.

    One that does not start is a fact with its error; its version then comes from the files.
    """
    try:
        result = proc.run([str(layout.python), "-I", "-S", "-B", "-c", _QUESTION], cwd="/", timeout_s=TIMEOUT_S)
    except OSError as error:
        return _dead(layout, _why_absent(layout.python, error))
    answer = parse_answer(result.stdout) if result.returncode == 0 else None
    if answer is None:
        return _dead(layout, failure(result))
    return Interpreter(
        path=str(layout.python),
        starts=True,
        version=_text(answer, "version"),
        implementation=_text(answer, "implementation"),
        soabi=_text(answer, "soabi"),
        base_prefix=_text(answer, "base_prefix"),
        platform_tag=_text(answer, "platform_tag"),
        free_threaded=answer.get("free_threaded") is True,
    )


def _dead(layout: Layout, error: str) -> Interpreter:
    return Interpreter(
        path=str(layout.python),
        starts=False,
        error=error,
        version=layout.version,
        base_prefix=_base_by_files(layout),
        free_threaded=bool(layout.libraries) and layout.libraries[-1].endswith("t"),
    )


def _base_by_files(layout: Layout) -> str | None:
    """``home`` of pyvenv.cfg is the directory of the base interpreter."""
    home = layout.settings.get("home")
    return str(Path(home).parent) if home else None


def _why_absent(python: Path, error: OSError) -> str:
    """Say in which way there is nothing to start."""
    if python.is_symlink() and not python.exists():
        return f"dangling symbolic link to {_target(python)}"
    if not os.path.lexists(python):
        return "there is no bin/python"
    return error.strerror or "cannot be executed"


def _target(link: Path) -> str:
    """The first target in the chain of links that does not exist, or the link's own for a cycle."""
    seen: set[Path] = set()
    current = link
    while current.is_symlink() and current not in seen:
        seen.add(current)
        current = Path(os.path.normpath(current.parent / current.readlink()))
    return str(link.readlink() if current in seen else current)


def parse_answer(output: str) -> dict[str, object] | None:
    """The JSON object on the last line of the interpreter's output."""
    lines = output.strip().splitlines()
    try:
        answer: object = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def failure(result: CommandResult) -> str:
    """Why an interpreter that was started gave no answer, in one line."""
    if result.timed_out:
        return f"no answer within {TIMEOUT_S:.0f} s"
    said = [line.strip() for line in result.stderr.strip().splitlines() if line.strip()]
    last = f": {said[-1][:300]}" if said else ""
    if result.signal is not None:
        return f"ended by {_signal_name(result.signal)}{last}"
    return f"exit status {result.returncode}{last}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _text(answer: dict[str, object], key: str) -> str | None:
    value = answer.get(key)
    return value if isinstance(value, str) else None
