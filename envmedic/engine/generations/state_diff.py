"""Differences between two states of an environment: generations, or the environment as it is now. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envmedic.engine.generations.generations import FOUND
from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker
from envmedic.engine.store.context import load_record
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.errors import InputError, RecoveryNeeded
from envmedic.model.record import COMPLETE_STATES, Difference, DistributionChange, DistributionState, Record
from envmedic.tree import fingerprint

NOW: Final = "now"
"""As a state: the environment as it is now, including changes made without envmedic."""
States = Callable[[Path], tuple[DistributionState, ...]]


@dataclass(frozen=True)
class _State:
    """One side: distributions, and every path with what `stat` said of it."""

    name: str
    distributions: tuple[DistributionState, ...]
    files: fingerprint.Fingerprint | None
    """None where they were removed with the tree."""


def difference(prefix: Path, states: States, *, before: str | None = None, after: str | None = None) -> Difference:
    """What differs from `before` to `after`: ids of transactions, `FOUND` or `NOW`.

    Without them it is what was changed outside envmedic: from the live generation to what is there now. Raises
    InputError where no transaction is known or none is called so, RecoveryNeeded where a record cannot be read.
    """
    store = Store.of(prefix)
    known = tuple(_known(store))
    if not known:
        raise InputError(
            f"There is nothing to compare {store.prefix} with",
            cause="envmedic has not repaired it",
            hint="`envmedic diagnose` tells how it is",
        )
    live = marker.read(store.prefix) or FOUND
    first = _state(store, known, states, before or live)
    second = _state(store, known, states, after or NOW)
    # Inodes tell an edited file from a copy only within one tree: clones have inodes of their own.
    same_tree = (first.name, second.name) == (live, NOW)
    files = fingerprint.Differences()
    if first.files is not None and second.files is not None:
        sides = (first.files, second.files)
        files = fingerprint.compare(*(sides if same_tree else map(_without_inodes, sides)))
    return Difference(
        prefix=str(prefix),
        before=first.name,
        after=second.name,
        distributions=tuple(_changes(first.distributions, second.distributions)),
        added=fingerprint.readable(files.added),
        removed=fingerprint.readable(files.removed),
        changed=fingerprint.readable(files.changed),
        files_compared=first.files is not None and second.files is not None,
    )


def _known(store: Store) -> Iterator[tuple[TransactionDirectory, Record]]:
    """Transactions that made a generation, oldest first."""
    for directory in sorted(store.transactions(), key=lambda item: item.transaction):
        journal = journals.read(directory)
        if journal.state in COMPLETE_STATES:
            yield directory, load_record(directory, journal)


def _state(store: Store, known: Iterable[tuple[TransactionDirectory, Record]], states: States, name: str) -> _State:
    if name == NOW:
        return _State(NOW, states(store.prefix), fingerprint.fingerprint(store.prefix))
    if name == FOUND:
        directory, record = [item for item in known if item[1].parent is None][-1]
        return _State(FOUND, record.before, _loaded(directory.fingerprint))
    for directory, record in known:
        if directory.transaction == name:
            return _State(name, record.after, _loaded(directory.live_fingerprint))
    raise InputError(
        f"{store.prefix} has no generation {name}",
        hint=f"Name a transaction of `envmedic history`, {FOUND} for what was there before, or {NOW}",
    )


def _loaded(path: Path) -> fingerprint.Fingerprint | None:
    try:
        return fingerprint.Fingerprint.load(path)
    except FileNotFoundError:
        return None  # see `retention`
    except (OSError, ValueError) as error:
        raise RecoveryNeeded(
            "What the generation consisted of cannot be told",
            cause=str(error),
            hint=f"Restore {path} from a backup; the environment works without it",
        ) from error


def _without_inodes(found: fingerprint.Fingerprint) -> fingerprint.Fingerprint:
    """A copy of a file is the same file here: generations are clones of each other."""
    entries = {name: entry._replace(inode=0) for name, entry in found.entries.items()}
    return fingerprint.Fingerprint(entries, found.attributes)


def _changes(before: Iterable[DistributionState], after: Iterable[DistributionState]) -> Iterator[DistributionChange]:
    first, second = ({item.name: item.version for item in side} for side in (before, after))
    for name in sorted({*first, *second}):
        if first.get(name) != second.get(name):
            yield DistributionChange(name=name, before=first.get(name), after=second.get(name))
