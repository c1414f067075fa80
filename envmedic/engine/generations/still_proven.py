"""Whether a repaired tree that was set aside is, on this machine, what its checks have proven."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from envmedic.engine.generations import undo_losses
from envmedic.engine.store.context import OpenTransaction
from envmedic.engine.verify.verdict import FAILURES
from envmedic.model.facts import Host
from envmedic.model.ports import EnginePorts


def still_proven(transaction: OpenTransaction, ports: EnginePorts) -> bool:
    """Whether files, driver, GPUs, system libraries and variables are those that the checks of the repair have seen.

    Raises RecoveryNeeded where a fingerprint cannot be read, OSError where the tree cannot.
    """
    record, directory = transaction.record, transaction.directory
    if ports.host is None or record.failure is not None or not record.smoke:
        return False
    if any(outcome.status in FAILURES for outcome in (*record.smoke, *record.checks_after)):
        return False
    if _seen(ports.host()) != _seen(record.plan.host) or not _base_is_older(directory.tree, record.started):
        return False
    return not undo_losses.changes(directory.live_fingerprint, directory.tree)


def _seen(host: Host) -> tuple[object, ...]:
    gpus = [(gpu.uuid, gpu.name, gpu.compute_capability) for gpu in host.gpus]
    driver = (host.driver_version, host.driver_libraries, gpus, host.lost_gpus)
    variables = [(item.name, item.value) for item in host.variables]
    return (*driver, host.kernel, host.glibc, host.distribution, variables)


def _base_is_older(tree: Path, started: str) -> bool:
    """Whether the interpreter that the tree runs, and its standard library's directory, are as before the repair."""
    python = Path(os.path.realpath(tree / "bin" / "python"))
    if python.is_relative_to(tree):
        return True  # a part of the tree, whose files are compared
    since = dt.datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
    library = next(iter(sorted(tree.glob("lib/python*"))), tree).name
    there = [path for path in (python, python.parent.parent / "lib" / library) if path.exists()]
    return bool(there) and all(path.stat().st_ctime < since for path in there)
