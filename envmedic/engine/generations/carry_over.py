"""New files of the environment that `undo --keep-new` copies into the tree that comes back.

Their list is on disk before the first copy, and all copies are before the journal says `undoing`. A list beside a
journal that says `done` therefore belongs to an undo that did not happen: its copies are removed. Beside `undoing`
the copies are complete.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from envmedic.engine.clone import losses
from envmedic.engine.clone.listed_files import listed_by
from envmedic.engine.fs.durable import write_durably
from envmedic.engine.fs.exchange import sync_directory, sync_filesystem
from envmedic.engine.fs.file_copy import Counts, copy_special, copy_symlink, keep_metadata, reflink_or_copy
from envmedic.engine.fs.syscalls import open_beneath
from envmedic.engine.generations.only_copies import equal
from envmedic.engine.store.context import OpenTransaction, TransactionContext
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import RECOVERABLE, STORAGE_HINTS, EnvironmentBusy, PreflightError, RecoveryNeeded
from envmedic.model.record import NewFiles, Record
from envmedic.tree.fingerprint import Differences, readable

_METADATA = (".dist-info", ".egg-info")
_PROGRESS_EVERY = 100
_LISTED = 20


@dataclass(frozen=True)
class _Carried:
    """The list of an undo, as a file."""

    files: Sequence[str]
    made: Sequence[str]
    """Directories that the kept tree lacked, parents first."""
    times: dict[str, tuple[int, int]]
    """Access and modification times, in ns, of the directories that get new entries."""
    notes: Sequence[str]
    """For the record."""


def new_files(kept: Path, prefix: Path, found: Differences) -> NewFiles:
    """The files and links among `found`, the changes at `prefix`, that the tree `kept` lacks. Raises OSError."""
    listed = listed_by(prefix, (*found.added, *found.changed))
    free: list[str] = []
    taken: list[str] = []
    installed: list[str] = []
    for name in found.added:
        path = prefix / name
        if (path.is_dir() and not path.is_symlink()) or equal(prefix, kept, name):
            continue
        # A distribution was resolved for the repaired environment, and half of one is worse than none.
        if name in listed or _is_metadata(name):
            installed.append(name)
        else:
            (free if _is_free(kept, name) else taken).append(name)
    return NewFiles(tree=str(kept), files=tuple(free), taken=tuple(taken), installed=tuple(installed))


def _is_metadata(name: str) -> bool:
    return name.startswith("conda-meta/") or any(part.endswith(_METADATA) for part in name.split("/"))


def _is_free(tree: Path, name: str) -> bool:
    """Whether `name` can be made in `tree` without replacing anything and through no link."""
    for parent in map(tree.joinpath, reversed(PurePosixPath(name).parents)):
        if not os.path.lexists(parent):
            return True
        if parent.is_symlink() or not parent.is_dir():
            return False
    return not os.path.lexists(tree / name)


@contextmanager
def carried_over(transaction: OpenTransaction, new: NewFiles) -> Iterator[None]:
    """Copy `new.files` into the kept tree, for a block that swaps the trees; without the swap they are removed again.

    Raises PreflightError where they cannot be copied, EnvironmentBusy where one is being written, Interrupted.
    """
    directory = transaction.directory
    try:
        try:
            _copy(transaction, new)
        except OSError as error:
            raise PreflightError(
                f"The new files of {transaction.session.prefix} cannot be carried over",
                cause=str(error),
                hint=f"{STORAGE_HINTS.get(error.errno or 0, 'Mend that')}, or undo without --keep-new: "
                f"then they stay in {directory.tree}",
            ) from error
        yield
    except BaseException:
        if transaction.journal.state == "done":  # else the trees were swapped, or recovery has to see whether
            take_back(transaction.session, directory)
        raise


def _copy(transaction: OpenTransaction, new: NewFiles) -> None:
    session, directory = transaction.session, transaction.directory
    parents = _parents(new.files)
    made = [path for path in parents if not (directory.tree / path).is_dir()]
    times = {path: _times(directory.tree / path) for path in parents if path not in made}
    _write(directory, _Carried(new.files, made, times, _notes(new)))
    session.point("carry-listed")
    counts = Counts()
    with ExitStack() as stack:
        tops = [os.open(top, os.O_RDONLY) for top in (session.prefix, directory.tree)]
        for top in tops:
            stack.callback(os.close, top)
        for path in made:
            above, _, name = path.rpartition("/")
            with _opened(tops[1:], above) as (target,):
                os.mkdir(name, 0o700, dir_fd=target)
        for number, name in enumerate(new.files):
            if number % _PROGRESS_EVERY == 0:
                session.progress("undo", "files", number, len(new.files))
            with _opened(tops, name.rpartition("/")[0]) as (source, target):
                try:
                    _copy_entry(name, source, target, transaction, counts)
                except FileExistsError:  # made by another program meanwhile: no copy, so not to be removed as one
                    _write(directory, _Carried(new.files[:number], made, times, ()))
                    raise
            session.point("file-carried")
        for path in reversed(made):  # last, since every new entry changes their times
            with _opened(tops, path) as (source, target):
                keep_metadata(source, target, os.fstat(source), counts, path)
    lost = {kind: tuple(sorted({path for of, path in counts.lost if of == kind})) for kind, _ in counts.lost}
    lost.pop("links", None)  # an own copy is what is wanted
    if lost:
        _write(directory, _Carried(new.files, made, times, (*_notes(new), *losses.notes(lost))))
    sync_filesystem(directory.path)
    session.point("carried")


def _parents(names: Iterable[str]) -> list[str]:
    """The directories above these paths, parents first; the root is `.`."""
    return sorted({str(parent) for name in names for parent in PurePosixPath(name).parents})


@contextmanager
def _opened(tops: Sequence[int], directory: str) -> Iterator[list[int]]:
    """Descriptors of one directory of several trees."""
    with ExitStack() as stack:
        found = [open_beneath(top, directory or ".") for top in tops]
        for descriptor in found:
            stack.callback(os.close, descriptor)
        yield found


def _copy_entry(path: str, source: int, target: int, transaction: OpenTransaction, counts: Counts) -> None:
    name, go_on = path.rpartition("/")[2], transaction.session.interruption.poll
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    go_on()
    if stat.S_ISLNK(status.st_mode):
        copy_symlink(path, source, target, status, counts)
        return
    if not stat.S_ISREG(status.st_mode):
        copy_special(path, target, status, counts)
        return
    with ExitStack() as stack:
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source)
        stack.callback(os.close, old)
        new = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)
        stack.callback(os.close, new)
        status = os.fstat(old)
        reflink_or_copy(old, new, status, counts, path, reflink=True, go_on=go_on)
        now = os.fstat(old)
        if (now.st_size, now.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
            raise EnvironmentBusy(
                f"{transaction.session.prefix / path} was written while it was being copied",
                hint="End the program that writes it, then run the same command again",
            )
        keep_metadata(old, new, status, counts, path)


def _times(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_atime_ns, status.st_mtime_ns


def _notes(new: NewFiles) -> list[str]:
    """What the record says of new files."""
    texts = (
        (new.files, "Carried over from the repaired environment"),
        (new.taken, f"Not carried over, since other files have these names (the new ones stay in {new.tree})"),
        (new.installed, f"Not carried over, since installers put them there (they stay in {new.tree}; install again)"),
    )
    return [f"{text}: {_some(readable(names))}" for names, text in texts if names]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{len(names)} file{'s' * (len(names) != 1)}: {', '.join(names[:_LISTED])}{more}"


def finish(transaction: OpenTransaction) -> Record:
    """End an undo whose trees were swapped: the record says what was carried over, then the list goes."""
    directory = transaction.directory
    if directory.carried.exists():
        found = _read(directory)
        record = transaction.record
        carried = tuple(sorted({*record.carried, *readable(found.files)}))
        transaction.note(carried=carried, notes=(*record.notes, *found.notes))
    record = transaction.finish("undone")
    forget(directory)
    return record


def forget(directory: TransactionDirectory) -> None:
    """Remove the list of an undo that happened."""
    if directory.carried.exists():
        directory.carried.unlink()
        sync_directory(directory.path)


def take_back(session: TransactionContext, directory: TransactionDirectory) -> None:
    """Remove the copies of an undo that did not happen, then their list. Raises OSError, RecoveryNeeded.

    A copy whose original has gone from the prefix meanwhile stays: it may be the only one.
    """
    if not directory.carried.exists():
        return
    if directory.tree.is_dir():
        _remove_copies(session, directory.tree, _read(directory))
        sync_filesystem(directory.path)  # a list that went before its copies would leave them for good
        session.point("copies-removed")
    forget(directory)


def _remove_copies(session: TransactionContext, tree: Path, carried: _Carried) -> None:
    alone = {name for name in carried.files if not os.path.lexists(session.prefix / name)}
    with ExitStack() as stack:
        top = os.open(tree, os.O_RDONLY)
        stack.callback(os.close, top)
        for path in carried.made:  # a copied mode may forbid its owner to empty it
            with suppress(FileNotFoundError), _opened([top], path) as (directory,):
                os.fchmod(directory, 0o700)
        for name in carried.files:
            if name not in alone:
                _remove(os.unlink, name, top)
                session.point("copy-removed")
        for path in reversed(carried.made):
            _remove(os.rmdir, path, top)
    for path, times in carried.times.items():
        # the directory of another user, which this one may write but not date
        with suppress(PermissionError, FileNotFoundError):
            os.utime(tree / path, ns=(times[0], times[1]))


def _remove(remove: Callable[..., None], path: str, top: int) -> None:
    above, _, name = path.rpartition("/")
    try:
        with _opened([top], above) as (directory,):
            remove(name, dir_fd=directory)
    except OSError as error:
        # never made before the kill, or a directory that has more than copies
        if error.errno not in {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST}:
            raise


def _write(directory: TransactionDirectory, carried: _Carried) -> None:
    # by json: names may not be UTF-8
    write_durably(directory.carried, json.dumps(asdict(carried)).encode("ascii"))


def _read(directory: TransactionDirectory) -> _Carried:
    try:
        return _Carried(**json.loads(directory.carried.read_bytes()))
    except (ValueError, TypeError) as error:
        raise RecoveryNeeded(
            f"The files that an undo of transaction {directory.transaction} carried over are not known",
            cause=f"{directory.carried} is damaged: {error}",
            hint=f"Nothing was deleted. Remove it; copies may be left in {directory.tree}",
            environment=RECOVERABLE,
        ) from error
