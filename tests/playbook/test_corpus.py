"""Real reports, where they are at hand: reports.jsonl in the folder that ENVMEDIC_TEST_CORPUS names, or in ../shared/corpus."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

import pytest

from envmedic.diagnosis import diagnose
from envmedic.playbook import loader
from envmedic.playbook.match import scan

ROOT = Path(__file__).resolve().parents[2]
REPORTS = Path(os.environ.get("ENVMEDIC_TEST_CORPUS", ROOT.parent / "shared" / "corpus")) / "reports.jsonl"


class Report(TypedDict):
    """The parts of a report that are judged."""

    id: str
    fault: str | None
    text: str | None
    bare: bool


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    if not REPORTS.is_file():
        pytest.skip(f"no corpus of real reports at {REPORTS}")
    return [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]


def confidence_of(playbook: str, text: str) -> float:
    playbooks = (loader.load_file(loader.shipped_directory() / f"{playbook}.yaml", "shipped"),)
    matches = scan(text.encode().split(b"\n"), playbooks)
    return max((f.confidence for f in diagnose(matches, None, playbooks, prefix=None, log="log").findings), default=0.0)


def test_every_report_of_the_fault_is_recognised_and_no_other(reports: list[Report]) -> None:
    judged = [report for report in reports if report["text"] and not report["bare"]]
    assert any(report["fault"] == "torchvision-ops" for report in judged)
    found = {report["id"]: confidence_of("nms-cuda", report["text"] or "") >= 0.5 for report in judged}
    wanted = {report["id"]: report["fault"] == "torchvision-ops" for report in judged}
    assert {name for name in found if found[name] != wanted[name]} == set()
