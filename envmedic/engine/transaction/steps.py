"""Carrying out the steps of a plan in a clone.

Removing and installing is the installer's business, run through the stage; everything else is written
here, as new inodes and at paths that `safe_paths` has approved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import canonicalize_name

from envmedic.conda_meta.pins_and_marks import PINNED
from envmedic.engine.clone import listed_files
from envmedic.engine.clone.shared_links import refuse_links_out, refuse_outside
from envmedic.engine.fs import trash
from envmedic.engine.fs.safe_paths import locate, replace_file
from envmedic.engine.store.workspace import Workplace, run
from envmedic.engine.transaction import activation_edits, file_repairs, rebuild_step, shared_files
from envmedic.engine.transaction.installed_record import remove_or_install
from envmedic.errors import InstallerError, InternalError
from envmedic.model.conda import CondaChange
from envmedic.model.events import Notice
from envmedic.model.plan import (
    CONDA_PINS,
    CONSTRAINTS,
    Advise,
    FileRepair,
    Install,
    Pin,
    Purge,
    Rebuild,
    RunInstaller,
    SetEnv,
    Step,
    UnsetEnv,
)
from envmedic.tree.fingerprint import UV_LOCK

__all__ = ["CONSTRAINTS", "Workplace", "carry_out", "commands"]

_UV_NOTES = "uv_cache.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def commands(step: Step, place: Workplace) -> tuple[tuple[str, ...], ...]:
    """The argv of each command of `step`, as it will run."""
    if isinstance(step, Purge | Install):
        return place.installer.commands(step, str(place.runner.python))
    if isinstance(step, Rebuild):
        return (place.installer.build_command(step, str(place.runner.python)),)
    if isinstance(step, RunInstaller):
        return (step.words,)
    if isinstance(step, CondaChange):
        argv = place.conda_side.command(step, str(place.runner.python.parent.parent))
        return (argv,) if argv else ()
    return ()


def carry_out(step: Step, place: Workplace) -> str:
    """Do `step` in the clone and return what there is to say of it.

    Raises InstallerError when a command fails or leaves a distribution in parts, InputError for a path outside the
    clone, PreflightError for files that clone and original share, OSError.
    """
    had_lock = os.path.lexists(place.tree / UV_LOCK)
    if isinstance(step, CondaChange):
        return _change_conda(step, place)
    told = ""
    if isinstance(step, Rebuild):
        told = rebuild_step.carry_out(step, place)
    elif isinstance(step, Purge | Install):
        remove_or_install(step, place)
    elif isinstance(step, RunInstaller):
        _run_installer(place)
    _drop_notes_of_uv(step, place, had_lock=had_lock)
    if isinstance(step, Purge):
        return _delete(step, place)
    if isinstance(step, SetEnv | UnsetEnv):
        return _keep({**step.variables} if isinstance(step, SetEnv) else dict.fromkeys(step.names), place)
    if isinstance(step, Pin):
        return _pin(step, place)
    if isinstance(step, FileRepair):
        return file_repairs.carry_out(step, place)
    if isinstance(step, Advise):
        place.emit(Notice(code="advice", message=step.text))
    return told


def _drop_notes_of_uv(step: Step, place: Workplace, *, had_lock: bool) -> None:
    """Remove what uv leaves beside a wheel's files: notes on its cache, with their rows in RECORD, and its lock.

    Only the clone's own: this transaction holds uv's lock of both trees later, when no step runs any more.
    """
    if not had_lock and (place.tree / UV_LOCK).is_file():
        locate(place.tree, UV_LOCK).unlink()
    names = [item.name for item in step.artifacts] if isinstance(step, Install) else []
    names += [step.distribution.name] if isinstance(step, Rebuild) else []
    wanted = set(map(canonicalize_name, names))
    for notes in place.tree.glob(f"lib*/python*/site-packages/*.dist-info/{_UV_NOTES}"):
        info = notes.parent
        if info.parent.parent.parent.is_symlink() or canonicalize_name(info.name.partition("-")[0]) not in wanted:
            continue
        row, record = f"{info.name}/{_UV_NOTES},", info / "RECORD"
        rows = record.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = "".join(item for item in rows if not item.startswith(row))
        replace_file(place.tree, str(record.relative_to(place.tree)), kept.encode())
        locate(place.tree, str(notes.relative_to(place.tree))).unlink()


def _run_installer(place: Workplace) -> None:
    """Run the user's own command; it removes files and makes others, which `ApplyOptions.share_links` relies on."""
    command = place.command
    if command is None:
        raise InternalError("The plan runs a command, and none was given")
    refuse_links_out(place.tree, place.runner.python.parent.parent)
    try:
        with shared_files.kept(place):
            run(command.argv(str(place.runner.python)), place, env=command.variables, directory=command.directory)
    except InstallerError as error:
        error.hint = command.hint
        raise


def _change_conda(step: CondaChange, place: Workplace) -> str:
    """Let conda's side of the installers do it: files that it replaces it makes anew, in directories of the clone."""
    refuse_outside(place.tree, place.runner.python.parent.parent)
    place.poll()
    with shared_files.kept(place):
        detail = place.conda_side.carry_out(step, place.runner, place.emit, timeout_s=place.timeout_s)
    place.poll()
    return detail


def _delete(step: Purge, place: Workplace) -> str:
    """Delete what is named, except for files that distributions which stay list as theirs."""
    named = {relative: locate(place.tree, relative) for relative in step.leftovers}
    there = {relative: path for relative, path in named.items() if os.path.lexists(path)}
    if not there:
        return ""
    listed = listed_files.listed_files(place.tree, there.values())
    others = [path for item in step.by_path for path in listed_files.own_files(place.tree, item.metadata_path)]
    gone = [relative for relative, path in there.items() if _discard(path, listed, place)]
    for path in others:
        _discard(path, listed, place)
    return f"deleted {', '.join(gone)}" if gone else ""


def _discard(path: Path, listed: frozenset[str], place: Workplace) -> bool:
    """Delete what of `path` nobody lists; returns whether there was anything."""
    parts = list(listed_files.unlisted(path, listed)) if os.path.lexists(path) else []
    for part in parts:
        trash.discard(part, place.trash)
    return bool(parts)


def _keep(changes: dict[str, str | None], place: Workplace) -> str:
    written = activation_edits.keep(place.tree, changes)
    for script in activation_edits.not_written(place.tree):
        place.emit(
            Notice(code="variables-not-kept", message=f"{script} does not set {', '.join(changes)}", level="warning")
        )
    return f"written to {', '.join(written)}; a Python started without activation does not see it"


def _pin(step: Pin, place: Workplace) -> str:
    told = []
    if step.constraints:
        _add(CONSTRAINTS, step.constraints, place)
        told.append(f"written to {CONSTRAINTS}; use it with `pip install -c` or PIP_CONSTRAINT")
    if step.conda:
        _add(PINNED, step.conda, place)
        told.append(f"written to {PINNED}, which conda reads")
    if step.conda and step.keeps:
        _add(CONDA_PINS, step.conda, place)
    return "; ".join(told)


def _add(relative: str, lines: Iterable[str], place: Workplace) -> None:
    path = locate(place.tree, relative)
    old = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    kept = {_pinned(line): line for line in [*old, *lines]}
    replace_file(place.tree, relative, ("\n".join(kept.values()) + "\n").encode())


def _pinned(constraint: str) -> str:
    """What a line constrains: a later line on the same distribution takes its place."""
    name = _NAME.match(constraint.strip())
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else constraint
