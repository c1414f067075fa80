"""Fingerprints, digests and manifests of trees."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.engine.clone.clone import clone
from envmedic.tree import fingerprint, walk
from tests.engine_low.support import write

SITE = Path("lib/python3.11/site-packages")


def _append(path: Path) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write("x")


def test_an_untouched_tree_has_no_differences(prefix: Path) -> None:
    before = fingerprint.fingerprint(prefix)
    assert not fingerprint.compare(before, fingerprint.fingerprint(prefix))
    assert not fingerprint.changes(before, prefix)
    assert before.entries["."].kind == "d"
    assert before.entries["bin/python"].kind == "l"


def test_every_kind_of_change_is_listed_by_path(prefix: Path) -> None:
    before = fingerprint.fingerprint(prefix)
    (prefix / SITE / "package0" / "new.py").touch()
    (prefix / SITE / "linked").unlink()
    _append(prefix / SITE / "package1" / "__init__.py")
    (prefix / "bin" / "tool").chmod(0o700)
    found = fingerprint.compare(before, fingerprint.fingerprint(prefix))
    assert found.added == (f"{SITE}/package0/new.py",)
    assert found.removed == (f"{SITE}/linked",)
    assert found.changed == ("bin/tool", f"{SITE}/package1/__init__.py")
    assert found.names == (*found.changed, *found.added, *found.removed)
    assert fingerprint.changes(before, prefix) == found


def test_a_replaced_file_with_equal_size_and_times_is_a_change(prefix: Path) -> None:
    path = prefix / SITE / "package0" / "__init__.py"
    before, status = fingerprint.fingerprint(prefix), path.stat()
    twin = path.with_name("twin")
    twin.write_text("value = 7\n", encoding="utf-8")
    os.utime(twin, ns=(status.st_atime_ns, status.st_mtime_ns))
    twin.chmod(0o644)
    twin.replace(path)
    assert fingerprint.compare(before, fingerprint.fingerprint(prefix)).changed == (f"{SITE}/package0/__init__.py",)
    assert fingerprint.changes(before, prefix).changed == (f"{SITE}/package0/__init__.py",)


def test_linking_a_clone_changes_nothing_in_the_original(prefix: Path, open_tmp: Path) -> None:
    before = fingerprint.fingerprint(prefix)
    clone(prefix, open_tmp / "clone", "link")
    shutil.rmtree(open_tmp / "clone")
    assert not fingerprint.compare(before, fingerprint.fingerprint(prefix))


def test_a_fingerprint_beside_a_twin_is_the_same(prefix: Path, open_tmp: Path) -> None:
    clone(prefix, open_tmp / "clone", "link")
    twin = fingerprint.fingerprint(open_tmp / "clone")
    assert fingerprint.fingerprint(prefix, twin=twin) == fingerprint.fingerprint(prefix)
    assert fingerprint.fingerprint(open_tmp / "clone", twin=fingerprint.fingerprint(prefix)) == twin


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("edited in place, so in both\n", encoding="utf-8"),
        lambda path: path.chmod(0o600),
        lambda path: (
            path.with_name("new").write_text("value = 7\n", encoding="utf-8"),
            path.with_name("new").replace(path),
        ),
        lambda path: path.unlink(),
        lambda path: path.rename(path.with_name("moved")),
        lambda path: (path.unlink(), path.symlink_to("elsewhere")),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["edited", "mode", "replaced", "removed", "renamed", "link", "directory"],
)
def test_every_change_shows_beside_a_twin(prefix: Path, open_tmp: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint.fingerprint(prefix)
    clone(prefix, open_tmp / "clone", "link")
    change(prefix / SITE / "package0" / "__init__.py")
    now = fingerprint.fingerprint(prefix, twin=fingerprint.fingerprint(open_tmp / "clone"))
    assert now == fingerprint.fingerprint(prefix)
    assert fingerprint.compare(before, now)
    assert fingerprint.changes(before, prefix) == fingerprint.compare(before, now)


def test_files_that_are_no_hard_links_are_asked_beside_a_twin(prefix: Path, open_tmp: Path) -> None:
    clone(prefix, open_tmp / "clone", "copy")
    _append(prefix / SITE / "package0" / "__init__.py")
    twin = fingerprint.fingerprint(open_tmp / "clone")
    assert fingerprint.fingerprint(prefix, twin=twin) == fingerprint.fingerprint(prefix)


def test_byte_code_belongs_to_no_fingerprint(prefix: Path) -> None:
    before = fingerprint.fingerprint(prefix)
    write(prefix / SITE / "package0" / "__pycache__" / "m.cpython-311.pyc", "x")
    write(prefix / SITE / "package0" / "legacy.pyc", "x")
    assert fingerprint.fingerprint(prefix).entries.keys() == before.entries.keys()
    assert not fingerprint.compare(before, fingerprint.fingerprint(prefix))


@pytest.mark.parametrize("caches", ["before", "after"])
def test_byte_code_in_a_fingerprint_of_an_earlier_version_is_passed_over(prefix: Path, caches: str) -> None:
    plain = fingerprint.fingerprint(prefix)
    held = fingerprint.Fingerprint({**plain.entries, f"{SITE}/package0/__pycache__/m.pyc": plain.entries["bin/tool"]})
    assert not (fingerprint.compare(held, plain) if caches == "before" else fingerprint.compare(plain, held))
    assert not fingerprint.changes(held, prefix)


def test_a_directory_that_became_another_one_is_a_change(prefix: Path) -> None:
    before = fingerprint.fingerprint(prefix)
    folder = prefix / SITE / "package0"
    shutil.copytree(folder, prefix / "copy", symlinks=True)
    folder.rename(prefix / "old")
    (prefix / "copy").rename(folder)
    found = fingerprint.compare(before, fingerprint.fingerprint(prefix))
    assert f"{SITE}/package0" in found.changed
    assert fingerprint.changes(before, prefix) == found


def test_a_saved_fingerprint_comes_back_equal_with_any_name(prefix: Path, open_tmp: Path) -> None:
    (prefix / os.fsdecode(b"bad\xff\nname")).touch()
    before = fingerprint.fingerprint(prefix)
    before.save(open_tmp / "saved")
    loaded = fingerprint.Fingerprint.load(open_tmp / "saved")
    assert loaded == before
    assert not fingerprint.compare(loaded, fingerprint.fingerprint(prefix))


@pytest.mark.parametrize("known", [True, False])
def test_inodes_count_where_both_sides_have_them(prefix: Path, *, known: bool) -> None:
    path = prefix / SITE / "package0" / "__init__.py"
    before = fingerprint.fingerprint(prefix)
    if not known:
        before = fingerprint.Fingerprint({name: entry._replace(inode=0) for name, entry in before.entries.items()})
    path.rename(path.with_name("old"))
    shutil.copy2(path.with_name("old"), path)
    path.with_name("old").unlink()
    assert bool(fingerprint.changes(before, prefix)) == known
    assert bool(fingerprint.compare(before, fingerprint.fingerprint(prefix))) == known


@pytest.mark.parametrize(
    "content",
    ["", "[]", "x cut short", '{"format": 0, "entries": []}', '{"format": 1, "entries": {"a": [1]}}', '{"format": 1}'],
)
def test_a_damaged_fingerprint_is_refused(open_tmp: Path, content: str) -> None:
    write(open_tmp / "saved", content)
    with pytest.raises(ValueError, match=r"saved|Expecting"):
        fingerprint.Fingerprint.load(open_tmp / "saved")


@pytest.mark.parametrize("name", [fingerprint.MARKER, fingerprint.UV_LOCK])
def test_marker_and_lock_of_uv_belong_to_no_fingerprint_and_no_digest(prefix: Path, name: str) -> None:
    before, digest = fingerprint.fingerprint(prefix), fingerprint.digest(prefix)
    write(prefix / name, "id")
    assert name not in fingerprint.fingerprint(prefix).entries
    assert not fingerprint.compare(before, fingerprint.fingerprint(prefix))
    assert not fingerprint.changes(before, prefix)
    assert fingerprint.digest(prefix) == digest


def test_a_clone_has_the_digest_of_its_original(prefix: Path, open_tmp: Path) -> None:
    clone(prefix, open_tmp / "clone", "copy")
    assert fingerprint.digest(open_tmp / "clone") == fingerprint.digest(prefix)


@pytest.mark.parametrize(
    "change",
    [
        lambda prefix: (prefix / "bin" / "tool").chmod(0o700),
        lambda prefix: _append(prefix / SITE / "package0" / "__init__.py"),
        lambda prefix: (prefix / SITE / "package2" / "native.so").unlink(),
        lambda prefix: (prefix / SITE / "empty").mkdir(),
        lambda prefix: os.utime(prefix / "pyvenv.cfg", (1, 1)),
        lambda prefix: (prefix / "bin" / "tool").rename(prefix / "bin" / "tool2"),
    ],
)
def test_every_installed_change_changes_the_digest(prefix: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint.digest(prefix)
    change(prefix)
    assert fingerprint.digest(prefix) != before


def test_the_digest_of_a_fingerprint_is_that_of_its_tree(prefix: Path) -> None:
    write(prefix / SITE / "package0" / "__pycache__" / "m.cpython-311.pyc", "x")
    write(prefix / fingerprint.MARKER, "id")
    write(prefix / fingerprint.UV_LOCK, "")
    assert fingerprint.digest_of(fingerprint.fingerprint(prefix)) == fingerprint.digest(prefix)


def test_byte_code_does_not_change_the_digest(prefix: Path) -> None:
    before = fingerprint.digest(prefix)
    write(prefix / SITE / "package0" / "__pycache__" / "m.cpython-311.pyc", "x")
    write(prefix / SITE / "package0" / "legacy.pyc", "x")
    assert fingerprint.digest(prefix) == before


def test_a_survey_tells_sizes_by_whatever_name(prefix: Path) -> None:
    write(prefix / SITE / os.fsdecode(b"latin \xe9.txt"), "name that is no UTF-8")
    write(prefix / SITE / "line\nend", "")
    found = fingerprint.survey(prefix)
    assert found.digest == fingerprint.digest(prefix)
    assert found.sizes[f"{SITE}/line\nend"] == 0
    assert found.sizes[os.fsdecode(f"{SITE}/latin ".encode() + b"\xe9.txt")] == len("name that is no UTF-8")


def test_a_survey_of_no_files(open_tmp: Path) -> None:
    (open_tmp / "empty").mkdir()
    assert fingerprint.survey(open_tmp / "empty").sizes == {}


def test_a_missing_tree_is_an_error(open_tmp: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fingerprint.digest(open_tmp / "none")
    with pytest.raises(FileNotFoundError):
        fingerprint.fingerprint(open_tmp / "none")


def test_entries_that_vanish_during_the_walk_are_left_out(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = prefix / SITE
    enter = walk._Listing.__enter__

    def remove_after_listing(self: walk._Listing) -> list[os.DirEntry[str]]:
        entries = enter(self)
        if any(entry.name == "local.pth" for entry in entries):
            (site / "local.pth").unlink()
            shutil.rmtree(site / "package1")
        return entries

    monkeypatch.setattr(walk._Listing, "__enter__", remove_after_listing)
    names = set(fingerprint.fingerprint(prefix).entries)
    assert f"{SITE}/package0/native.so" in names
    assert not any(name.startswith((f"{SITE}/package1/", f"{SITE}/local.pth")) for name in names)


def test_a_manifest_holds_contents_and_link_targets(prefix: Path) -> None:
    found = fingerprint.manifest(prefix)
    tool = found["etc/settings.ini"]
    assert tool.sha256 == hashlib.sha256(b"[x]\n").hexdigest()
    assert found[f"{SITE}/dangling"].target == "/nowhere/at all"
    assert found["bin"].sha256 is None
