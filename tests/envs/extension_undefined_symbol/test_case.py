"""The loader refuses the module by itself, its symbol is found without loading it, and the other build cures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.extension_undefined_symbol.case import FOR_OLDER, build
from tests.support.native_case import NativeCase
from tests.support.torch_modules import NEW

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_loader_misses_torchs_symbol(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == 1
    assert done.err.splitlines()[-1].endswith(f"box_ops/_C.so: undefined symbol: {NEW}")


def test_facts_alone_tell_who_needs_what(broken: NativeCase) -> None:
    before = sorted(broken.prefix.rglob("*"))
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (1, "env"), done.told()
    best = done.document["findings"][0]
    assert (best["fault"], best["playbook"], best["confirmed"]) == (
        "extension-undefined-symbol", "extension-undefined-symbol", True,
    )  # fmt: skip
    (told,) = (item["what"] for item in best["evidence"])
    assert "box-ops" in told
    assert "box_ops/_C.so needs c10::Error::Error" in told
    assert "built for torch 2.7" in told
    assert sorted(broken.prefix.rglob("*")) == before


def test_a_module_of_this_torch_is_healthy(tmp_path: Path) -> None:
    sound = build(tmp_path, installed=FOR_OLDER)
    assert sound.run().out == "area: 12\n"
    done = sound.envmedic("diagnose", "-p", str(sound.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


@pytest.mark.parametrize("by", ["log", "facts"])
def test_the_build_for_this_torch_takes_its_place(broken: NativeCase, by: str) -> None:
    done = broken.apply(*(("--log", str(broken.log())) if by == "log" else ()))
    assert done.code == 0, done.told()
    changes = [(item["kind"], item["name"], item["after"]) for item in done.document["plan"]["changes"]]
    assert changes == [("change", "box-ops", FOR_OLDER)]
    assert broken.run().out == "area: 12\n"
