"""Observations and diagnoses in a child process, for front ends that must hear keys meanwhile.

Libraries are read by mapping them, and the interpreter's lock is held while their pages come from the disk: in a thread
beside the screen, an environment of some gigabytes on a slow disk would freeze it. A process can be stopped, too.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

import envmedic
from envmedic import proc
from envmedic.api.context.settings import Settings
from envmedic.errors import EnvmedicError, InternalError, Interrupted, Killed
from envmedic.model.base import Model, from_json, to_json
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Diagnosis

_PROGRAM = (
    f"import sys; sys.path[0] = sys.argv[1]; from {__package__}.subprocess_main import main; main(int(sys.argv[2]))"
)
"""The directory of this very package stands in the place of the working directory, which may hold anything."""
Wanted = Literal["diagnosis", "facts", "clone"]
T = TypeVar("T")


class Request(Model, frozen=True, kw_only=True):
    """A question to the child process."""

    wanted: Wanted
    prefix: str
    tree: str | None = None
    """The clone that is observed in the place of `prefix`, for ``clone``."""
    host_file: str | None
    deep: bool
    playbook_files: tuple[str, ...]


class Trouble(Model, frozen=True, kw_only=True):
    """An error of the child process, for its parent to raise."""

    code: str
    summary: str
    cause: str | None
    hint: str | None
    details: tuple[str, ...]


class Reply(Model, frozen=True, kw_only=True):
    """Answer of the child process: what was wanted, or its error."""

    diagnosis: Diagnosis | None = None
    facts: Facts | None = None
    environment: Environment | None = None
    trouble: Trouble | None = None


class ChildProcess:
    """Observes environments in a child process; an `Observer` for `Settings`."""

    def observe(self, settings: Settings, prefix: Path) -> Facts:
        """Return the facts that `api.observation.observe` finds. Raises what it raises."""
        return _given(_asked(_request("facts", settings, prefix), None).facts)

    def observe_clone(self, settings: Settings, tree: Path, prefix: Path) -> Environment:
        """Return what `api.observation.observe_clone` finds of the clone at `tree`. Raises what it raises."""
        return _given(_asked(_request("clone", settings, prefix, tree), None).environment)


def diagnose(settings: Settings, prefix: Path, *, cancel: Callable[[], bool]) -> Diagnosis:
    """The diagnosis of the environment at `prefix` by facts alone; no interrupted transaction on it is settled.

    Raises Interrupted once `cancel` says so, and what the observation raises.
    """
    return _given(_asked(_request("diagnosis", settings, prefix), cancel).diagnosis)


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
    """The error of the child process, of its own class."""
    kinds = {kind.code: kind for kind in _kinds(EnvmedicError)}
    kind = kinds.get(trouble.code, EnvmedicError)
    return kind(trouble.summary, cause=trouble.cause, hint=trouble.hint, details=trouble.details)


def _kinds(root: type[EnvmedicError]) -> list[type[EnvmedicError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _kinds(child))]


def _given(value: T | None) -> T:
    if value is None:
        raise InternalError("The reading process gave no answer")
    return value
