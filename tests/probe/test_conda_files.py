"""Files that several conda packages list, and what records do not tell."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from envmedic.api.planning.statements import with_statements
from envmedic.diagnosis.findings import diagnose
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import DistributionFiles, Facts, Host
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from envmedic.probe.conda import conda_prefix
from envmedic.probe.environment import observe_environment
from envmedic.probe.packages.record_check import Disk
from tests.conda_meta.support import paths, record, write
from tests.probe.prefixes import add_distribution, build_library, make_prefix, site

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


@pytest.mark.parametrize("recorded", [False, True])
def test_what_a_killed_transaction_left_without_a_record_is_held_against_its_own_list(
    tmp_path: Path,
    recorded: bool,  # noqa: FBT001  a parameter
) -> None:
    """Else a text that lacks one of its parts is read as one of another release, and a wheel comes over conda's files."""
    prefix = make_prefix(tmp_path)
    (prefix / "pyvenv.cfg").unlink()
    files = {"boxes/__init__.py": "from boxes.lids import Lid\n", "boxes/lids.py": "class Lid: ...\n"}
    info = add_distribution(site(prefix), "boxes", "1.2", files=files, extra={"INSTALLER": "conda\n"})
    (info / "RECORD").write_text((info / "RECORD").read_text().replace("sha256=x", ""))
    (site(prefix) / "boxes/lids.py").unlink()
    listed = paths(*(f"{_SITE}/{path}" for path in (f"{info.name}/METADATA", *files)))
    write(prefix, [record("python", "3.11.4"), *([record("boxes", "1.2", paths_data=listed)] if recorded else [])])
    environment = observe_environment(prefix, {})
    assert [item.missing for item in environment.files or ()] == [(f"{_SITE}/boxes/lids.py",)]
    python = msgspec.structs.replace(environment.interpreter, starts=True, error=None)
    facts = Facts(host=Host(), environment=msgspec.structs.replace(environment, interpreter=python))
    derived = derive(facts)
    assert derived["conda.unrecorded"] == (() if recorded else ("boxes ==1.2",))
    assert derived["files.beyond-index"] == derived["files.damaged"] == ()
    text = f"""Traceback (most recent call last):
  File "{prefix}/{_SITE}/boxes/__init__.py", line 1, in <module>
    from boxes.lids import Lid
ModuleNotFoundError: No module named 'boxes.lids'"""
    playbooks = load_all()
    read = read_text(text.encode().splitlines(), playbooks)
    facts = with_statements(playbooks, facts, read.matches)
    [found] = diagnose(read, facts, playbooks, prefix=str(prefix), log="log", here=True).findings
    assert (found.playbook, found.confirmed) == ("half-installed", True)
    assert [item.playbook for item in found.consequences] == ["unmet-requirement"]


def test_a_module_that_misses_something_is_of_the_package_whose_record_lists_it(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path)
    old = build_library(prefix / "lib/libsolve.so.1", "int solve(void) { return 1; }", "-Wl,-soname,libsolve.so.1")
    link = (f"-Wl,-rpath,{old.parent}", str(old), "-Wl,--unresolved-symbols=ignore-all", "-Wl,--no-as-needed")
    build_library(site(prefix) / "grid.so", "int threads(void); int PyInit_grid(void) { return threads(); }", *link)
    build_library(site(prefix) / "sound.so", "int PyInit_sound(void) { return 1; }")
    listed = {"grid": "grid.so", "sound": "sound.so"}
    write(prefix, [record(name, paths_data=paths(f"{_SITE}/{file}")) for name, file in listed.items()])
    found = {item.path.rpartition("/")[2]: item.package for item in observe_environment(prefix, {}).extensions}
    assert found == {"grid.so": "grid"}
