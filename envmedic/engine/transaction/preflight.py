"""Preflight: which ways to clone, stage and exchange work here, found out by trying before anything changes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.clone import disk_space, losses
from envmedic.engine.clone.clone import probe_modes
from envmedic.engine.fs import scratch
from envmedic.engine.fs.exchange import ExchangeObstacle, probe_exchange, probe_link
from envmedic.engine.stage.runners import probe_namespace
from envmedic.engine.store.protection import refuse_in_use, refuse_protected
from envmedic.engine.store.swap import refuse_link
from envmedic.errors import NotAnEnvironment, PreflightError
from envmedic.linked_prefix import TREES, linked_tree, live_tree, real_prefix
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions, ProcessUser
from envmedic.model.registries.modes import CLONE_MODES, CloneMode, ExchangeMethod, StagingMode
from envmedic.owner import is_open
from envmedic.tree import mounts

_MARGIN_BYTES = 64 << 20
_MARGIN_INODES = 2000
"""Reserve for byte-code caches, logs and files of new distributions, whose number is unknown beforehand."""
_EXCHANGE_HINTS: dict[ExchangeObstacle, str] = {
    "mount-point": "Mount its parent directory instead, or copy the environment off the mount",
    "image-layer": "Move it out of the image layer once: cp -a PREFIX PREFIX.new && rm -rf PREFIX && mv PREFIX.new PREFIX",
    "cross-device": "Move the environment so that it and its parent are on one file system",
    "permission": "Run envmedic as the owner of the environment and of its parent directory",
}


@dataclass(frozen=True)
class Capabilities:
    """How the transaction will be carried out."""

    prefix: Path
    """The real path."""
    clone: CloneMode
    staging: StagingMode
    exchange: ExchangeMethod
    pid_namespace: bool
    """Whether commands run in a PID namespace, so that no process outlives envmedic."""
    size: disk_space.Size
    clone_bytes: int
    """Upper estimate of the disk space that the clone takes before the first step."""
    notes: tuple[str, ...] = ()
    """Notes for the user on why a better way was not possible."""
    seen: tuple[str, ...] = ()
    """Those of them on what others see of the exchange, which the user is told before anything is asked."""


def preflight(
    prefix: Path,
    plan: Plan,
    options: ApplyOptions,
    *,
    processes: Sequence[ProcessUser],
    workdir: Path | None = None,
) -> Capabilities:
    """Find out how the transaction of `plan` on `prefix` can be carried out; the environment stays unchanged.

    `workdir` is the directory of the clone, by default ``<parent>/.envmedic``. If it does not exist, preflight creates
    it for its probes and removes it again. Raises NotAnEnvironment, EnvironmentBusy if `processes` run from the
    prefix, and PreflightError.
    """
    # Refusals that need no probe come first: they leave no trace, and their messages are the most specific.
    real = _real(prefix)
    refuse_protected(real, options.allow)
    refuse_in_use(real, processes, options.allow)
    _refuse_unwritable(real)
    _refuse_inner_mounts(live_tree(real))
    with _existing(workdir or real.parent / ".envmedic") as directory:
        method, exchange_notes = _choose_exchange(real, directory, options)
        mode, clone_notes = _choose_clone(real, directory, options)
        losses.refuse(real, losses.foreseen(real, mode, directory), options.allow)
        size = disk_space.measure(real, mode)
        _refuse_no_space(directory, size, plan)
        staging, pid_namespace, staging_notes = _choose_staging(real, directory, options)
    return Capabilities(
        prefix=real,
        clone=mode,
        staging=staging,
        exchange=method,
        pid_namespace=pid_namespace,
        size=size,
        clone_bytes=size.clone_bytes,
        notes=(*exchange_notes, *clone_notes, *staging_notes),
        seen=exchange_notes,
    )


def _real(prefix: Path) -> Path:
    try:
        real = prefix.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise NotAnEnvironment(f"{prefix} cannot be reached", cause=str(error), hint="Name an environment") from error
    if not real.is_dir():
        raise NotAnEnvironment(f"{prefix} is not a directory", hint="Name an environment's directory with --prefix")
    return real_prefix(real)


def _refuse_unwritable(prefix: Path) -> None:
    for path in (prefix.parent, prefix):
        # Root passes os.access on a read-only mount, so the mount itself is asked first.
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            raise PreflightError(
                f"{path} is on a read-only file system",
                cause="A repair needs room beside the environment",
                hint="Mount it writable, or repair a copy of the environment elsewhere",
            )
        if not os.access(path, os.W_OK | os.X_OK):
            what = "the environment's parent directory" if path == prefix.parent else "the environment itself"
            raise PreflightError(
                f"{path} is not writable",
                cause=f"Exchanging directories needs write permission on {what}",
                hint="Run envmedic as the owner of both, or move the environment",
            )


def _refuse_inner_mounts(prefix: Path) -> None:
    inside = mounts.below(prefix)
    if inside:
        raise PreflightError(
            f"Something is mounted inside {prefix}",
            cause="A clone would hold the mounted files, or none of them, in place of the mount",
            hint=f"Unmount {inside[0]} for the time of the repair",
            details=inside,
        )


@contextmanager
def _existing(workdir: Path) -> Iterator[Path]:
    """The directory for probes; removed afterwards if it did not exist before."""
    try:
        workdir.mkdir(0o700)
    except FileExistsError:
        yield workdir
        return
    except OSError as error:
        raise PreflightError(
            f"{workdir} cannot be made", cause=error.strerror, hint=f"Make {workdir.parent} writable"
        ) from error
    try:
        yield workdir
    finally:
        _remove_empty(workdir)


def _remove_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:  # another envmedic began to use it
            raise


def _choose_exchange(prefix: Path, workdir: Path, options: ApplyOptions) -> tuple[ExchangeMethod, tuple[str, ...]]:
    if linked_tree(prefix) is not None or options.layout == "symlink":
        _refuse_open(prefix)
    if linked_tree(prefix) is not None:
        refuse_link(prefix)
        probe = probe_link(prefix, workdir)
    else:
        probe = probe_exchange(prefix, workdir)
    if probe.method is None:
        raise PreflightError(
            f"A clone cannot take the place of {prefix}",
            cause=probe.reason,
            hint=_EXCHANGE_HINTS.get(probe.code, "Move the environment to a local file system").replace(
                "PREFIX", os.fspath(prefix)
            ),
        )
    if probe.method == "link":
        return probe.method, ()
    missing = f"{probe.reason}: for a moment during the exchange {prefix} will not exist"
    if options.layout == "symlink":
        told = f"{prefix} becomes a symbolic link to a tree in {prefix.parent / TREES}: each later exchange replaces that link in one step"
        return "link", (told, *((missing,) if probe.method == "two-renames" else ()))
    if probe.method == "two-renames":
        return probe.method, (f"{missing}; with --layout symlink it becomes a link, and later ones take one step",)
    return probe.method, ()


def _refuse_open(prefix: Path) -> None:
    if is_open(prefix.parent):
        raise PreflightError(
            f"{prefix} cannot be a symbolic link in a directory that other users can change",
            cause=f"They could let it lead anywhere: {prefix.parent} is not writable for its owner alone",
            hint=f"Make it so (chmod go-w), or leave out --layout symlink where {prefix} is no link yet",
        )


def _choose_clone(prefix: Path, workdir: Path, options: ApplyOptions) -> tuple[CloneMode, tuple[str, ...]]:
    try:
        refused = probe_modes(prefix, workdir)
    except OSError as error:
        raise PreflightError(
            f"{prefix} cannot be cloned", cause=f"{error.strerror}: {error.filename}", hint="Check its permissions"
        ) from error
    if options.clone != "auto":
        if refused[options.clone]:
            raise PreflightError(
                f"--clone {options.clone} does not work here",
                cause=refused[options.clone],
                hint=f"Leave it out: --clone {_first_working(refused)} would be taken",
            )
        return options.clone, ()
    if not options.share_links and refused["reflink"]:
        return "copy", ("all is copied: this installer writes into files that it finds, which hard links would share",)
    mode = _first_working(refused)
    return mode, (f"hard links do not work here, so all is copied: {refused['link']}",) if mode == "copy" else ()


def _first_working(refused: dict[CloneMode, str]) -> CloneMode:
    return next(mode for mode in CLONE_MODES if not refused[mode])


def _refuse_no_space(workdir: Path, size: disk_space.Size, plan: Plan) -> None:
    free_bytes, free_inodes = disk_space.free(workdir)
    # a second clone is made where what passed before is asked for; of copies there is never more than one
    clones = 1 if size.mode == "copy" else 2
    needed = clones * size.clone_bytes + plan.disk_bytes + plan.download_bytes + _MARGIN_BYTES
    if free_bytes < needed:
        raise PreflightError(
            f"Not enough free space in {workdir.parent}: {_megabytes(free_bytes)} of {_megabytes(needed)}",
            cause=f"The clone ({size.mode}) takes up to {_megabytes(clones * size.clone_bytes)}, the repair up to "
            f"{_megabytes(plan.disk_bytes + plan.download_bytes)}",
            hint="Free some space; `envmedic prune` removes kept generations",
        )
    inodes = clones * size.clone_inodes + _MARGIN_INODES
    if free_inodes is not None and free_inodes < inodes:
        raise PreflightError(
            f"Not enough free inodes in {workdir.parent}: {free_inodes} of {inodes}",
            cause=f"The clone ({size.mode}) takes {clones * size.clone_inodes}",
            hint="Remove some files; `envmedic prune` removes kept generations",
        )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


def _choose_staging(prefix: Path, workdir: Path, options: ApplyOptions) -> tuple[StagingMode, bool, tuple[str, ...]]:
    if options.staging == "relocate" and options.witnesses:
        raise PreflightError(
            "Witnesses prove the copy at the path of the environment, which --staging relocate cannot show",
            hint="Leave out --staging, or --witnesses",
        )
    if options.staging == "relocate":
        return "relocate", False, ()
    with scratch.scratch(workdir, scratch.names(prefix)[0]) as stand_in:
        probe = probe_namespace(prefix, stand_in)
    if probe.ok:
        return "namespace", probe.pid_namespace, (probe.note,) if probe.note else ()
    if options.staging == "namespace" or options.witnesses:
        hint = "Leave out --witnesses" if options.witnesses else "Use --staging relocate"
        raise PreflightError("--staging namespace does not work here", cause=probe.reason, hint=hint)
    return "relocate", False, (f"steps run beside the environment and their paths are rewritten: {probe.reason}",)
