"""The use cases, a module for each; and, as functions of this package, those that other programs call.

The functions here are the library: their names, parameters and the documents that they return stay as they are within
a major version. Each takes the prefix of an environment; none prints, asks or ends the process. What goes wrong is an
`envmedic.errors.EnvmedicError` with a summary, a cause, a hint and an exit code, raised before anything has changed;
what goes wrong in a transaction is in its record (`Record.failure`), and `Record.environment` says what became of the
environment. `events` is called with each event, in the thread that calls the function.

Plans and repairs need uv, on PATH or by the extra ``repair``; those of conda environments need the extra.
"""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from collections.abc import Callable

    from envmedic.api.context.settings import RepairRequest, Settings
    from envmedic.model.events import Event
    from envmedic.model.findings import Diagnosis
    from envmedic.model.plan import Plan
    from envmedic.model.ports import ApplyOptions
    from envmedic.model.record import Record

    Events = Callable[[Event], None]
    Place = str | os.PathLike[str]

__all__ = ["apply", "diagnose", "plan", "snapshot", "undo"]


def diagnose(prefix: Place | None = None, text: str | None = None, *, events: Events | None = None) -> Diagnosis:
    """Return what is wrong, by an error text, the files of an environment, or both. Changes nothing.

    Without `prefix` the text alone counts, without `text` the facts alone. Raises `InputError` without either,
    `NotAnEnvironment` where `prefix` holds none, and `PreflightError` for root on another user's environment.
    """
    from envmedic.api import diagnosis
    from envmedic.api.playbooks import load_playbooks
    from envmedic.errors import InputError

    settings = _settings(events)
    place = None if prefix is None else _readable(prefix)
    if text is None:
        if place is None:
            raise InputError("There is nothing to diagnose", hint="Give the prefix of an environment, a text, or both")
        return diagnosis.diagnose(settings, place, ())[0]
    facts = None
    if place is not None:
        from envmedic.api.context.observation import observe

        facts = observe(settings, place)
    lines = text.encode("utf-8", "surrogateescape").splitlines()
    return diagnosis.diagnose_output(settings, load_playbooks(settings), facts, lines, prefix=place, name="text")


def plan(
    prefix: Place,
    text: str | None = None,
    *,
    playbook: str | None = None,
    offline: bool = False,
    find_links: tuple[str, ...] = (),
    events: Events | None = None,
) -> Plan | None:
    """Return the exact repair of what `text` reports, of `playbook`, or of what the facts confirm. Changes nothing.

    None where nothing is reported and nothing is at fault. Raises `NothingToRepair`, `NoSolution`, `HostFault`,
    `NetworkError`, and what `diagnose` raises.
    """
    from envmedic.api import repair
    from envmedic.model.findings import Diagnosis

    settings = _settings(events, offline=offline, find_links=find_links)
    made = repair.plan(settings, _readable(prefix), _wish(text, playbook))
    return None if isinstance(made, Diagnosis) else made


def apply(
    what: Plan | Place,
    text: str | None = None,
    *,
    playbook: str | None = None,
    confirm: Callable[[Plan], bool] | None = None,
    options: ApplyOptions | None = None,
    find_links: tuple[str, ...] = (),
    events: Events | None = None,
) -> Record | None:
    """Carry out a plan as it is, or plan for the prefix `what` and repair it in rounds until the fault is gone.

    `confirm` is asked about each plan before it begins; without it the call itself is the consent. `options` are those
    of ``envmedic apply``, such as ``ApplyOptions(no_gpu=True)``. An interrupted transaction is settled first.

    None where nothing is at fault. Raises `StalePlan` if the environment has changed since the plan, `RepairDeclined`,
    `EnvironmentBusy`, and what `plan` raises.
    """
    from envmedic.api import repair
    from envmedic.model.findings import Diagnosis
    from envmedic.model.plan import Plan
    from envmedic.model.ports import ApplyOptions

    wanted = options or ApplyOptions()
    settings = _settings(events, offline=wanted.offline, find_links=find_links)
    agreed = confirm or _consented
    if isinstance(what, Plan):
        _settled(settings, what.prefix)
        return repair.apply_plan(settings, what, wanted, agreed)
    done = repair.apply(settings, _settled(settings, what), _wish(text, playbook), wanted, agreed)
    return None if isinstance(done, Diagnosis) else done


def undo(
    prefix: Place,
    *,
    to: str | None = None,
    accept: Callable[[tuple[str, ...]], bool] | None = None,
    events: Events | None = None,
) -> Record:
    """Bring the environment back as it was before its last transaction, or before the transaction `to`.

    `accept` is asked where the present content of files would be set aside, with their paths; without it such an undo
    is declined. Raises `RepairDeclined`, `InputError` where there is nothing to go back to, `EnvironmentBusy`.
    """
    from envmedic.api import generations

    settings = _settings(events)
    return generations.undo(settings, _settled(settings, prefix), to, (), accept or _declined)


def snapshot(prefix: Place, message: str = "", *, events: Events | None = None) -> Record:
    """Keep the environment as it is as a generation that `undo` can go back to. The environment stays as it is.

    Raises `EnvironmentBusy`, and `PreflightError` where it cannot be cloned or is protected.
    """
    from envmedic.api import generations
    from envmedic.model.ports import ApplyOptions

    settings = _settings(events)
    return generations.snapshot(settings, _settled(settings, prefix), message, ApplyOptions())


def _settings(events: Events | None, *, offline: bool = False, find_links: tuple[str, ...] = ()) -> Settings:
    from envmedic.api.context.settings import Settings
    from envmedic.model.events import EventStream

    stream = EventStream(() if events is None else (events,))
    return Settings(stream=stream, offline=offline, find_links=find_links)


def _wish(text: str | None, playbook: str | None) -> RepairRequest:
    from envmedic.api.context.settings import RepairRequest
    from envmedic.api.context.texts import keep_text

    return RepairRequest(playbook=playbook, log=None if text is None else str(keep_text(text)))


def _readable(prefix: Place) -> Path:
    """Return the prefix as `envmedic -p` finds it. Raises NotAnEnvironment and PreflightError."""
    from envmedic.api.context.settings import NamedTarget
    from envmedic.api.context.target import find_prefix
    from envmedic.owner import require_own

    require_own(Path(prefix))
    return find_prefix(NamedTarget(prefix=os.fspath(prefix)))


def _settled(settings: Settings, prefix: Place) -> Path:
    """Return the prefix after what was interrupted there is settled. Raises as `_readable`, and RecoveryNeeded."""
    from envmedic.api.context.settings import NamedTarget
    from envmedic.api.recovery import settled_prefix
    from envmedic.owner import require_own

    require_own(Path(prefix))
    return settled_prefix(settings, NamedTarget(prefix=os.fspath(prefix)))


def _consented(_plan: Plan) -> bool:
    return True


def _declined(_paths: tuple[str, ...]) -> bool:
    return False
