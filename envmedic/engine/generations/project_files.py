"""Manifest and lock of the project, exchanged with the environment: the edits of a repair, and the way back.

Before the exchange of the trees the new files lie complete beside the journal, with a list that names them. Each is
exchanged with the file in the project once the environment is in place and works there, so that what is kept is always
the other content, the file of the user itself where the file system can exchange two files. The digest of a file tells
on which side it is: recovery goes on from there, towards the state that the journal leads to. A file with neither
content was edited by somebody else; then all of them stay as they are.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

import msgspec

from envmedic.engine.fs.durable import make_directory, write_durably, write_whole
from envmedic.engine.fs.exchange import exchange, sync_directory
from envmedic.engine.store.context import OpenTransaction
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import RECOVERABLE, PreflightError, RecoveryNeeded, StalePlan
from envmedic.model.base import to_json
from envmedic.model.pins import EditedFile, FileDifference, ProjectEdit
from envmedic.wording import unified

_SAVED = ".saved"


def require_as_planned(edit: ProjectEdit) -> None:
    """Raise StalePlan if a file of the project is not what the edit was made from, PreflightError if none can be."""
    for item in edit.files:
        path = Path(edit.folder) / item.name
        if _digest(path) != item.before_sha256:
            raise StalePlan(
                f"{path} has changed since the plan was made",
                cause="What it would say after the repair was made from another content",
                hint="Make a new plan, or repair without --edit-project",
            )


def prepare(transaction: OpenTransaction, edit: ProjectEdit) -> None:
    """Write the new files beside the journal; the caller makes them durable. Raises as `require_as_planned`, OSError."""
    directory, folder = transaction.directory, Path(edit.folder)
    require_as_planned(edit)
    make_directory(directory.project)
    if directory.project.stat().st_dev != folder.stat().st_dev:
        raise PreflightError(
            f"{folder} is on another file system than the repaired copy",
            cause="Its files could not be exchanged together with the environment",
            hint="Repair without --edit-project, and run the command that the plan names",
        )
    for item in edit.files:
        mode = stat.S_IMODE((folder / item.name).stat().st_mode)
        write_whole(_aside(directory.project, item.name), item.after.encode(), mode=mode)
    write_whole(directory.project_edit, to_json(edit).encode())
    transaction.session.point("project-prepared")


def place(transaction: OpenTransaction) -> None:
    """Put the new files into the project, or leave all where one was edited meanwhile. Raises OSError."""
    _settle(transaction, forward=True)


def restore(transaction: OpenTransaction) -> None:
    """Put the files of the project back, as `place`."""
    _settle(transaction, forward=False)


def forget(transaction: OpenTransaction) -> None:
    """Remove what a transaction that came to nothing kept of the project. Raises OSError."""
    directory = transaction.directory
    if directory.project_edit.exists():
        directory.project_edit.unlink()
    if directory.project.is_dir():
        shutil.rmtree(directory.project)


def _settle(transaction: OpenTransaction, *, forward: bool) -> None:
    edit = _listed(transaction.directory)
    if edit is None:
        return
    kept, folder = transaction.directory.project, Path(edit.folder)
    pending, edited = [], []
    for item in edit.files:
        _mend(_aside(kept, item.name))
        wanted, other = item.after_sha256, item.before_sha256
        wanted, other = (wanted, other) if forward else (other, wanted)
        found, aside = _digest(folder / item.name), _digest(_aside(kept, item.name))
        if aside == wanted and found == other:
            pending.append((item, other))
        elif aside == wanted and found == wanted and not forward:  # put back by hand: a redo needs what was written
            write_durably(_aside(kept, item.name), item.after.encode())
        elif aside == wanted and found != wanted:
            edited.append(item)
    if not edited:
        edited = [item for item, other in pending if not _exchanged(transaction, folder, item.name, other)]
        for parent in {(folder / item.name).parent for item in edit.files}:
            sync_directory(parent)
        sync_directory(kept)
    written = bool(pending) or transaction.record.project in {"edited", "restored"}
    left = tuple(_difference(folder, kept, item, forward=forward) for item in edited)
    transaction.note(
        project="left" if left else "edited" if forward else "restored" if written else "", project_left=left
    )
    if left:
        names = ", ".join(str(folder / item.name) for item in left)
        rest = "manifest and lock stay as they are" if len(edit.files) > 1 else "it stays as it is"
        transaction.session.notice("project-left", f"{names} was edited by somebody else: {rest}")


def _aside(kept: Path, name: str) -> Path:
    """Where the other content of a file is kept; the manifest of a member of a workspace has a path for a name."""
    return kept / name.replace("/", "%2F")


def _listed(directory: TransactionDirectory) -> ProjectEdit | None:
    try:
        return msgspec.json.decode(directory.project_edit.read_bytes(), type=ProjectEdit)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise RecoveryNeeded(
            f"The list of edited project files of transaction {directory.transaction} cannot be read",
            cause=f"{directory.project_edit}: {error}",
            hint=f"Put manifest and lock right by hand, from {directory.project}, and remove that list",
            environment=RECOVERABLE,
        ) from error


def _exchanged(transaction: OpenTransaction, folder: Path, name: str, expected: str) -> bool:
    """Exchange a file of the project with the kept one; False, with nothing changed, if it was edited just before."""
    kept, target = _aside(transaction.directory.project, name), folder / name
    point = transaction.session.point
    if transaction.journal.method == "exchange":
        exchange(kept, target)
        if _digest(kept) != expected:
            exchange(kept, target)
            return False
    else:  # the file is never missing, unlike a tree in between
        saved, status = kept.with_name(name + _SAVED), target.stat()
        write_durably(saved, target.read_bytes(), mode=stat.S_IMODE(status.st_mode))
        os.utime(saved, ns=(status.st_atime_ns, status.st_mtime_ns))
        point("project-saved")
        kept.rename(target)
        point("project-replaced")
        saved.rename(kept)
    point("project-file")
    return True


def _mend(kept: Path) -> None:
    """Complete or revert what a kill left of two renames."""
    saved = kept.with_name(kept.name + _SAVED)
    if not saved.exists():
        return
    if kept.exists():
        saved.unlink()
    else:
        saved.rename(kept)


def _difference(folder: Path, kept: Path, item: EditedFile, *, forward: bool) -> FileDifference:
    """What was changed in a file since, and what was therefore not done; `kept` has the content that was to come."""
    target = folder / item.name
    now = target.read_bytes().decode(errors="replace") if target.is_file() else ""
    if forward:  # what the repair had found there is nowhere any more
        return FileDifference(name=item.name, left_out=unified(item.name, now, item.after))
    former = _aside(kept, item.name).read_bytes().decode(errors="replace")
    return FileDifference(
        name=item.name, since=unified(item.name, item.after, now), left_out=unified(item.name, item.after, former)
    )


def _digest(path: Path) -> str | None:
    """SHA-256 of a regular file; None for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
