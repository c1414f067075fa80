"""Errors that mean "not here" have another way; every other error ends the work."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envmedic.engine.clone.clone import clone
from envmedic.engine.fs import exchange, scratch, syscalls
from envmedic.engine.fs.file_copy import make_private
from envmedic.engine.generations import carry_over
from envmedic.engine.transaction.preflight import _remove_empty
from envmedic.model.registries.modes import CloneMode

FAILS = "Input/output error"


def failing(*_: object, **__: object) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with all that a clone keeps."""
    file = tmp_path / "tree" / "lib" / "file"
    file.parent.mkdir(parents=True)
    file.write_text("own")
    (file.parent / "link").symlink_to("file")
    try:
        os.setxattr(file, "user.note", b"x")
    except OSError:
        pytest.skip("no extended attributes here")
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("mode", "module", "call"),
    [
        ("link", os, "link"),
        ("copy", os, "copy_file_range"),
        ("reflink", syscalls, "ficlone"),
        ("copy", os, "listxattr"),
        ("copy", os, "setxattr"),
    ],
)
def test_a_clone_ends_with_the_error_of_a_disk(
    tree: Path, monkeypatch: pytest.MonkeyPatch, mode: CloneMode, module: object, call: str
) -> None:
    monkeypatch.setattr(module, call, failing)
    with pytest.raises(OSError, match=FAILS):
        clone(tree, tree.with_name("clone"), mode)


@pytest.mark.parametrize(("call", "name"), [("fchown", "file"), ("chown", "link")])
def test_an_owner_that_cannot_be_kept_for_another_reason_than_rights_ends_the_clone(
    tree: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files away")
    os.lchown(tree / "lib" / name, 1234, 1234)
    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OSError, match=FAILS):
        clone(tree, tree.with_name("clone"), "copy")


def test_an_attribute_that_cannot_be_read_again_ends_the_clone(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = os.getxattr, list[object]()

    def fails_later(*arguments: Any) -> bytes:
        asked.append(arguments)
        return real(*arguments) if len(asked) == 1 else failing()

    def refused(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "getxattr", fails_later)
    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(OSError, match=FAILS):
        clone(tree, tree.with_name("clone"), "copy")


def test_only_a_file_gets_a_copy_of_its_own(tree: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        make_private(tree / "lib")


@pytest.mark.parametrize(
    "work",
    [
        lambda place: scratch.held(place).__enter__(),
        lambda place: exchange.rename_noreplace(place / "lib", place / "other"),
        lambda place: carry_over._remove(failing, "lib/file", os.open(place, os.O_RDONLY)),
        lambda place: _remove_empty(place / "lib"),
    ],
    ids=["lock", "rename", "remove", "rmdir"],
)
def test_another_way_is_tried_only_where_there_is_none(
    tree: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Path], object]
) -> None:
    for module, call in ((fcntl, "flock"), (syscalls, "rename_noreplace"), (Path, "rmdir")):
        monkeypatch.setattr(module, call, failing)
    with pytest.raises(OSError, match=FAILS):
        work(tree)


def test_a_rename_without_flags_replaces_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(syscalls, "rename_noreplace", unknown)
    (tree / "other").write_text("other")
    with pytest.raises(FileExistsError):
        exchange.rename_noreplace(tree / "lib" / "file", tree / "other")
    assert (tree / "other").read_text() == "other"
    exchange.rename_noreplace(tree / "lib" / "file", tree / "new")
    assert (tree / "new").read_text() == "own"


def test_a_machine_whose_call_numbers_are_unknown_cannot_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)):
        syscalls._syscall_renameat2(syscalls._libc(), b"a", b"b", syscalls.RENAME_EXCHANGE)


def test_the_type_of_a_file_system_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        syscalls.filesystem_type(tmp_path / "missing")
