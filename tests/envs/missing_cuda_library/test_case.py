"""Each missing library is found, comes back in torch's own version, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.missing_cuda_library.case import WAYS, build
from tests.support.cuda_family import broken


@pytest.mark.parametrize("way", list(WAYS))
def test_what_is_missing_comes_back(way: str, tmp_path: Path) -> None:
    case = build(tmp_path / "room", way)
    known = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    (finding,) = known.found_by("missing-cuda-library")
    assert finding["confirmed"] is True
    done = case.apply()
    assert done.code == 0, done.told()
    (change,) = done.document["plan"]["changes"]
    assert change["name"] in {"nvidia-cusparse-cu12", "nvidia-cuda-nvrtc-cu12", "nvidia-cudnn-cu12"}
    assert case.run().out == "cuDNN 90100\n"
    again = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert (again.code, again.document["verdict"]) == (0, "healthy"), again.told()


def test_the_error_text_leads_to_the_same_repair(tmp_path: Path) -> None:
    case = build(tmp_path / "room", "a wheel is not installed")
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    finding = done.document["plan"]["finding"]
    assert (finding["fault"], finding["signature"]) == ("missing-cuda-library", "cannot-open")
    assert case.run().code == 0


def test_libraries_of_the_host_serve_a_torch_without_wheels(tmp_path: Path) -> None:
    case = broken(tmp_path / "room")
    site = next((case.prefix / "lib").glob("python3.*/site-packages"))
    toolkit = tmp_path / "cuda" / "lib64"
    toolkit.mkdir(parents=True)
    for library in site.glob("nvidia/*/lib/*.so*"):
        library.rename(toolkit / library.name)
    for info in site.glob("nvidia_*.dist-info"):
        info.rename(tmp_path / info.name)
    healthy = case.envmedic("diagnose", "-p", str(case.prefix), "--json", LD_LIBRARY_PATH=str(toolkit))
    assert healthy.document["verdict"] == "healthy", healthy.told()
    lacking = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert lacking.document["findings"][0]["fault"] == "missing-cuda-library", lacking.told()
