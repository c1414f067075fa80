"""Root on an environment whose owner has put links where root is about to write or delete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.engine.fs.durable import Owner, make_directory, write_durably
from envmedic.engine.store.context import EventLog
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.lock import locked
from envmedic.errors import PreflightError

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can act for another user")
SOMEBODY = Owner(54321, 54321)


@pytest.fixture
def store() -> Iterator[Store]:
    """The store of somebody's environment called ``ssl``, in a directory of theirs; beside it ``root/ssl`` is root's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "root" / "ssl").mkdir(parents=True)
        (Path(name) / "root" / "ssl" / "key").write_text("root's")
        for path in (Path(name) / "home", Path(name) / "home" / "ssl"):
            path.mkdir()
            os.chown(path, 54321, 54321)
        store = Store.of(Path(name) / "home" / "ssl")
        store.prepare()
        yield store


def roots(store: Store) -> Path:
    return store.prefix.parent.parent / "root"


def test_wheels_are_not_deleted_through_a_link(store: Store) -> None:
    (store.root / "wheels").symlink_to(roots(store))
    with pytest.raises(PermissionError):
        store.drop_wheels()
    assert (roots(store) / "ssl" / "key").read_text() == "root's"


def test_events_are_not_appended_to_what_a_link_leads_to(store: Store) -> None:
    directory = TransactionDirectory(store.root / "20260101T000000000000Z-abcdef")
    make_directory(directory.path, SOMEBODY)
    directory.events.symlink_to(roots(store) / "ssl" / "key")
    with pytest.raises(OSError, match="symbolic links"):
        EventLog(directory, store)


def test_a_lock_is_not_made_where_a_link_leads(store: Store) -> None:
    store.lock.parent.rmdir()
    store.lock.parent.symlink_to(roots(store))
    with pytest.raises(PreflightError, match="is not a directory of this user"), locked(store):
        pass
    assert [path.name for path in roots(store).iterdir()] == ["ssl"]


def test_nothing_is_written_in_a_directory_that_a_link_has_taken_the_place_of(store: Store) -> None:
    swapped = store.root / "20260101T000000000000Z-abcdef"
    swapped.symlink_to(roots(store))
    os.chown(swapped, 54321, 54321, follow_symlinks=False)
    with pytest.raises(PermissionError):
        write_durably(swapped / "journal.json", b"{}", SOMEBODY)
    with pytest.raises(PermissionError):
        make_directory(swapped / "trash", SOMEBODY)
    assert [path.name for path in roots(store).iterdir()] == ["ssl"]


def test_what_is_written_belongs_to_the_owner_and_a_link_in_its_place_is_replaced(store: Store) -> None:
    (store.root / ".journal.json.tmp").symlink_to(roots(store) / "ssl" / "key")
    write_durably(store.root / "journal.json", b"{}", SOMEBODY)
    status = (store.root / "journal.json").lstat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (54321, 54321, 0o600)
    assert (roots(store) / "ssl" / "key").read_text() == "root's"
