"""Use cases on generations of an environment: undo, redo, history, diff, prune."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from envmedic import __version__, planner, redact
from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.context.wiring import check_runner, engine_ports
from envmedic.engine.generations import generations, state_diff
from envmedic.engine.generations.undo_losses import Loss
from envmedic.engine.store import journal as journals
from envmedic.engine.store.context import TransactionContext
from envmedic.engine.store.interruption import Cancel, never
from envmedic.engine.store.layout import Store
from envmedic.engine.store.protection import refuse_protected
from envmedic.engine.transaction import transaction
from envmedic.model.facts import Host
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Difference, History, KeepLimits, KeptTree, NewFiles, Record
from envmedic.model.registries.modes import AllowName
from envmedic.probe.packages.distributions import states

AcceptLoss = Callable[[tuple[str, ...]], bool]
"""Asks whether to continue although the current content of these paths would be lost."""
KeepNew = Callable[[NewFiles], bool]
"""Asks whether new files are carried over into the tree that comes back; called where there are some."""
DropNew = Callable[[tuple[KeptTree, ...]], bool]
"""Asks whether trees are removed with files that exist nowhere else; called where there are some."""


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
        """Exchange the live generation for another, and return the record of the transaction."""


def undo(  # `redo` too
    settings: Settings,
    prefix: Path,
    to: str | None,
    allow: tuple[AllowName, ...],
    accept: AcceptLoss,
    *,
    keep_new: KeepNew | None = None,
    cancel: Cancel = never,
) -> Record:
    """Restore the environment as it was before the live generation, byte for byte, with new files if so wanted."""
    session = _session(settings, prefix, allow, cancel)
    return generations.undo(session, to=to, accept=_asking(accept), keep_new=keep_new)


def redo(  # `undo` too
    settings: Settings,
    prefix: Path,
    to: str | None,
    allow: tuple[AllowName, ...],
    accept: AcceptLoss,
    *,
    cancel: Cancel = never,
) -> Record:
    """Restore an undone repair."""
    return generations.redo(_session(settings, prefix, allow, cancel), to=to, accept=_asking(accept))


def _session(settings: Settings, prefix: Path, allow: tuple[AllowName, ...], cancel: Cancel) -> TransactionContext:
    target = EnvironmentTarget.of(prefix)
    return TransactionContext.of(
        target.prefix,
        ApplyOptions(allow=allow, timeout_s=settings.timeout_s),
        # no plan is made here: what the user agrees to are the losses, by `accept`
        engine_ports(settings, target, confirm=lambda _plan: True),
        check_runner(settings, target),
        settings.stream,
        cancel=cancel,
    )


def _asking(accept: AcceptLoss) -> Callable[[Loss], bool]:
    return lambda loss: accept((*loss.damaged, *loss.changed))


def history(settings: Settings, prefix: Path) -> History:
    """Return every transaction on the environment, newest first."""
    del settings
    return generations.history(prefix)


def difference(settings: Settings, prefix: Path, before: str | None = None, after: str | None = None) -> Difference:
    """Return the difference of two states of the environment; by default the changes made outside envmedic.

    A state is named by a transaction, ``found`` or ``now``. Raises InputError for an unknown one.
    """
    del settings
    return state_diff.difference(prefix, states, before=before, after=after)


def snapshot(settings: Settings, prefix: Path, text: str, options: ApplyOptions) -> Record:
    """Keep the environment as it is now as a generation with `text`, and return the record. It stays as it is.

    What runs from it keeps running. Errors before the transaction begins are raised; later ones are in the record.
    """
    target = EnvironmentTarget.of(prefix)
    refuse_protected(target.real, options.allow)
    plan = planner.named(
        Plan(
            envmedic=__version__,
            created=journals.now(),
            prefix=str(target.prefix),
            real_prefix=str(target.real),
            environment_digest="",
            purpose="snapshot",
            text=redact.redact_text(text),
            playbook=None,
            fault=None,
            host=Host(source="not observed"),
            steps=(),
        )
    )
    return transaction.apply(
        plan,
        options=msgspec.structs.replace(options, allow=(*options.allow, "in-use")),
        ports=engine_ports(settings, target, confirm=lambda _plan: True),
        checks=check_runner(settings, target),
        stream=settings.stream,
    )


def surplus(settings: Settings, prefix: Path, limits: KeepLimits) -> tuple[KeptTree, ...]:
    """Return the kept trees beyond `limits`, with the files that exist nowhere else."""
    del settings
    return generations.surplus(Store.of(prefix), limits)


def prune(settings: Settings, prefix: Path, limits: KeepLimits, drop_new: DropNew) -> History:
    """Remove the old trees beyond `limits`, and return the remaining history.

    Trees with files that exist nowhere else stay, unless `drop_new` says otherwise.
    """
    generations.prune(prefix, limits=limits, stream=settings.stream, drop_new=drop_new)
    return generations.history(prefix)
