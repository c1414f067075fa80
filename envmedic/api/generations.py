"""The generations of an environment: undo, redo, history, recover, prune."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Protocol, TypedDict

from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.api.context.target import interrupted
from envmedic.api.context.wiring import check_runner, engine_ports, installer_of
from envmedic.engine.generations import generations, recovery
from envmedic.engine.generations.undo_losses import Loss
from envmedic.engine.store.interruption import Cancel, never
from envmedic.errors import ExitCode
from envmedic.model.events import EventStream, Notice
from envmedic.model.modes import AllowName
from envmedic.model.ports import ApplyOptions, CheckRunner, EnginePorts
from envmedic.model.record import Difference, History, Record, Recovery
from envmedic.probe.prefix import targets

AcceptLoss = Callable[[tuple[str, ...]], bool]
"""Asks whether to go on although these paths would not be as they are now."""


class UndoOrRedo(Protocol):
    """`undo` or `redo`."""

    def __call__(
        self,
        settings: Settings,
        prefix: Path,
        to: str | None,
        allow: tuple[AllowName, ...],
        accept: AcceptLoss,
        *,
        cancel: Cancel = never,
    ) -> Record:
        """Go to another generation and return the record of the transaction."""


def settle(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    """Settle the interrupted transactions of the environment, and say so."""
    records = _recover(settings, prefix)
    for record in records:
        message = f"recovered the interrupted transaction {record.transaction}: environment {record.environment}"
        settings.stream.emit(Notice(code="recovered", message=message, level="warning"))
    return records


def _recover(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    installer = cache(partial(installer_of, settings))
    real = Path(os.path.realpath(prefix))
    ports = engine_ports(settings, installer, prefix=real, confirm=lambda _plan: False)
    checks = check_runner(installer, settings, prefix=real)
    return recovery.recover(prefix, ports=ports, checks=checks, stream=settings.stream)


def recover(settings: Settings, target: NamedTarget) -> Recovery:
    """Settle what a crash interrupted; the prefix itself may be missing."""
    if target.prefix is not None and not os.path.lexists(target.prefix) and interrupted(Path(target.prefix)):
        prefix = Path(target.prefix).absolute()
    else:
        prefix = targets.resolve_prefix(name=target.name, prefix=target.prefix, python=target.python)
    return Recovery(prefix=str(prefix), settled=_recover(settings, prefix))


def exit_code(record: Record) -> ExitCode:
    """0 when the transaction did what it was asked to, else its failure's code."""
    return ExitCode.OK if record.failure is None else ExitCode(record.failure.exit_code)


def undo(  # `redo` too
    settings: Settings,
    prefix: Path,
    to: str | None,
    allow: tuple[AllowName, ...],
    accept: AcceptLoss,
    *,
    cancel: Cancel = never,
) -> Record:
    """Bring the environment back as it was before the live generation, byte for byte."""
    travelling = _travelling(settings, prefix, allow)
    return generations.undo(prefix, **travelling, to=to, accept=_asking(accept), cancel=cancel, ahead=settings.ahead)


def redo(  # `undo` too
    settings: Settings,
    prefix: Path,
    to: str | None,
    allow: tuple[AllowName, ...],
    accept: AcceptLoss,
    *,
    cancel: Cancel = never,
) -> Record:
    """Bring an undone repair back."""
    travelling = _travelling(settings, prefix, allow)
    return generations.redo(prefix, **travelling, to=to, accept=_asking(accept), cancel=cancel)


class _Travelling(TypedDict):
    options: ApplyOptions
    ports: EnginePorts
    checks: CheckRunner
    stream: EventStream


def _travelling(settings: Settings, prefix: Path, allow: tuple[AllowName, ...]) -> _Travelling:
    installer, real = cache(partial(installer_of, settings)), Path(os.path.realpath(prefix))
    return {
        "options": ApplyOptions(allow=allow, timeout_s=settings.timeout_s),
        "ports": engine_ports(settings, installer, prefix=real, confirm=lambda _plan: True),
        "checks": check_runner(installer, settings, prefix=real),
        "stream": settings.stream,
    }


def _asking(accept: AcceptLoss) -> Callable[[Loss], bool]:
    return lambda loss: accept((*loss.damaged, *loss.changed))


def history(settings: Settings, prefix: Path) -> History:
    """Every transaction on the environment, newest first."""
    del settings
    return generations.history(prefix)


def difference(settings: Settings, prefix: Path, before: str | None = None, after: str | None = None) -> Difference:
    """What differs between two states of the environment; by default what was changed outside envmedic.

    A state is named by a transaction, ``found`` or ``now``. Raises InputError for one that is not known.
    """
    from envmedic.engine.generations import state_diff  # noqa: PLC0415  # an undo needs neither
    from envmedic.probe.packages.distributions import states  # noqa: PLC0415

    del settings
    return state_diff.difference(prefix, states, before=before, after=after)


def prunable(settings: Settings, prefix: Path, keep: int) -> tuple[str, ...]:
    """The transactions whose kept tree `prune` would remove."""
    del settings
    return generations.prunable(prefix, keep=keep)


def prune(settings: Settings, prefix: Path, keep: int) -> History:
    """Remove all but `keep` old trees, and return what is left."""
    generations.prune(prefix, keep=keep, stream=settings.stream)
    return generations.history(prefix)
