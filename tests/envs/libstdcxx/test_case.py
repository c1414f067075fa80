"""A copy that the environment itself has is too old; no step can tell which copy may replace it, so it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.libstdcxx.case import build
from tests.support.cxx_runtime import SONAME, WANTED
from tests.support.native_case import NativeCase


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_loader_finds_too_old_a_copy(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == 1
    assert f"{SONAME}: version `{WANTED}' not found (required by " in done.err


def test_facts_name_the_copy_and_what_may_be_done(broken: NativeCase) -> None:
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json")
    assert [item["playbook"] for item in done.document["findings"]] == ["libstdcxx"], done.told()
    (evidence, *_) = done.document["findings"][0]["evidence"]
    assert f"needs {WANTED}, " in evidence["what"]


def test_a_copy_that_is_new_enough_is_fine(tmp_path: Path) -> None:
    sound = build(tmp_path, new=True)
    assert sound.run().out == "area: 12\n"
    done = sound.envmedic("diagnose", "-p", str(sound.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


def test_advice_changes_nothing(broken: NativeCase) -> None:
    before = sorted((path, path.lstat().st_mtime_ns) for path in broken.prefix.rglob("*"))
    done = broken.apply("--log", str(broken.log()))
    assert done.code == 1, done.told()
    assert "libstdc++" in done.told()
    assert sorted((path, path.lstat().st_mtime_ns) for path in broken.prefix.rglob("*")) == before
