"""A text of onnxruntime without code for a GPU is told; `tests/planner/remedies` has what the remedy decides."""

from __future__ import annotations

from pathlib import Path

from tests.support import consumers
from tests.support.wheels import make_wheel

LOG = Path(__file__).parent / "sample_onnxruntime.log"


def test_the_text_is_told_and_facts_of_another_host_leave_it_open(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / "wheels", "onnxruntime-gpu", "1.22.0", files={"onnxruntime/__init__.py": ""})]
    case = consumers.build(tmp_path, wheels, ["onnxruntime-gpu"], "raise SystemExit(1)")
    done = case.envmedic("diagnose", str(LOG), "-p", str(case.prefix), "--json")
    finding = done.document["findings"][0]
    assert (finding["fault"], finding["playbook"], finding["confirmed"]) == (
        "no-kernel-image",
        "consumer-gpu-code",
        None,
    )
