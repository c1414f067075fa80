"""A module without code for the node's GPU is found by its fat binaries, and compiled again for that GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.no_kernel_image_extension.case import build

pytestmark = pytest.mark.long


def test_torch_has_code_for_the_gpu_and_the_module_has_not(tmp_path: Path) -> None:
    case = build(tmp_path, "9.0")
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert [item["playbook"] for item in done.document["findings"]] == ["no-kernel-image-extension"], done.told()
    (evidence,) = done.document["findings"][0]["evidence"]
    assert "box_ops/_C.so has code for 7.5, not for 9.0" in evidence["what"]


def test_on_the_gpu_that_it_was_compiled_for_it_is_fine(tmp_path: Path) -> None:
    case = build(tmp_path, "7.5")
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


def test_it_is_compiled_again_for_the_gpus_that_are_there(tmp_path: Path) -> None:
    case = build(tmp_path, "9.0")
    log = Path(__file__).with_name("sample_no_kernel_image.log")
    done = case.native.apply(*case.options()[2:], "--log", str(log))
    assert done.code == 0, done.told()
    assert done.document["plan"]["playbook"] == "no-kernel-image-extension"
    assert case.native.run().out == "area: 12\n"
    after = case.native.envmedic("diagnose", *case.options(), "--json")
    assert after.document["verdict"] == "healthy", after.told()
