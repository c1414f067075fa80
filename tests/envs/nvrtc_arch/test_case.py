"""A run-time compiler that does not know the node's GPU is found by its release, and a newer variant brings another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.nvrtc_arch.case import build

pytestmark = pytest.mark.long


def test_the_code_serves_the_gpu_and_the_compiler_does_not_know_it(tmp_path: Path) -> None:
    case = build(tmp_path, "12.1")
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert [item["playbook"] for item in done.document["findings"]] == ["nvrtc-arch"], done.told()
    assert (
        done.document["findings"][0]["evidence"][0]["what"]
        == "compute capabilities of visible GPUs that torch's run-time compiler does not know: 12.1: 12.8"
    )


def test_a_gpu_that_it_knows_is_fine(tmp_path: Path) -> None:
    case = build(tmp_path, "12.0")
    done = case.native.envmedic("diagnose", *case.options(), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()


def test_the_same_release_with_a_newer_compiler_takes_its_place(tmp_path: Path) -> None:
    case = build(tmp_path, "12.1")
    log = Path(__file__).with_name("sample_invalid_architecture.log")
    target = (*case.options(), "--yes", "--no-gpu", "--json", "--log", str(log))
    done = case.native.envmedic("apply", *target, **case.variables())
    assert done.code == 0, done.told()
    changes = [(item["kind"], item["name"], item["after"]) for item in done.document["plan"]["changes"]]
    assert changes == [("change", "torch", "2.8.0+cu129")]
    assert case.native.run().out == "CUDA 12.9\n"
