"""Observations and diagnoses in a process of their own, for front ends that must hear keys meanwhile.

Libraries are read by mapping them, and the interpreter's lock is held while their pages come from the disk: in a thread
beside the screen, an environment of some gigabytes on a slow disk would freeze it. A process can be stopped, too.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

import envmedic
from envmedic.api.context.settings import Settings
from envmedic.errors import EnvmedicError, InternalError, Interrupted, Killed
from envmedic.model.base import Model, from_json, to_json
from envmedic.model.events import EventStream
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Diagnosis

_PROGRAM = "import sys; sys.path[0] = sys.argv[1]; from envmedic.api.context.subprocess_probe import main; main(int(sys.argv[2]))"
"""The directory of this very package stands in the place of the working directory, which may hold anything."""
Wanted = Literal["diagnosis", "facts", "clone"]
T = TypeVar("T")


class Request(Model, frozen=True, kw_only=True):
    """What is asked of the other process."""

    wanted: Wanted
    prefix: str
    tree: str | None = None
    """The clone that is observed in the place of `prefix`, for ``clone``."""
    host_file: str | None
    deep: bool
    playbook_files: tuple[str, ...]


class Trouble(Model, frozen=True, kw_only=True):
    """An error of the other process, for its caller to raise."""

    code: str
    summary: str
    cause: str | None
    hint: str | None
    details: tuple[str, ...]


class Reply(Model, frozen=True, kw_only=True):
    """Its answer: what was wanted, or why there is none."""

    diagnosis: Diagnosis | None = None
    facts: Facts | None = None
    environment: Environment | None = None
    trouble: Trouble | None = None


def diagnose_apart(settings: Settings, prefix: Path, *, cancel: Callable[[], bool]) -> Diagnosis:
    """The diagnosis of the environment at `prefix` by facts alone; no interrupted transaction on it is settled.

    Raises Interrupted once `cancel` says so, and what the reading raises.
    """
    return _given(_asked(_request("diagnosis", settings, prefix), cancel).diagnosis)


def observe_apart(settings: Settings, prefix: Path) -> Facts:
    """The facts that `observe` finds of the host and the environment at `prefix`. Raises what it raises."""
    return _given(_asked(_request("facts", settings, prefix), None).facts)


def observe_clone_apart(settings: Settings, tree: Path, prefix: Path) -> Environment:
    """What `observe_clone` finds of the clone at `tree`. Raises what it raises."""
    return _given(_asked(_request("clone", settings, prefix, tree), None).environment)


def _request(wanted: Wanted, settings: Settings, prefix: Path, tree: Path | None = None) -> Request:
    return Request(
        wanted=wanted,
        prefix=str(prefix),
        tree=None if tree is None else str(tree),
        host_file=settings.host_file,
        deep=settings.deep,
        playbook_files=settings.playbook_files,
    )


def _asked(request: Request, cancel: Callable[[], bool] | None) -> Reply:
    from envmedic import proc  # noqa: PLC0415  # a text alone needs none of it

    def poll() -> None:
        if cancel is not None and cancel():
            raise Interrupted("The reading was stopped", cause="cancelled")

    root = str(Path(envmedic.__file__).resolve().parent.parent)
    with closing(proc.Helper(("-c", _PROGRAM, root), to_json(request, indent=0).encode())) as helper:
        helper.start()
        result = helper.finish(poll=poll)
    poll()
    if result.returncode == -signal.SIGKILL:
        raise Killed(f"The process that was reading {request.prefix}")
    if result.returncode != 0 or not result.status:
        raise InternalError(
            f"Reading {request.prefix} ended with status {result.returncode}",
            details=(result.stderr or result.stdout,),
        )
    reply = from_json(result.status[0], Reply, source="The answer of the reading process")
    trouble = reply.trouble
    if trouble is not None:
        raise _error(trouble)
    return reply


def _error(trouble: Trouble) -> EnvmedicError:
    """The error of the other process, of its own class."""
    kinds = {kind.code: kind for kind in _kinds(EnvmedicError)}
    kind = kinds.get(trouble.code, EnvmedicError)
    return kind(trouble.summary, cause=trouble.cause, hint=trouble.hint, details=trouble.details)


def _kinds(root: type[EnvmedicError]) -> list[type[EnvmedicError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _kinds(child))]


def _given(value: T | None) -> T:
    if value is None:
        raise InternalError("The reading process gave no answer")
    return value


def main(answer: int) -> None:
    """In the other process: answer the request on standard input, as one line on the descriptor `answer`."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    settings = Settings(
        stream=EventStream([]),
        host_file=request.host_file,
        deep=request.deep,
        playbook_files=request.playbook_files,
    )
    try:
        reply = _reply(request, settings)
    except EnvmedicError as error:
        trouble = Trouble(
            code=error.code, summary=error.summary, cause=error.cause, hint=error.hint, details=error.details
        )
        reply = Reply(trouble=trouble)
    with os.fdopen(answer, "wb") as pipe:
        pipe.write(to_json(reply, indent=0).encode() + b"\n")  # half a line is no answer


def _reply(request: Request, settings: Settings) -> Reply:
    from envmedic.api.context.observation import observe, observe_clone  # noqa: PLC0415
    from envmedic.api.diagnosis import diagnose  # noqa: PLC0415  # its caller has loaded it or not

    prefix = Path(request.prefix)
    if request.tree is not None:
        return Reply(environment=observe_clone(settings, Path(request.tree), prefix))
    if request.wanted == "facts":
        return Reply(facts=observe(settings, prefix))
    return Reply(diagnosis=diagnose(settings, prefix, [])[0])
