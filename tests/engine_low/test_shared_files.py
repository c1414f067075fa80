"""Files that several distributions list are held by a second name while one of them is removed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from envmedic.engine.transaction import shared_files

ROW = "both/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"


def failing(monkeypatch: pytest.MonkeyPatch, tree: Path, number: int) -> Path:
    """An environment with such a file, where a hard link fails with an error of this `number`."""
    site = tree / "lib" / "python3.11" / "site-packages"
    (site / "both").mkdir(parents=True)
    (site / "both" / "__init__.py").touch()
    for name in ("one", "two"):
        (site / f"{name}-1.0.dist-info").mkdir()
        (site / f"{name}-1.0.dist-info" / "RECORD").write_text(ROW)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    return site


def test_where_nothing_can_be_linked_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = failing(monkeypatch, tmp_path / "env", errno.EXDEV)
    held = shared_files._hold(tmp_path / "env", tmp_path / "trash" / "aside")
    assert {name: copy.read_bytes() for name, copy in held.items()} == {str(site / "both" / "__init__.py"): b""}


def test_a_disk_that_fails_is_no_reason_to_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, tmp_path / "env", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        shared_files._hold(tmp_path / "env", tmp_path / "trash" / "aside")
