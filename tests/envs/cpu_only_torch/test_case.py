"""Where there is a GPU, the same release for CUDA takes its place; where there is none, nothing is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.cpu_only_torch.case import build
from tests.support.cuda_family import host_file


@pytest.mark.parametrize("companion", [False, True])
def test_the_same_release_for_cuda_takes_its_place(companion: bool, tmp_path: Path) -> None:  # noqa: FBT001  # a parameter
    case = build(tmp_path / "room", companion=companion)
    host = ("--host", host_file(tmp_path))
    done = case.apply(*host, *([] if companion else ["--log", str(case.log())]))
    assert done.code == 0, done.told()
    assert done.document["plan"]["finding"]["fault"] == "cpu-only-torch"
    changes = {item["name"]: (item["before"], item["after"]) for item in done.document["plan"]["changes"]}
    assert changes["torch"] == ("2.5.1+cpu", "2.5.1")
    assert changes["nvidia-cudnn-cu12"] == (None, "9.1.0.70")
    assert case.run().out == "CUDA 12.4\n"


def test_a_torch_for_the_cpu_is_no_fault_by_itself(tmp_path: Path) -> None:
    case = build(tmp_path / "room")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", "--host", host_file(tmp_path))
    assert found.document["verdict"] == "healthy", found.told()


def test_where_no_gpu_is_seen_no_build_is_chosen_by_it(tmp_path: Path) -> None:
    case = build(tmp_path / "room", companion=True)
    log = str(case.log())
    host = ("--host", host_file(tmp_path, driver_version=None, gpus=[]))
    found = case.envmedic("diagnose", log, "-p", str(case.prefix), "--json", *host)
    finding, beside = found.document["findings"]
    assert (beside["fault"], beside["confirmed"]) == ("missing-cuda-library", True), "of CuPy, which nobody asked about"
    assert (finding["fault"], finding["confirmed"]) == ("cpu-only-torch", None), "the text may be of another host"
    assert any(item["what"].startswith("number of visible GPUs: 0") for item in finding["evidence"])
    refused = case.apply("--log", log, *host)
    assert (refused.code, refused.document["code"]) == (1, "no-solution"), refused.told()
    assert "--host FILE" in refused.document["hint"]
    assert case.run().code == 1
