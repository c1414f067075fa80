"""A diagnosis of facts in a process of its own, for front ends that must hear keys meanwhile.

Libraries are read by mapping them, and the interpreter's lock is held while their pages come from the disk: in a thread
beside the screen, an environment of some gigabytes on a slow disk would freeze it. A process can be stopped, too.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

import envmedic
from envmedic.api.settings import Settings
from envmedic.errors import EnvmedicError, InternalError, Interrupted
from envmedic.model.base import Model, from_json, to_json
from envmedic.model.events import EventStream
from envmedic.model.findings import Diagnosis

_PROGRAM = "import sys; sys.path[0] = sys.argv[1]; from envmedic.api.apart import main; main(sys.argv[2:])"
"""The directory of this very package stands in the place of the working directory, which may hold anything."""


class Request(Model, frozen=True, kw_only=True):
    """What is asked of the other process."""

    prefix: str
    host_file: str | None
    deep: bool
    playbook_files: tuple[str, ...]


class Trouble(Model, frozen=True, kw_only=True):
    """An error of the other process, for its caller to raise."""

    summary: str
    cause: str | None
    hint: str | None
    details: tuple[str, ...]


class Reply(Model, frozen=True, kw_only=True):
    """Its answer: one of both."""

    diagnosis: Diagnosis | None = None
    trouble: Trouble | None = None


def diagnose_apart(settings: Settings, prefix: Path, *, cancel: Callable[[], bool]) -> Diagnosis:
    """The diagnosis of the environment at `prefix` by facts alone; no interrupted transaction on it is settled.

    Raises Interrupted once `cancel` says so, and what the reading raises.
    """
    from envmedic import proc  # noqa: PLC0415  # a text alone needs none of it

    request = Request(
        prefix=str(prefix),
        host_file=settings.host_file,
        deep=settings.deep,
        playbook_files=settings.playbook_files,
    )
    root = str(Path(envmedic.__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory(prefix="envmedic-") as folder:
        answer = Path(folder) / "answer.json"
        argv = [sys.executable, "-c", _PROGRAM, root, to_json(request, indent=0), str(answer)]
        result = proc.run(argv, cancel=cancel)
        if cancel():
            raise Interrupted("The reading was stopped", cause="cancelled")
        if result.returncode != 0 or not answer.is_file():
            raise InternalError(
                f"Reading {prefix} ended with status {result.returncode}", details=(result.stderr or result.stdout,)
            )
        return _told(from_json(answer.read_bytes(), Reply, source="The answer of the reading process"))


def _told(reply: Reply) -> Diagnosis:
    if reply.diagnosis is not None:
        return reply.diagnosis
    trouble = reply.trouble
    if trouble is None:
        raise InternalError("The reading process gave no answer")
    raise EnvmedicError(trouble.summary, cause=trouble.cause, hint=trouble.hint, details=trouble.details)


def main(arguments: Sequence[str]) -> None:
    """In the other process: answer the request of the first argument into the file of the second."""
    from envmedic.api.diagnosis import diagnose  # noqa: PLC0415  # its caller has loaded it or not

    request = msgspec.json.decode(arguments[0], type=Request)
    settings = Settings(
        stream=EventStream([]),
        host_file=request.host_file,
        deep=request.deep,
        playbook_files=request.playbook_files,
    )
    try:
        reply = Reply(diagnosis=diagnose(settings, Path(request.prefix), [])[0])
    except EnvmedicError as error:
        trouble = Trouble(summary=error.summary, cause=error.cause, hint=error.hint, details=error.details)
        reply = Reply(trouble=trouble)
    part = Path(f"{arguments[1]}.part")
    part.write_text(to_json(reply, indent=0), encoding="utf-8")
    os.replace(part, arguments[1])  # noqa: PTH105  # whole or not at all
