"""Without its library MKL keeps torch from loading, and the same MKL, anew, cures it."""

from __future__ import annotations

from pathlib import Path

from tests.envs.mkl_libraries.case import build
from tests.support.conda_torch import MKL


def test_the_same_mkl_is_installed_again(tmp_path: Path) -> None:
    case = build(tmp_path)
    log = case.log()
    assert f"{MKL}: cannot open shared object file" in log.read_text()
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    changes = [(item["name"], item["before"], item["after"]) for item in done.document["plan"]["changes"]]
    assert changes == [("mkl", "2024.0.0", "2024.0.0")]
    assert case.run().out == "threads: 2\n"
