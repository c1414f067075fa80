"""A symbol is missing as with the real wheels, and torch's own wheels put back cure it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.nvidia_wheel_conflict.case import OLDER, OVERWRITTEN, build

pytestmark = pytest.mark.long

MISSING = {OLDER: "__nvJitLinkCreate_12_4", OVERWRITTEN: "ncclCommRegister"}
CHANGED = {
    OLDER: [("nvidia-nvjitlink-cu12", "12.1.105", "12.4.127")],
    OVERWRITTEN: [("nvidia-nccl-cu11", "2.14.3", None), ("nvidia-nccl-cu12", "2.21.5", "2.21.5")],
}


@pytest.mark.parametrize(("way", "by"), [(OLDER, "facts"), (OLDER, "log"), (OVERWRITTEN, "facts")])
def test_the_wheels_that_torch_states_are_put_back(way: str, by: str, tmp_path: Path) -> None:
    case = build(tmp_path / "room", way)
    log = case.log()
    assert f"undefined symbol: {MISSING[way]}" in log.read_text(encoding="utf-8")
    known = case.envmedic("diagnose", *([str(log)] if by == "log" else []), "-p", str(case.prefix), "--json")
    (finding,) = known.found_by("nvidia-wheel-conflict")
    assert finding["confirmed"] is True
    assert any(MISSING[way] in item["what"] for item in finding["evidence"])
    done = case.apply(*(["--log", str(log)] if by == "log" else []))
    assert done.code == 0, done.told()
    changes = [(item["name"], item["before"], item["after"]) for item in done.document["plan"]["changes"]]
    assert changes == CHANGED[way]
    # the wheel that went lists it, the one that came does not, and others do
    assert [*case.prefix.glob("lib/python3*/site-packages/nvidia/__init__.py")]
    assert case.run().out == "cuDNN 90100\n"
