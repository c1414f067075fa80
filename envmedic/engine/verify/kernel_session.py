"""Starting ``kernels/`` with the environment's own Python, and reading the outcomes as they come.

The kernels are found by path and never imported.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec

from envmedic.engine.verify import concurrency
from envmedic.model.checks import Check, Outcome
from envmedic.model.ports import CommandResult, Runner

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
MARK = "@envmedic "
"""Begins a line that carries a message; the same as in ``kernels/session.py``."""
NO_BYTECODE: Mapping[str, str] = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Checks leave no ``.pyc`` behind, whether they see the clone or the live environment."""
SEED = secrets.randbelow(10**6)
"""Of the numbers that checks compute with: another one in each run of envmedic, the same before and after a repair."""
_LARGEST_NODE_GPUS = 16
_MOST_PARTS = 5
"""Parts of a check that run on each GPU."""
_NET_SLACK_S = 180.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome as the kernels report it."""

    index: int
    check: str
    status: str
    device: str | None = None
    seconds: float = 0.0
    max_relative_error: float | None = None
    tolerance: float | None = None
    reason: str = ""
    detail: str = ""
    signal: str | None = None
    applicable: bool = True
    excuse: str = ""
    warnings: tuple[str, ...] = ()
    figures: dict[str, float] = {}


class KernelSession:
    """What one session has reported so far."""

    def __init__(self, checks: Sequence[Check], on_outcome: Callable[[int, Outcome], None]) -> None:
        self._checks = checks
        self._on_outcome = on_outcome
        self.ended = False
        """Whether the kernels came to their end: every outcome has been reported."""

    def hear(self, line: str) -> bool:
        """Take one line of output; returns whether it was a message.

        What the environment's own code prints can look like one: a report that no check could give is none.
        """
        message = message_of(line)
        if message is None:
            return False
        # Whatever a check prints reaches the same pipe, so a message is believed only if it decodes as one.
        if "outcome" in message:
            try:
                index, outcome = self._outcome(message["outcome"])
            except (msgspec.ValidationError, ValueError, IndexError):
                return False
            self._on_outcome(index, outcome)
        self.ended = self.ended or "end" in message
        return True

    def _outcome(self, reported: object) -> tuple[int, Outcome]:
        """Raises `msgspec.ValidationError`, ValueError for invalid text, IndexError for an unknown check."""
        said = msgspec.convert(reported, _Said)
        if not 0 <= said.index < len(self._checks):
            raise IndexError(said.index)
        fields = {name: value for name, value in msgspec.structs.asdict(said).items() if name != "index"}
        texts = {name: plain(fields[name]) for name in ("reason", "detail", "check", "excuse")}
        fields |= {"role": self._checks[said.index].role, "warnings": tuple(map(plain, said.warnings))}
        return said.index, msgspec.convert(fields | texts, Outcome)


def message_of(line: str) -> dict[str, Any] | None:
    """The message in a line of output; None for anything else that was printed."""
    if not line.startswith(MARK):
        return None
    try:
        message = json.loads(line[len(MARK) :], object_pairs_hook=_encodable, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _encodable(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, with undecodable bytes in its texts shown by their numbers: JSON holds none."""
    return {_text(name): _text(value) if isinstance(value, str) else value for name, value in pairs}


def _text(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()


def _no_number(text: str) -> NoReturn:
    """Python writes NaN and infinities, which are no JSON. Raises ValueError."""
    raise ValueError(f"{text} is no number")


def plain(text: str) -> str:
    """`text` without terminal escapes and control characters, line ends and tabs apart."""
    return _CONTROL.sub("", text)


def start(
    checks: Mapping[int, Check],
    runner: Runner,
    on_line: Callable[[str], None],
    *,
    no_gpu: str,
    devices: str | None = None,
    torch_once: bool = False,
    apart: bool = False,
    byte_code: Path | None = None,
) -> CommandResult:
    """Run `checks` (by the index under which they are reported) in one session.

    `no_gpu` is the reason for which GPUs are left alone, empty where they are not; `devices` is the
    value of CUDA_VISIBLE_DEVICES, None for that of this process; with `torch_once` no import begins with a process of
    its own where torch is imported anyway; with `apart` torch's companions do from the start, where they are expected to
    fail; `byte_code` is a folder for that of modules that have none. Raises OSError when the interpreter cannot be started.
    """
    requests = [
        {"index": i, "name": c.name, "arguments": c.arguments, "gpu": c.gpu, "timeout_s": c.timeout_s, "seed": SEED}
        for i, c in checks.items()
    ]
    how = {"workers": concurrency.at_once(), "torch_once": torch_once, "apart": apart}
    lent = {"byte_code": os.fspath(byte_code)} if byte_code is not None else {}
    spec = json.dumps({"requests": requests, "no_gpu": no_gpu, **how, **lent})
    argv = (os.fspath(runner.python), "-B", os.fspath(KERNELS / "driver.py"), "--spec", spec)
    env = {**NO_BYTECODE, **({"CUDA_VISIBLE_DEVICES": devices} if devices is not None else {})}
    # a check that crashes or is stopped leaves its temporary files
    with tempfile.TemporaryDirectory(prefix="envmedic-checks-", ignore_cleanup_errors=True) as room:
        return runner(argv, env=env | {"TMPDIR": room}, on_line=on_line, timeout_s=_net(checks.values()))


def _net(checks: Collection[Check]) -> float:
    """Seconds after which a whole session is given up; each unit has a limit of its own below it."""
    parts = ((c, max(_MOST_PARTS, len(c.arguments))) for c in checks)
    units = (len(c.arguments) if c.name == "import" else most * (1 + _LARGEST_NODE_GPUS * c.gpu) for c, most in parts)
    return sum(count * (check.timeout_s + 1) for count, check in zip(units, checks, strict=True)) + _NET_SLACK_S


def launcher(
    runner: Runner,
    command: Sequence[str],
    *,
    directory: str | None = None,
    changes: Mapping[str, str | None] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Argv that runs the user's own `command` in the environment and in `directory`, by default the present one.

    `changes` of variables are for the command alone; None unsets one.
    """
    text = (KERNELS / "launch.py").read_text(encoding="utf-8")
    place = os.fspath(Path.cwd()) if directory is None else directory
    # -I -S: neither PYTHON* variables nor a broken sitecustomize may stop the launcher; the command itself gets both.
    python = os.fspath(runner.python)
    return (python, "-I", "-S", "-c", text, place, python, json.dumps(dict(changes)), *command)
