"""Runners: how the commands of a transaction see the environment.

All runners start `namespace_helper` and wait for it in the calling thread, which the helper must not outlive, so a
runner may be called from any thread of a multi-threaded program. Commands have no terminal and no standard input, and
are killed with all their descendants on a timeout, an interrupt or the death of envmedic.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envmedic import proc
from envmedic.engine.stage.environ import variables
from envmedic.errors import InternalError, PreflightError
from envmedic.model.ports import CommandResult, OnLine

Poll = Callable[[], None]
"""Called often while a command runs; what it raises ends the command."""

_PROBE_TIMEOUT_S = 60.0
_MESSAGE_LIMIT = 500
_HELPER = Path(__file__).with_name("namespace_helper.py")
_PID_STEPS = frozenset({"pid-namespace", "proc", "proc-inside"})
_REASONS = {
    ("unshare", errno.EPERM): "namespaces are not permitted here (EPERM at unshare)",
    ("unshare", errno.ENOSPC): "no user namespaces are allowed (ENOSPC at unshare: user.max_user_namespaces)",
    ("unshare", errno.ENOSYS): "the kernel has no namespaces (ENOSYS at unshare)",
    ("unshare", errno.EINVAL): "the kernel has no user namespaces (EINVAL at unshare)",
    ("private", errno.EACCES): "a security module denies the first mount (EACCES at mount)",
    ("private", errno.EPERM): "mounting is not permitted here (EPERM at mount)",
}


class StageRefusedError(Exception):
    """A step of the helper's set-up was refused."""

    def __init__(self, step: str, number: int) -> None:
        self.step = step
        code = errno.errorcode.get(number, str(number))
        super().__init__(_REASONS.get((step, number), f"{os.strerror(number)} ({code} at {step})"))


class HelperDiedError(StageRefusedError):
    """The helper ended without a word: killed by somebody, or by a bug that it wrote to stderr."""

    def __init__(self, returncode: int, stderr: str) -> None:
        how = f"signal {-returncode}" if returncode < 0 else f"exit {returncode}"
        Exception.__init__(self, f"the staging helper ended unexpectedly ({how}): {stderr.strip()[-_MESSAGE_LIMIT:]}")
        self.step = "start"


@dataclass(frozen=True)
class NamespaceProbe:
    """Whether a clone can be shown at the prefix."""

    ok: bool
    reason: str = ""
    """Why not."""
    pid_namespace: bool = False
    """Whether commands get a PID namespace with a /proc of its own."""
    note: str = ""
    """Why they get none."""


class _Runner:
    """What the runners share; each says where commands find the environment."""

    def __init__(
        self,
        prefix: Path,
        *,
        bind: tuple[Path, Path] | None,
        pid_namespace: bool,
        inherit: Sequence[int],
        poll: Poll | None,
    ) -> None:
        self._prefix = prefix
        self._bind = bind
        self._pid_namespace = pid_namespace
        self._inherit = tuple(inherit)
        self._poll = poll

    @property
    def prefix(self) -> Path:
        """The environment's path as commands see it."""
        return self._prefix

    @property
    def tree(self) -> Path:
        """Where the environment's files lie for this process: those of a clone that is shown at the prefix too."""
        return self._prefix if self._bind is None else self._bind[0]

    @property
    def python(self) -> Path:
        """The environment's interpreter as commands must name it."""
        return self._prefix / "bin" / "python"

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        timeout_s: float | None = None,
    ) -> CommandResult:
        """Run `argv` (an absolute path first) to its end; `env` is laid over the inherited environment.

        A non-zero exit, a signal and a timeout are results. Raises OSError when the program cannot
        be started and PreflightError when it can no longer be shown the clone.
        """
        started = time.monotonic()
        request = _request(
            self._bind,
            argv=argv,
            env=variables(self._prefix, {**self._own_variables(), **(env or {})}),
            directories=(self._prefix.parent, Path("/")),
            pid_namespace=self._pid_namespace,
        )
        with closing(proc.Helper(_program(), request, inherit=self._inherit, timeout_s=timeout_s)) as helper:
            helper.start()
            result = helper.finish(on_line=on_line, poll=self._poll)
        try:
            returncode = _returncode(result, argv[0])
        except HelperDiedError as error:
            raise PreflightError(
                "A command of the environment was cut off", cause=str(error), hint="Run the same command again"
            ) from error
        except StageRefusedError as error:
            raise PreflightError(
                f"The clone cannot be shown at {self._prefix}", cause=str(error), hint="Use --staging relocate"
            ) from error
        return CommandResult(
            argv=tuple(argv),
            returncode=returncode,
            stdout=result.stdout,
            stderr=result.stderr,
            seconds=time.monotonic() - started,
            timed_out=result.timed_out,
        )

    def _own_variables(self) -> dict[str, str]:
        return {}


class NamespaceRunner(_Runner):
    """Commands see the clone at the environment's real path, in mounts of their own."""

    def __init__(
        self,
        prefix: Path,
        clone: Path,
        *,
        pid_namespace: bool = True,
        inherit: Sequence[int] = (),
        poll: Poll | None = None,
    ) -> None:
        """Take real paths. `pid_namespace` as probed; `inherit` are descriptors that commands keep open."""
        super().__init__(prefix, bind=(clone, prefix), pid_namespace=pid_namespace, inherit=inherit, poll=poll)


class RelocateRunner(_Runner):
    """Commands see the clone where it lies. Only its own interpreter may be named, never its scripts.

    Scripts of a clone still name the environment's own path: ``<clone>/bin/pip`` would change the
    live environment. `relocate.rewrite` follows when all steps are done.
    """

    def __init__(self, clone: Path, *, inherit: Sequence[int] = (), poll: Poll | None = None) -> None:
        """Take the clone's real path."""
        super().__init__(clone, bind=None, pid_namespace=False, inherit=inherit, poll=poll)
        self._checked = False

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        timeout_s: float | None = None,
    ) -> CommandResult:
        """Run `argv`, after `check_interpreter` when it is the first to name the clone's Python.

        Raises InternalError for a script of the clone.
        """
        first = Path(argv[0])
        if not self._checked and os.fspath(self.python) in argv:
            self._checked = True
            self.check_interpreter()
        # Scripts of a copy name the original interpreter in their first line: running one would repair the live tree.
        if first.is_relative_to(self._prefix) and not first.name.startswith("python"):
            raise InternalError(f"{first} must not run: in a copied environment it acts on the original")
        return super().__call__(argv, env=env, on_line=on_line, timeout_s=timeout_s)

    def check_interpreter(self) -> None:
        """Prove that the clone's interpreter works where it lies and takes the clone for its prefix.

        Raises PreflightError when it does not: commands would change another environment.
        """
        result = self([os.fspath(self.python), "-I", "-c", "import sys; print(sys.prefix)"])
        found = result.stdout.rstrip("\n").rpartition("\n")[2]
        if result.returncode != 0 or not found or not Path(found).samefile(self._prefix):
            raise PreflightError(
                f"The environment's Python does not work in a clone at {self._prefix}",
                cause=result.stderr.strip()
                or f"it takes {found or 'nothing'} for its prefix (exit {result.returncode})",
                hint="Use --staging namespace, where the host allows it",
            )


class DirectRunner(_Runner):
    """Commands see the live environment, which they must not change: no byte code is written."""

    def __init__(self, prefix: Path, *, inherit: Sequence[int] = (), poll: Poll | None = None) -> None:
        """Take the real path."""
        super().__init__(prefix, bind=None, pid_namespace=False, inherit=inherit, poll=poll)

    def _own_variables(self) -> dict[str, str]:
        return {"PYTHONDONTWRITEBYTECODE": "1"}


def probe_namespace(prefix: Path, clone: Path) -> NamespaceProbe:
    """Try the whole set-up of `NamespaceRunner`, short of starting a program.

    `clone` is any directory, such as an empty one where the clone will be. Raises OSError when no
    helper can be started.
    """
    refused = _try_setup(prefix, clone, pid_namespace=True)
    if refused is None:
        return NamespaceProbe(ok=True, pid_namespace=True)
    # Some container runtimes allow a mount namespace but mask /proc: then only the PID namespace has to go.
    if refused.step not in _PID_STEPS:
        return NamespaceProbe(ok=False, reason=str(refused))
    again = _try_setup(prefix, clone, pid_namespace=False)
    if again is not None:
        return NamespaceProbe(ok=False, reason=str(again))
    return NamespaceProbe(ok=True, note=f"commands get no PID namespace: {refused}")


def _try_setup(prefix: Path, clone: Path, *, pid_namespace: bool) -> StageRefusedError | None:
    request = _request((clone, prefix), argv=None, env={}, directories=(Path("/"),), pid_namespace=pid_namespace)
    try:
        _tried(request)
    except HelperDiedError:  # which says nothing of namespaces, unless it dies of them each time
        pass
    except StageRefusedError as error:
        return error
    else:
        return None
    try:
        _tried(request)
    except StageRefusedError as error:
        return error
    return None


def _tried(request: bytes) -> None:
    """Have a helper do what is requested. Raises StageRefusedError, and OSError where no helper can be started."""
    with closing(proc.Helper(_program(), request, timeout_s=_PROBE_TIMEOUT_S)) as helper:
        helper.start()
        _returncode(helper.finish(), "")


def _program() -> tuple[str, ...]:
    """Arguments of the interpreter. Isolated: code of the environment must not run with the helper's rights."""
    return ("-I", "-S", os.fspath(_HELPER))


def _request(
    bind: tuple[Path, Path] | None,
    *,
    argv: Sequence[str] | None,
    env: Mapping[str, str],
    directories: Sequence[Path],
    pid_namespace: bool,
) -> bytes:
    return json.dumps(
        {
            "parent": os.getpid(),
            "bind": None if bind is None else [_text(os.fspath(path)) for path in bind],
            "pid_namespace": pid_namespace,
            "argv": None if argv is None else [_text(item) for item in argv],
            "env": {_text(name): _text(value) for name, value in env.items()},
            "directories": [_text(os.fspath(path)) for path in directories],
        }
    ).encode()


def _text(value: str) -> str:
    """The bytes of `value` as latin-1 text: JSON holds no other bytes than UTF-8, and file names may."""
    return os.fsencode(value).decode("latin-1")


def _returncode(result: proc.HelperResult, program: str) -> int:
    """Read the helper's last word. Raises StageRefusedError, or OSError when the program did not start."""
    status: dict[str, Any] = {}
    for line in result.status:
        with suppress(ValueError):  # a process was killed in the middle of it: it was not said
            status.update(json.loads(line))
    if "failed" in status:
        raise StageRefusedError(status["failed"], status["errno"])
    if "exec" in status:
        raise OSError(status["exec"], os.strerror(status["exec"]), program)
    if "exit" in status:
        return int(status["exit"])
    if result.timed_out:  # killed before it had anything to say
        return -signal.SIGKILL
    raise HelperDiedError(result.returncode, result.stderr)
