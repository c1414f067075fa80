"""The crash arises by itself, is found as a pair of imports, and av in the place of decord cures it, ten times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.envs.decord_segfault.case import build
from tests.support.native_case import NativeCase
from tests.support.venvs import site_packages

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def checks(record: dict[str, Any], phase: str) -> dict[str, tuple[str, str | None]]:
    """Status and signal by check."""
    return {item["check"]: (item["status"], item["signal"]) for item in record[f"checks_{phase}"]}


def test_each_import_works_alone_and_in_the_other_order(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == -11, done.told()
    assert "Fatal Python error: Segmentation fault" in done.err
    broken.program.write_text("import nvdiffrast\nimport transformers\nprint(nvdiffrast.contexts())\n")
    assert broken.run().out == "4\n"


def test_the_pair_is_found_by_imports_in_processes_of_their_own(broken: NativeCase) -> None:
    before = sorted(broken.prefix.rglob("*"))
    done = broken.envmedic("diagnose", str(broken.log()), "-p", str(broken.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (1, "env"), done.told()
    best = done.document["findings"][0]
    assert (best["fault"], best["playbook"], best["confirmed"]) == ("native-crash", "decord-segfault", True)
    crash = done.document["facts"]["import_crash"]
    assert (crash["sequence"], crash["signal"]) == (["decord", "nvdiffrast"], "SIGSEGV")
    assert crash["works"] == ["nvdiffrast", "decord"]
    assert sorted(broken.prefix.rglob("*")) == before, "not even byte code is written"


def test_facts_alone_import_nothing_and_blame_nobody(broken: NativeCase) -> None:
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()
    assert done.document["facts"]["import_crash"] is None


@pytest.mark.parametrize("by", ["log", "playbook", "command"])
def test_av_takes_the_place_of_decord(broken: NativeCase, by: str) -> None:
    options = {
        "log": ("--log", str(broken.log())),
        "playbook": ("--playbook", "decord-segfault"),
        "command": ("--reproduce", "--", str(broken.python), "-X", "faulthandler", str(broken.program)),
    }[by]
    done = broken.apply(*options)
    assert done.code == 0, done.told()
    name = "import-sequence decord nvdiffrast"
    assert checks(done.document, "before")[name] == ("crash", "SIGSEGV")
    assert checks(done.document, "after")[name] == ("pass", None)
    assert [(item["kind"], item["name"]) for item in done.document["plan"]["changes"]] == [
        ("remove", "decord"), ("install", "av"),
    ]  # fmt: skip
    assert broken.run().out == "videos by av and 4 contexts\n"
    assert not list(site_packages(broken.prefix).glob("decord*"))


def test_a_command_is_run_and_diagnosed(broken: NativeCase) -> None:
    before = sorted(broken.prefix.rglob("*"))
    command = ("--reproduce", "--", "python", str(broken.program))
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json", *command)
    assert (done.code, done.document["findings"][0]["playbook"]) == (1, "decord-segfault"), done.told()
    assert "SIGSEGV" in done.document["log"]
    assert sorted(broken.prefix.rglob("*")) == before
    broken.program.write_text("print('fine')")
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json", *command)
    assert (done.code, done.document["verdict"]) == (0, "healthy")
    assert "ended with exit code 0" in done.err
    refused = broken.envmedic("diagnose", "-p", str(broken.prefix), "x.log", "--reproduce", "--", "true")
    assert refused.code == 2


def test_what_requires_decord_keeps_it(tmp_path: Path) -> None:
    case = build(tmp_path, requiring=True)
    done = case.apply("--log", str(case.log()))
    assert done.code == 1, done.told()
    assert "video-llm" in done.told()
    assert list(site_packages(case.prefix).glob("decord*"))


def test_without_the_crash_there_is_nothing_to_repair(broken: NativeCase) -> None:
    log = broken.log()
    (site_packages(broken.prefix) / "nvdiffrast" / "__init__.py").write_text("def contexts(): return 4\n")
    done = broken.apply("--log", str(log))
    assert done.code == 1, done.told()
    assert list(site_packages(broken.prefix).glob("decord*"))
