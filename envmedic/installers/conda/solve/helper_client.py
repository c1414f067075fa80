"""Client of the helper process, run here or where a staged environment is visible."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

import envmedic
from envmedic import proc
from envmedic.errors import DamagedByteCode, InstallerError, RepairPackageMissing
from envmedic.model.ports import OnLine

SCRIPT = Path(__file__).parents[1] / "helper" / "run.py"
MARK = "envmedic-answer "
"""As in `helper.run`, which nothing imports."""
Answer = dict[str, Any]
_GRACE_S = 30
"""Seconds beyond its limit after which a helper without a caller ends itself."""


@cache
def paths() -> tuple[str, ...]:
    """Directories from which the helper imports. Raises RepairPackageMissing where py-rattler is not installed."""
    # find_spec does not import py-rattler: only the helper may, since it can crash at the end of its interpreter.
    found = [util.find_spec(name) for name in ("rattler", "msgspec")]
    if found[0] is None:
        raise RepairPackageMissing("py-rattler")
    places = [Path(envmedic.__file__).parent.parent]
    places += [Path(spec.origin).parent.parent for spec in found if spec is not None and spec.origin]
    return tuple(dict.fromkeys(map(str, places)))


def command(where: str, *request: str) -> tuple[str, ...]:
    """Argv of the helper; ``-`` as `where` lets it answer on standard output."""
    # -I -S: no variable and no .pth file takes part; the request names the directories that are needed.
    return (sys.executable, "-I", "-S", "-B", str(SCRIPT), where, *request)


def ask(
    request: Mapping[str, Any],
    *,
    timeout_s: float,
    on_line: OnLine | None = None,
    poll: Callable[[], None] | None = None,
) -> Answer:
    """Send a request to a new helper, run as this user, and return its answer; `on_line` gets its output.

    `poll` is called several times a second; an exception from it ends the helper.
    Raises InstallerError if the helper fails, dies or takes longer than `timeout_s`, DamagedByteCode.
    """
    full = {**request, "paths": paths(), "limit_s": int(timeout_s) + _GRACE_S}
    with closing(proc.Helper(("-I", "-S", str(SCRIPT)), json.dumps(full).encode(), timeout_s=timeout_s)) as helper:
        try:
            helper.start()
        except OSError as error:
            raise InstallerError("py-rattler's process cannot be started", cause=str(error)) from error
        result = helper.finish(on_line=on_line, poll=poll)
    if result.timed_out:
        raise InstallerError(
            f"py-rattler gave no answer within {timeout_s:.0f} s",
            hint="Try again; --timeout gives it longer",
        )
    return checked(result.status, result.returncode, result.stderr)


def checked(lines: Sequence[bytes | str], returncode: int, stderr: str) -> Answer:
    """The answer among `lines`. Raises InstallerError where there is none, or it reports a failure; DamagedByteCode."""
    for line in lines:
        answer: Answer = json.loads(line)
        if answer.get("byte_code"):
            raise DamagedByteCode(answer["byte_code"])
        if "failed" in answer:
            raise failure(answer["failed"], answer["trace"])
        return answer
    how = f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
    raise InstallerError(
        f"py-rattler's process ended without an answer ({how})",
        cause=next((line for line in reversed(stderr.splitlines()) if line.strip()), None),
        hint="Run the same command again",
        details=tuple(stderr.splitlines()[-20:]),
    )


def failure(message: str, trace: str) -> InstallerError:
    """The error for an exception of py-rattler, or of the code around it."""
    first, *more = message.splitlines() or [""]
    return InstallerError(
        "py-rattler failed",
        cause=first,
        hint="Free some space and run the same command again"
        # py-rattler passes errors of the system on as text; 28 is ENOSPC on Linux.
        if "os error 28" in message
        else "`envmedic plan` shows other ways; --installer conda lets the user's own conda do it",
        details=(*more, *trace.splitlines()[-10:]),
    )
