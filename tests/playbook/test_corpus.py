"""Real reports, where they are at hand: the file that ENVMEDIC_CORPUS names, or reports.jsonl in ../shared/corpus."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.diagnosis import CLAIM_AIM, CORPUS, FIRST_AIM, THREE_AIM, Judged, judge, read


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    corpus = Path(os.environ.get("ENVMEDIC_CORPUS") or CORPUS)
    if not corpus.is_file():
        pytest.skip(f"no corpus of real reports at {corpus}")
    return judge(read(corpus))


def test_most_reports_are_diagnosed_rightly_from_their_text_alone(judged: list[Judged]) -> None:
    faulty = [item for item in judged if item.report.fault is not None]
    assert sum(item.right for item in faulty) >= FIRST_AIM * len(faulty) > 0
    assert sum(item.among_three for item in faulty) >= THREE_AIM * len(faulty)


def test_hardly_any_report_without_a_fault_is_blamed_on_the_environment(judged: list[Judged]) -> None:
    healthy = [item for item in judged if item.report.fault is None]
    assert sum(item.claimed for item in healthy) <= CLAIM_AIM * len(healthy)
