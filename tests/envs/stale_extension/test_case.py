"""What was compiled with another torch does not load, and is compiled again from its recorded source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.stale_extension.case import build
from tests.support.native_case import NativeCase
from tests.support.torch_modules import NEW, NEWER

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def source(case: NativeCase) -> Path:
    """The user's source directory."""
    return case.room / "src" / "box-ops"


def test_the_loader_misses_torchs_symbol(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == 1
    assert done.err.splitlines()[-1].endswith(f"box_ops/_C.so: undefined symbol: {NEW}")


def test_with_the_torch_that_it_was_compiled_with_it_is_healthy(tmp_path: Path) -> None:
    sound = build(tmp_path, torch=NEWER.version)
    assert sound.run().out == "area: 12\n"
    done = sound.envmedic("diagnose", "-p", str(sound.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


@pytest.mark.parametrize("by", ["log", "facts"])
def test_it_is_compiled_again_and_nothing_old_is_taken(broken: NativeCase, by: str) -> None:
    left = source(broken) / "build" / "_C.so"
    before = left.read_bytes()
    done = broken.apply(*(("--log", str(broken.log())) if by == "log" else ()))
    assert done.code == 0, done.told()
    assert done.document["plan"]["playbook"] == "stale-extension"
    assert broken.run().out == "area: 12\n"
    assert left.read_bytes() == before, "the user's source directory is not written to"
    undone = broken.envmedic("undo", "-p", str(broken.prefix), "--yes", "--json")
    assert undone.code == 0, undone.told()
    assert broken.run().code == 1
