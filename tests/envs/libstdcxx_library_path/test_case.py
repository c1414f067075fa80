"""The loader takes the older copy because of LD_LIBRARY_PATH, and the environment keeps a better value."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.libstdcxx_library_path.case import PathCase, build
from tests.support.cxx_runtime import SONAME, WANTED

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> PathCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_loader_takes_the_older_copy(broken: PathCase) -> None:
    done = broken.run_activated()
    assert done.code == 1
    assert f"{broken.older}/{SONAME}: version `{WANTED}' not found (required by " in done.err


def test_facts_name_the_copy_and_who_needs_what(broken: PathCase) -> None:
    done = broken.native.envmedic("diagnose", "-p", str(broken.native.prefix), "--json", **broken.shell())
    assert [item["playbook"] for item in done.document["findings"]] == ["libstdcxx-library-path"], done.told()
    best = done.document["findings"][0]
    assert (best["fault"], best["confirmed"]) == ("libstdcxx", True)
    assert any(WANTED in item["what"] and str(broken.older) in item["what"] for item in best["evidence"])


def test_the_environment_keeps_a_path_without_the_older_copy(broken: PathCase) -> None:
    log = broken.native.room / "error.log"
    log.write_text(broken.run_activated().err, encoding="utf-8")
    done = broken.native.apply("--log", str(log), **broken.shell())
    assert done.code == 0, done.told()
    assert broken.run_activated().out == "area: 12\n"
    undone = broken.native.envmedic("undo", "-p", str(broken.native.prefix), "--yes", "--json", **broken.shell())
    assert undone.code == 0, undone.told()
    assert broken.run_activated().code == 1
