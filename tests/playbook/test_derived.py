"""What is derived from patterns is kept, and never believed when it is damaged or old."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from envmedic.playbook.matching import atoms, derived, ordinary
from envmedic.playbook.matching.derived import derive_literals
from envmedic.playbook.schema import cache, loader

PATTERNS = ("operator torchvision::nms does not exist", "undefined symbol: (?P<symbol>\\w+)", "CUDNN_STATUS_\\w+")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has one more item each time that needs are worked out rather than read."""
    calls: list[int] = []

    def counted(patterns: tuple[str, ...]) -> derived.Derived:
        calls.append(len(patterns))
        return derive_literals(patterns)

    monkeypatch.setattr(derived, "derive_literals", counted)
    return calls


def stored() -> Path:
    (found,) = (cache.user_root() / "derived").iterdir()
    return found


def test_what_was_kept_is_what_was_worked_out(worked_out: list[int]) -> None:
    first = derived.load_literals(PATTERNS)
    assert derived.load_literals(PATTERNS) == first == derive_literals(PATTERNS)
    assert worked_out == [3]


def test_other_patterns_or_another_order_are_worked_out_anew(worked_out: list[int]) -> None:
    derived.load_literals(PATTERNS)
    turned = derived.load_literals(PATTERNS[::-1])
    assert turned.needs == derived.load_literals(PATTERNS).needs[::-1]
    assert worked_out == [3, 3]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[:-1],
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: bytes(len(content)),
    ],
    ids=["empty", "cut", "a bit", "zeros"],
)
def test_a_damaged_file_is_worked_out_again_and_repaired(
    damage: Callable[[bytes], bytes], worked_out: list[int]
) -> None:
    first = derived.load_literals(PATTERNS)
    good = stored().read_bytes()
    stored().write_bytes(damage(good))
    assert derived.load_literals(PATTERNS) == first
    assert worked_out == [3, 3]
    assert stored().read_bytes() == good


def test_a_whole_file_of_another_shape_is_replaced(worked_out: list[int]) -> None:
    first = derived.load_literals(PATTERNS)
    key, good = stored().name, stored().read_bytes()
    cache.write_bytes(key, msgspec.msgpack.encode({"needs": 3}))
    assert derived.load_literals(PATTERNS) == first
    assert worked_out == [3, 3]
    assert stored().read_bytes() == good


def test_one_set_of_patterns_is_not_taken_for_another(worked_out: list[int]) -> None:
    derived.load_literals(PATTERNS[:2])
    first = stored()
    derived.load_literals(PATTERNS)
    (second,) = set((cache.user_root() / "derived").iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert derived.load_literals(PATTERNS) == derive_literals(PATTERNS)
    assert worked_out == [2, 3, 3]


@pytest.mark.parametrize("module", [atoms, ordinary], ids=["atoms", "ordinary"])
def test_changed_code_does_not_use_what_the_old_code_kept(
    module: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worked_out: list[int]
) -> None:
    derived.load_literals(PATTERNS)
    changed = tmp_path / "changed.py"
    changed.write_text("# other rules\n", encoding="utf-8")
    monkeypatch.setattr(module, "__file__", str(changed))
    derived._rules_digest.cache_clear()
    try:
        derived.load_literals(PATTERNS)
    finally:
        derived._rules_digest.cache_clear()
    assert worked_out == [3, 3]


def test_code_that_cannot_be_read_keeps_nothing(monkeypatch: pytest.MonkeyPatch, worked_out: list[int]) -> None:
    monkeypatch.setattr(atoms, "__file__", "/nowhere/archive.zip/atoms.py")
    derived._rules_digest.cache_clear()
    try:
        assert derived.load_literals(PATTERNS) == derived.load_literals(PATTERNS)
    finally:
        derived._rules_digest.cache_clear()
    assert worked_out == [3, 3]
    assert not (cache.user_root() / "derived").exists()


def test_without_a_usable_cache_directory_needs_are_worked_out_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worked_out: list[int]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert derived.load_literals(PATTERNS) == derived.load_literals(PATTERNS) == derive_literals(PATTERNS)
    assert worked_out == [3, 3]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only directories")
def test_a_read_only_cache_directory_does_no_harm(own_cache: Path, worked_out: list[int]) -> None:
    own_cache.mkdir()
    own_cache.chmod(0o500)
    assert derived.load_literals(PATTERNS) == derive_literals(PATTERNS)
    assert list(own_cache.iterdir()) == []
    assert worked_out == [3]


def test_the_oldest_sets_are_dropped_and_no_temporary_files_left() -> None:
    for number in range(cache.MOST_DERIVED + 3):
        cache.write_bytes(f"key{number}", b"content")
        os.utime((cache.user_root() / "derived") / f"key{number}", (number, number))
    cache.write_bytes("last", b"content")
    names = {path.name for path in (cache.user_root() / "derived").iterdir()}
    assert len(names) == cache.MOST_DERIVED
    assert {"last", f"key{cache.MOST_DERIVED + 2}"} <= names
    assert "key0" not in names


def test_reading_a_new_playbook_leaves_what_was_kept_of_the_others(worked_out: list[int]) -> None:
    derived.load_literals(PATTERNS)
    before = stored()
    loader.load_file(next(loader.shipped_directory().glob("*.yaml")), "shipped")
    assert before.is_file()
    assert derived.load_literals(PATTERNS) == derive_literals(PATTERNS)
    assert worked_out.count(len(PATTERNS)) == 1
