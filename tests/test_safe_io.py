"""Files that somebody else may have put there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from envmedic import safe_io


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert safe_io.read(tmp_path / "a", 3) == b"abc"


def test_larger_files_than_asked_for_are_refused_however_sparse(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="1099511627776 bytes"):
        safe_io.read(tmp_path / "a", 1 << 20)


@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "nul"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        path = tmp_path / "a\0b"
    with pytest.raises(OSError):  # noqa: PT011  # whichever
        safe_io.read(path, 100)


def test_links_are_followed_to_files_of_the_same_name_and_in_their_directory_alone(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
    for name in ("METADATA", "id_rsa"):
        (outside / name).write_text(name)
    (inside / "real").write_text("real")
    (inside / "METADATA").symlink_to(outside / "METADATA")  # as uv shares files by links to its cache
    (inside / "beside").symlink_to("real")
    (inside / "theft").symlink_to(outside / "id_rsa")
    (inside / "again").symlink_to("theft")
    assert safe_io.read(inside / "METADATA", 99) == b"METADATA"
    assert safe_io.read(inside / "beside", 99) == b"real"
    for name in ("theft", "again"):
        with pytest.raises(OSError, match="link"):
            safe_io.read(inside / name, 99)
        assert safe_io.read(inside / name, 99, follow=True) == b"id_rsa"


def test_a_link_to_nothing_is_absent(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere" / "b")
    with pytest.raises(FileNotFoundError):
        safe_io.read(tmp_path / "a", 99, follow=True)


def test_a_link_that_takes_the_place_of_the_file_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "real").symlink_to("key")
    (tmp_path / "a").symlink_to("real")
    monkeypatch.setattr(safe_io, "_led", lambda _path: str(tmp_path / "real"))
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        safe_io.read(tmp_path / "a", 99)
