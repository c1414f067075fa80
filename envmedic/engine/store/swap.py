"""Swap the tree at the prefix with the kept tree of a transaction, in either direction, under the journal.

A file system without atomic exchange needs three renames. Between the first two the prefix does not exist; `mend`
completes or reverts them after a crash.

Where the prefix is a link (see `linked_prefix`) no tree moves: a link to the other tree takes the place of the one at
the prefix in one rename, and then the transaction's own link is made to lead to the tree from before. That one is named
by `displaced` beforehand, so that a crash between both leaves nothing unknown. An environment that becomes a link is
moved away once, in one call with the link or by two renames.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from envmedic.engine.fs.durable import make_directory, write_whole
from envmedic.engine.fs.exchange import NO_EXCHANGE, exchange, rename_noreplace, sync_directory
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import RECOVERABLE, PreflightError, RecoveryNeeded
from envmedic.linked_prefix import TREES, link_text, linked_tree
from envmedic.model.registries.modes import ExchangeMethod

_MODE = 0o755
"""Of the directories above the trees."""
Point = Callable[[str], None]
"""Called wherever a crash leaves a distinct state on disk; tests kill the process there."""


def no_point(_name: str) -> None:
    """The `Point` outside tests."""


def swap(prefix: Path, directory: TransactionDirectory, method: ExchangeMethod, point: Point = no_point) -> None:
    """Swap `prefix` with the transaction's tree; `sync` makes it durable.

    Raises PreflightError, with nothing changed, or RecoveryNeeded where renames stopped halfway and `mend` must follow.
    """
    refuse_link(prefix)  # a link may have been put there since the transaction resolved the prefix
    # with a journal of before the environment became a link, too
    linked = method == "link" or prefix.is_symlink() or directory.tree_place.is_symlink()
    times = (None, None) if linked else (_times(prefix), _times(directory.tree))
    try:
        if linked:
            _relink(prefix, directory, point)
        elif method == "exchange":
            exchange(prefix, directory.tree)
        else:
            _rename_thrice(prefix, directory, point)
    except OSError as error:
        if linked:
            _revert(prefix, directory, error)
        if os.path.lexists(directory.displaced):
            raise _halfway(prefix, error) from error
        raise PreflightError(
            f"{prefix} cannot be exchanged with its repaired copy",
            cause=f"{error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})",
            hint="Check that nothing is mounted there and that its directory and its parent are writable",
        ) from error
    _keep_times(directory.tree, times[0])
    _keep_times(prefix, times[1])
    point("swapped")


def refuse_link(prefix: Path) -> None:
    """Refuse a link at the prefix that is not this user's or root's own link to a tree in the store.

    The exchange would swap the link itself, and keep it instead of the environment. Raises PreflightError.
    """
    if not prefix.is_symlink():
        return
    tree, uid = linked_tree(prefix), prefix.lstat().st_uid
    if tree is None or tree.is_symlink() or not tree.is_dir() or uid not in {0, os.geteuid()}:
        raise PreflightError(
            f"{prefix} was replaced by a symbolic link",
            cause=f"It leads to {prefix.readlink()}, and belongs to uid {uid}",
            hint="Put the environment back in its place, then run the same command again",
        )


def _times(root: Path) -> tuple[int, int] | None:
    """Access and modification time of `root`, in ns; None if it is missing, which the exchange reports."""
    try:
        status = root.lstat()
    except FileNotFoundError:
        return None
    return status.st_atime_ns, status.st_mtime_ns


def _keep_times(root: Path, times: tuple[int, int] | None) -> None:
    """Restore the times of a moved tree: XFS updates a directory's mtime when it gets another parent.

    Undo promises the old tree byte for byte, times included.
    """
    if times is None or root.lstat().st_mtime_ns == times[1]:
        return
    with contextlib.suppress(PermissionError):  # somebody else's directory, which this user may move but not date
        os.utime(root, ns=times)


def _halfway(prefix: Path, error: OSError) -> RecoveryNeeded:
    return RecoveryNeeded(
        f"The exchange of {prefix} stopped halfway",
        cause=str(error),
        hint="Mend that, then run `envmedic recover`; nothing is lost",
        environment=RECOVERABLE,
    )


def sync(prefix: Path, directory: TransactionDirectory) -> None:
    """Make the names on both sides of a swap durable. Raises OSError."""
    sync_directory(prefix.parent)
    sync_directory(directory.path)


def _rename_thrice(prefix: Path, directory: TransactionDirectory, point: Point) -> None:
    rename_noreplace(prefix, directory.displaced)
    try:
        point("prefix-displaced")
        rename_noreplace(directory.tree, prefix)
    except OSError:
        rename_noreplace(directory.displaced, prefix)  # no prefix at all is worse than any error
        raise
    point("prefix-replaced")
    rename_noreplace(directory.displaced, directory.tree)


def _relink(prefix: Path, directory: TransactionDirectory, point: Point) -> None:
    """Let the link at `prefix`, or one in the place of the environment, lead to the transaction's tree."""
    trees = _trees(prefix, directory)
    _move_to_trees(directory, trees, point)
    live = linked_tree(prefix)
    if live == directory.tree:
        raise OSError(errno.ESTALE, f"{directory.tree_place} leads to the tree that is live")
    gone = live or _free(trees, f"{directory.transaction}-found")
    _make_link(directory.displaced, directory.link_to(gone))
    _make_link(directory.link, link_text(prefix, directory.tree.name))
    # What a later rename relies on is on disk before it: a file system may keep the later one alone.
    sync_directory(trees)
    sync_directory(directory.path)
    point("links-made")
    if live is not None:
        directory.link.rename(prefix)  # the one moment: it leads to the one tree before, to the other after
    else:
        _replace_by_link(prefix, directory, gone, point)
    sync_directory(prefix.parent)
    point("link-replaced")
    directory.displaced.rename(directory.tree_place)


def _replace_by_link(prefix: Path, directory: TransactionDirectory, gone: Path, point: Point) -> None:
    """Move the environment at `prefix` to `gone`, and a link there. The last exchange of two names on this prefix."""
    times = _times(prefix)
    try:
        exchange(directory.link, prefix)
        point("became-link")
        rename_noreplace(directory.link, gone)
    except OSError as error:
        if error.errno not in NO_EXCHANGE or not directory.link.is_symlink():
            raise
        rename_noreplace(prefix, gone)
        point("prefix-displaced")
        rename_noreplace(directory.link, prefix)
        point("prefix-replaced")
    _keep_times(gone, times)


def _trees(prefix: Path, directory: TransactionDirectory) -> Path:
    """The directory of the environment's trees, which whoever can reach the prefix has to be able to pass through."""
    every = directory.path.parent.parent / TREES
    for place in (every, every / prefix.name):
        if not os.path.lexists(place):
            make_directory(place)
        status = place.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in {0, os.geteuid()}:
            raise NotADirectoryError(
                errno.ENOTDIR, f"it is no directory of this user, but of uid {status.st_uid}", place
            )
        if status.st_mode & _MODE != _MODE:
            place.chmod(stat.S_IMODE(status.st_mode) | _MODE)
        sync_directory(place.parent)
    if not (every / ".gitignore").exists():
        write_whole(every / ".gitignore", b"*\n", mode=0o644, synced=False)
    return every / prefix.name


def _move_to_trees(directory: TransactionDirectory, trees: Path, point: Point) -> None:
    """Move a tree that lies in the transaction's directory to the others, where it stays, and leave a link to it."""
    place = directory.tree_place
    if place.is_symlink():
        return
    times, target = _times(place), trees / directory.transaction
    rename_noreplace(place, target)
    _keep_times(target, times)
    point("tree-moved")
    _make_link(place, directory.link_to(target))


def _free(trees: Path, name: str) -> Path:
    """A name that is not taken: after the prefix was made a directory by hand, one may be."""
    names = (name, *(f"{name}-{number}" for number in range(2, 100)))
    return next(path for path in map(trees.joinpath, names) if not os.path.lexists(path))


def _make_link(place: Path, text: str) -> None:
    if place.is_symlink():
        place.unlink()
    place.symlink_to(text)


def mend(prefix: Path, directory: TransactionDirectory) -> None:
    """Settle renames that a crash interrupted: revert them before the tree is replaced, complete them after it."""
    _mend_links(prefix, directory)
    if not os.path.lexists(directory.displaced):
        return
    linked = directory.displaced.is_symlink()
    if not linked and not os.path.lexists(prefix):
        rename_noreplace(directory.displaced, prefix)
    elif not linked and not os.path.lexists(directory.tree):
        rename_noreplace(directory.displaced, directory.tree)
    else:
        raise RecoveryNeeded(
            f"Somebody created {prefix} while a swap of it was interrupted",
            cause=f"The environment that was there is {directory.tree_of(directory.displaced)}",
            hint=f"Nothing was deleted. Move {prefix} away, then run `envmedic recover` again",
            environment=RECOVERABLE,
        )
    sync(prefix, directory)


def _mend_links(prefix: Path, directory: TransactionDirectory) -> None:
    """The same for links, by where those lead that are there; what `mend` has left to do is none of theirs."""
    place, moved = directory.tree_place, directory.path.parent.parent / TREES / prefix.name / directory.transaction
    if not os.path.lexists(place) and moved.is_dir() and linked_tree(prefix) != moved:
        _make_link(place, directory.link_to(moved))
    if directory.displaced.is_symlink():
        gone = directory.tree_of(directory.displaced)
        if directory.link.is_dir() and not directory.link.is_symlink():
            rename_noreplace(directory.link, gone)
        if not os.path.lexists(prefix) and gone.is_dir():
            rename_noreplace(gone, prefix)
        if linked_tree(prefix) == directory.tree:
            sync_directory(prefix.parent)
            directory.displaced.rename(place)
        elif linked_tree(prefix) == gone or not os.path.lexists(gone):
            directory.displaced.unlink()
        sync(prefix, directory)
    if directory.link.is_symlink() and not os.path.lexists(directory.displaced):
        directory.link.unlink()


def _revert(prefix: Path, directory: TransactionDirectory, error: OSError) -> None:
    """Take links back that an error left, where the prefix has not changed; else it is left to `mend`."""
    if linked_tree(prefix) == directory.tree:
        raise _halfway(prefix, error) from error
    try:
        _mend_links(prefix, directory)
    except OSError as other:
        raise _halfway(prefix, other) from error
