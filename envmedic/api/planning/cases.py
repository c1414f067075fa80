"""Cases: the last failure of a program under ``envmedic run``, kept for each environment and host.

They are the caller's own, in the user's state directory. Root keeps none where another user can exchange files.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envmedic import safe_io, xdg
from envmedic.api.context.observation import observe
from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.diagnosis import diagnose_output
from envmedic.api.planning.program_judge import reported_error
from envmedic.api.playbooks import load_playbooks
from envmedic.api.running import Cancel, Ran, diagnose_ended, reproduce
from envmedic.engine.fs.durable import write_whole
from envmedic.errors import InputError, PreflightError
from envmedic.model.base import from_json, to_json
from envmedic.model.events import Notice
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.program import Case, Program, default_pass_after, is_kept
from envmedic.owner import acting_for, require_own
from envmedic.proc.output import OutputTail
from envmedic.redact import is_secret, redact_text

_KEPT_BYTES = 512 << 10
"""Of the beginning of a text, and as many of its end."""
_LARGEST = 16 << 20


def keep(prefix: Path, ran: Ran) -> Path:
    """Keep the failure `ran` in the environment at `prefix`, in the place of an earlier one, and return its file.

    Raises PreflightError where root must not work on the environment, and OSError where nothing can be kept.
    """
    path = _place(prefix)
    write_whole(path, to_json(_case(EnvironmentTarget.of(prefix), ran)).encode())
    return path


def keep_program(prefix: Path, source: str) -> Path:
    """Keep `source`, a program that the case of the environment is about, beside it, and return its file. Raises as `keep`."""
    path = _place(prefix).with_suffix(".py")
    write_whole(path, source.encode())
    return path


def _place(prefix: Path) -> Path:
    """The file of the case, in a directory that is there. Raises as `keep`."""
    require_own(prefix)
    path = _path(EnvironmentTarget.of(prefix))
    if acting_for(path.parent, ()) is not None:
        raise PermissionError(13, "it belongs to another user", str(path.parent))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _path(target: EnvironmentTarget) -> Path:
    key = hashlib.sha256(f"{_host()}\0{target.real}".encode("utf-8", "surrogateescape")).hexdigest()
    return xdg.state() / "envmedic" / "cases" / f"{key[:32]}.json"


def _host() -> str:
    # homes are shared by the machines of a cluster, and each has another GPU and driver
    return socket.gethostname()


def _case(target: EnvironmentTarget, ran: Ran) -> Case:
    short = OutputTail(_KEPT_BYTES)
    for chunk in ran.lines():
        short.feed("", chunk)
    return Case(
        prefix=str(target.real),
        host=_host(),
        when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        argv=ran.argv,
        directory=str(Path.cwd()),
        variables=_kept(ran.variables),
        prefixes=tuple(dict.fromkeys((str(target.real), str(target.prefix)))),
        seconds=ran.seconds,
        ending=ran.how(),
        text=redact_text(b"".join(short.lines()).decode("utf-8", "replace")),
    )


def _kept(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(variables.items()) if is_kept(name) and not is_secret(name, value)}


def run_and_keep(
    settings: Settings, prefix: Path, argv: Sequence[str], *, cancel: Cancel | None = None
) -> tuple[Diagnosis, bool]:
    """Run `argv` in the environment; return the diagnosis of its end, and whether a failure was kept as the case.

    Raises InputError where it cannot be started, and Interrupted when `cancel` asked to stop it.
    """
    ran, kept = reproduce(settings, prefix, argv, cancel), False
    if ran.failed:
        try:
            kept = keep(prefix, ran).is_file()
        except (OSError, PreflightError) as error:
            why = error.strerror if isinstance(error, OSError) else error.summary
            told = f"The failure is not kept, so the program cannot decide on a repair: {why}"
            settings.stream.emit(Notice(code="not-kept", message=told, level="warning"))
    return diagnose_ended(settings, load_playbooks(settings), observe(settings, prefix), prefix, ran), kept


def load(prefix: Path) -> Case:
    """Return the case of the environment at `prefix` on this host. Raises InputError without a sound one."""
    target = EnvironmentTarget.of(prefix)
    path = _path(target)
    again = "Run the program that fails: envmedic run -- CMD"
    try:
        text = safe_io.read(path, _LARGEST)
    except FileNotFoundError:
        raise InputError(f"No failure of a program in {prefix} is known on this machine", hint=again) from None
    except OSError as error:
        raise InputError(f"The case {path} cannot be read", cause=error.strerror, hint=again) from error
    return from_json(text, Case, source=f"The case {path}", hint=again)


def diagnose_last(settings: Settings, prefix: Path) -> Diagnosis:
    """Return the diagnosis of the case of the environment at `prefix`. Raises InputError without one."""
    case = load(prefix)
    return diagnose_case(settings, load_playbooks(settings), observe(settings, prefix), prefix, case)


def diagnose_case(
    settings: Settings, playbooks: tuple[LoadedPlaybook, ...], facts: Facts, prefix: Path, case: Case
) -> Diagnosis:
    """Return the diagnosis of the text of `case` with the present `facts`."""
    name = f"the command {case.argv[0]}: {case.ending}"
    here = settings.host_file is None
    return diagnose_output(settings, playbooks, facts, _lines(case), prefix=prefix, name=name, here=here)


def _lines(case: Case) -> Iterator[bytes]:
    yield from case.text.encode().splitlines(keepends=True)


def program_of(
    case: Case, playbooks: tuple[LoadedPlaybook, ...], diagnosis: Diagnosis, pass_after_s: float | None
) -> Program:
    """Return how the program of `case` decides on a repair.

    Raises InputError for a `pass_after_s` before the point at which the program failed.
    """
    if pass_after_s is not None and pass_after_s < case.seconds:
        raise InputError(
            f"--pass-after {pass_after_s:g} ends before the program failed, which took {case.seconds:.1f} s",
            cause="A program that has not come so far proves nothing",
            hint=f"Give more, or leave it out: {default_pass_after(case.seconds):.0f} s then",
        )
    return Program(
        directory=case.directory,
        variables=case.variables,
        prefixes=case.prefixes,
        failed_after_s=case.seconds,
        pass_after_s=default_pass_after(case.seconds) if pass_after_s is None else pass_after_s,
        reported=reported_error(_lines(case), playbooks, diagnosis),
    )
