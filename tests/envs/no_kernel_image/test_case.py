"""A torch without code for the node's GPU is found by its files, and its other CUDA variant takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.no_kernel_image.case import build


def test_facts_tell_what_torch_has_code_for(tmp_path: Path) -> None:
    case = build(tmp_path, "12.0")
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert (done.code, done.document["verdict"]) == (1, "env"), done.told()
    best = done.document["findings"][0]
    assert (best["fault"], best["playbook"], best["confirmed"]) == ("no-kernel-image", "no-kernel-image", True)
    assert "12.0: 5.0, 6.0, 7.0, 7.5, 8.0, 8.6, 9.0" in best["evidence"][0]["what"]


@pytest.mark.parametrize("capability", ["9.0", "8.9", "7.5"])
def test_a_gpu_that_runs_its_code_is_fine(tmp_path: Path, capability: str) -> None:
    case = build(tmp_path, capability)
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


def test_one_gpu_of_two_is_enough(tmp_path: Path) -> None:
    case = build(tmp_path, "9.0", "12.0")
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert done.document["findings"][0]["playbook"] == "no-kernel-image"


def test_the_same_release_in_another_variant_takes_its_place(tmp_path: Path) -> None:
    case = build(tmp_path, "12.0")
    log = Path(__file__).with_name("sample_no_kernel_image.log")
    target = (*case.options(), "--yes", "--no-gpu", "--json", "--log", str(log))
    done = case.native.envmedic("apply", *target, **case.variables())
    assert done.code == 0, done.told()
    changes = [(item["kind"], item["name"], item["after"]) for item in done.document["plan"]["changes"]]
    assert changes == [("change", "torch", "2.7.1+cu128")]
    assert case.native.run().out == "CUDA 12.8\n"
