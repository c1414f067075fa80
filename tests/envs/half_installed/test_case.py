"""Files that are gone or cut off are put back by the same version; what people change on purpose is left alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Facts, Host
from envmedic.probe.environment import observe_environment
from tests.envs.half_installed.case import BROKEN, build
from tests.real.manifest import manifest
from tests.support.native_case import NativeCase
from tests.support.venvs import site_packages

WORKS = "4 of 4 cells by grid 1.5\n"


@pytest.mark.parametrize("way", BROKEN)
def test_each_way_is_found_without_a_text(tmp_path: Path, way: str) -> None:
    case = build(tmp_path)
    BROKEN[way](case)
    facts = Facts(host=Host(), environment=observe_environment(case.prefix))
    assert derive(facts)["files.damaged"] == ("grid==1.5",)


def test_the_same_version_is_installed_again(tmp_path: Path) -> None:
    case = build(tmp_path)
    assert case.run().out == WORKS
    BROKEN["without_package"](case)
    assert case.run().code != 0
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["fault"], plan["playbook"]) == ("half-installed", "half-installed")
    assert [(item["name"], item["before"], item["after"]) for item in plan["changes"]] == [("grid", "1.5", "1.5")]
    assert case.run().out == WORKS
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_an_error_text_leads_to_what_the_disk_shows(tmp_path: Path) -> None:
    case = build(tmp_path)
    BROKEN["cut_short"](case)
    log = case.log()
    assert "libcells.so: file too short" in log.read_text()
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", str(log)).document["findings"][0]
    assert (found["fault"], found["confirmed"], found["signature"]) == ("half-installed", True, "cut-off-library")
    assert case.apply("--log", str(log)).code == 0
    assert case.run().out == WORKS


def test_a_list_of_files_that_is_gone_comes_back(tmp_path: Path) -> None:
    case = build(tmp_path)
    record = next(site_packages(case.prefix).glob("grid-*.dist-info")) / "RECORD"
    listed = record.read_text()
    record.unlink()
    done = case.apply()
    assert done.code == 0, done.told()
    assert record.read_text().splitlines()[:5] == listed.splitlines()[:5]
    assert case.run().out == WORKS


def edited(case: NativeCase) -> None:
    """Change a module by hand, to something longer and to something shorter."""
    package = site_packages(case.prefix) / "grid"
    with (package / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("\nprint  # a note of mine\n")
    (package / "shapes.py").write_text("def square(x):\n    return x*x\n", encoding="utf-8")


def stripped(case: NativeCase) -> None:
    """Strip the library, as images are made smaller."""
    library = site_packages(case.prefix) / "grid" / "libcells.so"
    before = library.stat().st_size
    subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)
    assert library.stat().st_size < before


def slim(case: NativeCase) -> None:
    """Delete tests, as images are made smaller."""
    (site_packages(case.prefix) / "grid" / "tests" / "test_core.py").unlink()


@pytest.mark.parametrize("change", [edited, stripped])
def test_what_people_change_on_purpose_is_told_and_left_as_it_is(
    tmp_path: Path, change: Callable[[NativeCase], None]
) -> None:
    case = build(tmp_path)
    change(case)
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 1
    assert "differ from the lists" in done.told()
    assert manifest(case.prefix) == before
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["findings"][0]["latent"] is True


def test_deleted_tests_are_no_fault(tmp_path: Path) -> None:
    case = build(tmp_path)
    slim(case)
    before = manifest(case.prefix)
    done = case.apply()
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()
    assert manifest(case.prefix) == before


def test_a_library_of_the_right_size_is_hashed_where_a_text_tells_of_it(tmp_path: Path) -> None:
    case = build(tmp_path)
    library = site_packages(case.prefix) / "grid" / "libcells.so"
    content = bytearray(library.read_bytes())
    content[-40] ^= 0xFF
    library.unlink()
    library.write_bytes(content)
    text = tmp_path / "error.log"
    text.write_text(f"ImportError: {library}: undefined symbol: cells_of_grid\n")
    found = case.envmedic("diagnose", str(text), "-p", str(case.prefix), "--json").document
    first = found["findings"][0]
    assert (found["verdict"], first["fault"], first["confirmed"]) == ("env", "half-installed", True), first


def test_content_is_compared_when_asked(tmp_path: Path) -> None:
    case = build(tmp_path)
    library = site_packages(case.prefix) / "grid" / "libcells.so"
    content = bytearray(library.read_bytes())
    content[-40] ^= 0xFF
    library.unlink()
    library.write_bytes(content)
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", "--deep").document
    assert [item["fault"] for item in found["findings"]] == ["half-installed"]
    done = case.apply("--deep")
    assert done.code == 0, done.told()
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json", "--deep").document["verdict"] == "healthy"
