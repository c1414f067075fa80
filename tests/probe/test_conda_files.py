"""Files that several conda packages list, and what records do not tell."""

from __future__ import annotations

from pathlib import Path

from envmedic.model.facts import DistributionFiles
from envmedic.probe.conda import conda_prefix
from envmedic.probe.packages.record_check import Disk
from tests.conda_meta.support import paths, record, write

_SITE = "lib/python3.11/site-packages"


def observed(prefix: Path, *, deep: bool = False) -> tuple[DistributionFiles, ...]:
    """What differs, by the records alone."""
    files = {str(path.relative_to(prefix)): path.stat().st_size for path in prefix.rglob("*") if path.is_file()}
    return conda_prefix.read_conda(prefix, "3.11.7").observe((), Disk(prefix, files), deep=deep).files


def entry(path: str, size: int, **more: object) -> dict[str, object]:
    """A file of that size."""
    return {"_path": path, "path_type": "hardlink", "size_in_bytes": size, **more}


def module(prefix: Path, text: str) -> str:
    """A module in site-packages."""
    (prefix / _SITE / "both").mkdir(parents=True)
    (prefix / _SITE / "both/__init__.py").write_text(text)
    return f"{_SITE}/both/__init__.py"


def test_a_file_of_two_packages_is_no_damage_of_either(tmp_path: Path) -> None:
    path = module(tmp_path, "x = 1\n")
    one = record("one", paths_data=paths(entry(path, 6)))
    two = record("two", paths_data=paths(entry(path, 60)))
    noarch = record("three", noarch="python", paths_data=paths(entry("site-packages/both/__init__.py", 61)))
    write(tmp_path, [one, two, noarch])
    assert observed(tmp_path) == ()
    assert observed(tmp_path, deep=True) == ()


def test_a_file_that_both_miss_is_missed_by_both(tmp_path: Path) -> None:
    path = f"{_SITE}/both/gone.py"
    listed = paths(entry(path, 6))
    write(tmp_path, [record("one", paths_data=listed), record("two", paths_data=listed)])
    assert [(item.distribution, item.missing) for item in observed(tmp_path)] == [("one", (path,)), ("two", (path,))]


def test_records_without_details_tell_what_is_missing(tmp_path: Path) -> None:
    path = module(tmp_path, "x = 1\n")
    old = record("old", files=[path, f"{_SITE}/both/gone.py"]) | {"paths_data": None}
    write(tmp_path, [old])
    (report,) = observed(tmp_path)
    assert (report.recorded, report.matching, report.missing) == (2, 1, (f"{_SITE}/both/gone.py",))


def test_directories_and_byte_code_are_not_counted(tmp_path: Path) -> None:
    path = module(tmp_path, "x = 1\n")
    listed = paths(entry(path, 6), {"_path": "share/empty", "path_type": "directory"}, entry(f"{_SITE}/both/x.pyc", 9))
    write(tmp_path, [record("one", paths_data=listed)])
    assert observed(tmp_path) == ()


def test_what_is_no_hash_is_not_held_against_a_file(tmp_path: Path) -> None:
    path = module(tmp_path, "x = 1\n")
    write(tmp_path, [record("one", paths_data=paths(entry(path, 6, sha256="no hash")))])
    assert observed(tmp_path, deep=True) == ()
    write(tmp_path, [record("one", paths_data=paths(entry(path, 6, sha256="0" * 64)))])
    assert [item.changed for item in observed(tmp_path, deep=True)] == [(path,)]
