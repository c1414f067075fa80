"""The benchmark of diagnosis judges as it says, on a corpus of own texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench import diagnosis

NO_KERNEL = "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."
REPORTS = (
    {"id": "right", "fault": "torchvision-ops", "text": NO_KERNEL, "bare": False, "notes": "other keys do no harm"},
    {"id": "wrong", "fault": "numpy-abi", "text": NO_KERNEL, "bare": False},
    {"id": "unknown", "fault": "numpy-abi", "text": "RuntimeError: all is lost", "bare": False},
    {"id": "claimed", "fault": None, "text": NO_KERNEL, "bare": False},
    {"id": "memory", "fault": None, "text": "torch.OutOfMemoryError: CUDA out of memory.", "bare": False},
    {"id": "bare", "fault": "native-crash", "text": NO_KERNEL, "bare": True},
    {"id": "no text", "fault": "native-crash", "text": None, "bare": False},
)


@pytest.fixture(autouse=True)
def own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "reports.jsonl"
    path.write_text("\n".join(map(json.dumps, REPORTS)) + "\n\n", encoding="utf-8")
    return path


def test_bare_lines_and_reports_without_text_are_not_judged(corpus: Path) -> None:
    judged = {item.report.id: item for item in diagnosis.judge(diagnosis.read(corpus))}
    assert list(judged) == ["right", "wrong", "unknown", "claimed", "memory"]
    assert [name for name, item in judged.items() if item.right] == ["right", "memory"]
    assert [name for name, item in judged.items() if item.claimed] == ["right", "wrong", "claimed"]
    assert [name for name, item in judged.items() if item.among_three] == ["right"]


def test_figures_classes_confusions_and_misses_are_printed(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVMEDIC_CORPUS", str(corpus))
    assert diagnosis.main(["-v"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        "fault of the first finding right 1 of 3 33.3% aim \N{GREATER-THAN OR EQUAL TO} 92%: NOT met",
        "among the first three 1 of 3 33.3% aim \N{GREATER-THAN OR EQUAL TO} 97%: NOT met",
        "no fault, and one claimed 1 of 2 50.0% aim \N{LESS-THAN OR EQUAL TO} 5%: NOT met",
    ]
    assert "numpy-abi 2 0 0" in lines
    assert "none \N{RIGHTWARDS ARROW} torchvision-ops 1" in lines
    assert "numpy-abi \N{RIGHTWARDS ARROW} nothing 1" in lines
    assert "unknown: numpy-abi \N{RIGHTWARDS ARROW} unknown" in lines


def test_without_a_corpus_it_is_skipped_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosis.main([str(tmp_path / "none.jsonl")]) == 0
    assert "skipped: there is no corpus at" in capsys.readouterr().out
