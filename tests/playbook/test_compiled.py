"""What is compiled together with the package: one archive, read before anything is validated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.playbook.compiled import compile_shipped
from envmedic.playbook.schema import cache, loader


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The archive, read in a home without a cache."""
    file = tmp_path / "made" / cache.PREPARED
    compile_shipped(file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "prepared_file", lambda: file)
    cache._prepared.cache_clear()
    yield file
    cache._prepared.cache_clear()


def _shipped() -> list[Path]:
    return [path for path, origin in loader.playbook_files() if origin == "shipped"]


def test_no_shipped_playbook_is_validated_again(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "parse", None)
    assert {loader.load_file(path, "shipped").playbook.id for path in _shipped()} > {"nms-cuda", "path-file"}
    assert archive.is_file()
    assert not cache.user_root().exists()


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_without_a_whole_archive_a_playbook_is_read_from_its_file(archive: Path, damage: bytes | None) -> None:
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2] if damage is None else damage)
    (first, *_) = _shipped()
    assert loader.load_file(first, "shipped").playbook.id == first.stem
    assert [*cache.user_root().rglob("*.json.z")]
