"""What is no matter of the environment is explained, with what to do, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

from tests.support.building import torch_wheel
from tests.support.native_case import build_native

LOG = Path(__file__).with_name("sample.log")


def test_it_is_explained_and_nothing_is_changed(tmp_path: Path) -> None:
    case = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], "")
    found = case.envmedic("diagnose", str(LOG), "-p", str(case.prefix), "--json").document
    assert found["findings"][0]["playbook"] == "python-headers"
    assert found["findings"][0]["confirmed"] is not True
    done = case.apply("--log", str(LOG))
    assert done.code == 1, done.told()
    assert not (case.room / ".envmedic").exists()
