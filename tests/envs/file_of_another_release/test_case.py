"""What only its writer mends is explained, with what to do, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import torch_wheel
from tests.support.native_case import build_native

LOGS = sorted(Path(__file__).parent.glob("sample_*.log"))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_it_is_explained_and_nothing_is_changed(tmp_path: Path, log: Path) -> None:
    case = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], "")
    found = case.envmedic("diagnose", str(log), "-p", str(case.prefix), "--json").document
    assert found["findings"][0]["playbook"] == "file-of-another-release"
    assert found["findings"][0]["confirmed"] is not True
    done = case.apply("--log", str(log))
    assert done.code == 1, done.told()
    assert not (case.room / ".envmedic").exists()
