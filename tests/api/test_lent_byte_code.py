"""Where byte code is kept for environments without: in the user's cache, where nobody else can put any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic.api.context import lent_byte_code


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_each_environment_has_a_folder_of_its_own(cache: Path) -> None:
    one, other = lent_byte_code.folder(Path("/env")), lent_byte_code.folder(Path("/other"))
    assert one is not None
    assert one != other
    assert one == lent_byte_code.folder(Path("/env"))
    assert one.is_relative_to(cache)
    assert one.stat().st_mode & 0o777 == 0o700


def test_those_used_last_stay(cache: Path) -> None:
    folders = [lent_byte_code.folder(Path(f"/env{number}")) for number in range(lent_byte_code.KEPT)]
    for age, path in enumerate(folders):
        assert path is not None
        (path / "kept").write_bytes(b"")
        os.utime(path, (age, age))
    assert lent_byte_code.folder(Path("/env0")) == folders[0], "used again"
    newest = lent_byte_code.folder(Path("/new"))
    left = set((cache / "envmedic" / "byte-code").iterdir())
    assert left == {folders[0], *folders[2:], newest}


def test_a_place_that_others_can_change_is_not_used(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert lent_byte_code.folder(Path("/env")) is None


def test_where_nothing_can_be_made_nothing_is_kept(cache: Path) -> None:
    cache.write_text("")
    assert lent_byte_code.folder(Path("/env")) is None
