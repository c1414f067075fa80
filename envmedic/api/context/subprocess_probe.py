"""Observations and diagnoses in a child process, for front ends that must stay responsive.

Libraries are read by memory mapping, and Python holds its global lock during page faults: in a thread, an environment
of some gigabytes on a slow disk would freeze the screen. A process can be stopped, too.
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
"""The package's directory replaces the working directory in sys.path, where any file could shadow a module."""
Wanted = Literal["diagnosis", "facts", "clone"]
T = TypeVar("T")


class Request(Model, frozen=True, kw_only=True):
    """A question to the child process."""

    wanted: Wanted
    prefix: str
    tree: str | None = None
    """For ``clone``: the clone that is observed instead of `prefix`."""
    host_file: str | None
    deep: bool
    unnamed: bool
    playbook_files: tuple[str, ...]


class Trouble(Model, frozen=True, kw_only=True):
    """An error of the child process, for its parent to raise."""

    code: str
    summary: str
    cause: str | None
    hint: str | None
    details: tuple[str, ...]


class Reply(Model, frozen=True, kw_only=True):
    """Answer of the child process: the wanted document, or an error."""

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
    """Return the diagnosis of the environment at `prefix` by facts alone, without any recovery.

    Raises Interrupted if `cancel` returns true, and the errors of the observation.
    """
    return _given(_asked(_request("diagnosis", settings, prefix), cancel).diagnosis)


def _request(wanted: Wanted, settings: Settings, prefix: Path, tree: Path | None = None) -> Request:
    return Request(
        wanted=wanted,
        prefix=str(prefix),
        tree=None if tree is None else str(tree),
        host_file=settings.host_file,
        deep=settings.deep,
        unnamed=settings.unnamed,
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
    # SIGKILL comes from the kernel's OOM killer mostly, which is no bug of envmedic
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
    """Return the error of the child process, as an instance of its own class."""
    # by code, not by pickle: the answer is data, and front ends decide by the class (exit status, advice)
    kinds = {kind.code: kind for kind in _kinds(EnvmedicError)}
    kind = kinds.get(trouble.code, EnvmedicError)
    error = kind.__new__(kind)
    # the base's, since some kinds word themselves from other arguments
    EnvmedicError.__init__(error, trouble.summary, cause=trouble.cause, hint=trouble.hint, details=trouble.details)
    return error


def _kinds(root: type[EnvmedicError]) -> list[type[EnvmedicError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _kinds(child))]


def _given(value: T | None) -> T:
    if value is None:
        raise InternalError("The reading process gave no answer")
    return value
