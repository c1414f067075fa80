"""The module misses a function of its own, which no torch has, and a build with all its files brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.extension_not_built.case import SYMBOL, build
from tests.support.native_case import NativeCase

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_loader_misses_a_function_of_the_module_itself(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == 1
    assert done.err.splitlines()[-1].endswith(f"box_ops/_C.so: undefined symbol: {SYMBOL}")


def test_facts_tell_it_from_a_symbol_of_torch(broken: NativeCase) -> None:
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json")
    best = done.document["findings"][0]
    assert (best["fault"], best["playbook"]) == ("extension-undefined-symbol", "extension-not-built")
    assert "box_ops/_C.so needs box_area_cuda(int, int)" in best["evidence"][0]["what"]
    assert [item["playbook"] for item in done.document["findings"]] == ["extension-not-built"]


def test_built_with_all_its_files_it_is_healthy(tmp_path: Path) -> None:
    sound = build(tmp_path, seen=True)
    assert sound.run().out == "area: 12\n"
    done = sound.envmedic("diagnose", "-p", str(sound.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


def test_a_build_with_all_its_files_mends_it(broken: NativeCase) -> None:
    done = broken.apply("--log", str(broken.log()), FORCE_CUDA="1")
    assert done.code == 0, done.told()
    assert done.document["plan"]["playbook"] == "extension-not-built"
    assert broken.run().out == "area: 12\n"


def test_where_nothing_has_changed_the_build_mends_nothing_and_the_environment_stays(broken: NativeCase) -> None:
    before = sorted((path, path.lstat().st_mtime_ns) for path in broken.prefix.rglob("*"))
    done = broken.apply("--log", str(broken.log()))
    assert done.code in (1, 4), done.told()
    assert sorted((path, path.lstat().st_mtime_ns) for path in broken.prefix.rglob("*")) == before
