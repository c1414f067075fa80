"""Trying a playbook before it is used: what its writer is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic.api.context.settings import Settings
from envmedic.api.playbook_trial import try_playbook
from envmedic.errors import InputError, InvalidPlaybook
from envmedic.model.answers.playbook_trial import PlaybookTest
from envmedic.model.events import EventStream
from tests.cli.support import Shell

ROOT = Path(__file__).resolve().parents[2]
OWN = """\
id: frobnicator-abi
fault: companion-version
title: frobnicator was built for another release of its library
fix_kind: pin-package
explain: The wheel of frobnicator carries no copy of its library.
signatures:
  - id: wrong-release
    pattern: "{pattern}"
    sample: "{sample}"
steps:
  - step: install
    requirements: ["frobnicator<4"]
checks: [import]
references: [https://example.com/frobnicator]
"""
PATTERN = "frobnicator: library release (?P<release>[0-9.]+) is not the one it was built for"
SAMPLE = "RuntimeError: frobnicator: library release 3.2 is not the one it was built for"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "frobnicator-abi.yaml"
    path.write_text(OWN.format(pattern=PATTERN, sample=SAMPLE), encoding="utf-8")
    return path


def tried(file: Path, *logs: Path) -> PlaybookTest:
    return try_playbook(Settings(stream=EventStream(())), str(file), [str(log) for log in logs])


def said(found: PlaybookTest, status: str) -> dict[str, str]:
    return {trial.about: trial.told for trial in found.trials if trial.status == status}


def edited(file: Path, before: str, after: str) -> Path:
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")
    return file


def test_a_sound_playbook_passes_and_its_writer_learns_how_it_will_work(file: Path) -> None:
    found = tried(file)
    assert (found.passed, found.playbook, said(found, "fail")) == (True, "frobnicator-abi", {})
    assert "is found, 90% sure" in said(found, "pass")["signature wrong-release"]
    assert list(said(found, "note")) == ["when"]


def test_a_log_that_it_is_meant_for_must_be_taken_for_it(file: Path, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.log", tmp_path / "wrong.log"
    right.write_text(f"epoch 1\nTraceback (most recent call last):\n{SAMPLE}\n", encoding="utf-8")
    wrong.write_text("RuntimeError: operator torchvision::nms does not exist\n", encoding="utf-8")
    assert tried(file, right).passed
    found = tried(file, right, wrong)
    assert not found.passed
    assert said(found, "fail") == {f"log {wrong}": "it is taken for nms-cuda, and this playbook is not found"}


def test_a_pattern_that_takes_what_others_know_fails(file: Path) -> None:
    edited(file, PATTERN, "RuntimeError: .*(?:library release|does not exist)")
    edited(file, "    sample:", "    confidence: 1.0\n    sample:")
    found = tried(file)
    assert not found.passed
    assert "in the place of nms-cuda" in said(found, "fail")["sample of nms-cuda"]


def test_a_pattern_that_only_fits_the_bare_line_is_told(file: Path) -> None:
    found = tried(edited(file, PATTERN, "^RuntimeError: frobnicator: library release 3.2 is not"))
    assert found.passed
    assert "behind the prefix of a log" in said(found, "note")["signature wrong-release"]


def test_steps_that_are_never_carried_out_and_a_repair_without_proof_fail(file: Path) -> None:
    edited(file, "checks: [import]\n", "")
    edited(file, "  - step: install", '  - step: command\n    argv: ["make", "it"]\n  - step: install')
    assert set(said(tried(file), "fail")) == {"steps", "checks"}


def test_a_playbook_about_no_fault_is_found_as_that() -> None:
    found = tried(ROOT / "playbooks" / "out-of-memory.yaml")
    assert found.passed
    assert {trial.told for trial in found.trials if trial.status == "pass"} == {
        "its sample is taken for not-an-env-problem"
    }


def test_the_flagship_passes_and_knows_which_of_its_samples_another_knows_better() -> None:
    found = tried(ROOT / "playbooks" / "nms-cuda.yaml")
    assert found.passed
    assert "is taken for duplicate-install first" in said(found, "note")["signature registered-twice"]


def test_playbooks_that_facts_tell_apart_may_share_a_text() -> None:
    found = tried(ROOT / "playbooks" / "nvidia-wheel-conflict.yaml")
    assert found.passed
    shared = [item.told for item in found.trials if item.about == "sample of cudnn-mismatch"]
    assert shared
    assert all(told.endswith("; facts tell them apart") for told in shared)


def test_mistakes_and_files_that_are_not_there_are_errors(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidPlaybook):
        tried(edited(file, "title:", "titel:"))
    with pytest.raises(InputError):
        tried(tmp_path / "none.yaml")


def test_the_command_says_it_and_exits_with_it(file: Path, tmp_path: Path) -> None:
    kept = os.environ.get("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))  # reading all playbooks takes seconds
    user = Shell(tmp_path, {"XDG_CACHE_HOME": kept})
    passed = user.envmedic("playbooks", "test", str(file), "--json")
    assert (passed.code, passed.document["schema"], passed.document["passed"]) == (0, "envmedic.playbook-test/1", True)
    log = tmp_path / "other.log"
    log.write_text("nothing\n", encoding="utf-8")
    failed = user.envmedic("playbooks", "test", str(file), str(log))
    assert failed.code == 1
    assert failed.out.splitlines()[-1] == "frobnicator-abi: 1 failed, 3 tried"
