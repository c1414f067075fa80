"""What is told while checks run: the names without an outcome, and how long they take where that is known of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.api.context import check_seconds
from envmedic.engine.verify.waiting import Waiting, longest_first, seconds_of
from envmedic.model.checks import Check, Outcome

CHECKS = (
    Check(name="import", arguments=("a", "b", "c", "d")),
    Check(name="matmul", gpu=True),
    Check(name="conv", gpu=True),
)
EARLIER = {"import a": 4.0, "import b": 2.0, "import c": 9.0, "import d": 1.0, "matmul": 3.0, "conv": 5.0}


def outcome(check: str, seconds: float = 1.0, device: str | None = None) -> Outcome:
    return Outcome(check=check, status="pass", seconds=seconds, device=device)


def test_those_that_run_are_named_and_the_others_counted() -> None:
    waiting = Waiting(CHECKS, {}, workers=2)
    assert waiting.progress("after").label == "waits for a, b, matmul and 3 more"
    for check in ("import b", "matmul-fp32", "import d", "conv-fp16"):
        waiting.heard(outcome(check))
    told = waiting.progress("after")
    assert (told.stage, told.done, told.label, told.left_s) == ("verify", 4, "waits for a, c", None)
    for check in ("import a", "import c", "matmul-bf16"):
        waiting.heard(outcome(check))
    assert (waiting.progress("after").done, waiting.progress("after").label) == (7, "")


def test_an_estimate_needs_all_that_is_left() -> None:
    known = Waiting(CHECKS, EARLIER, workers=2)
    assert known.progress("after").left_s == 9.0, "the longest one: 16 s of imports in two processes take 8 s"
    known.heard(outcome("import c"))
    assert known.progress("after").left_s == 5.0
    partly = Waiting(CHECKS, {name: value for name, value in EARLIER.items() if name != "import d"}, workers=2)
    assert partly.progress("after").left_s is None
    partly.heard(outcome("import d"))
    assert partly.progress("after").left_s == 9.0


def test_imports_that_took_longest_begin_first() -> None:
    ordered = longest_first(CHECKS, EARLIER)
    assert ordered[0].arguments == ("c", "a", "b", "d")
    assert ordered[1:] == list(CHECKS[1:])


def test_an_import_whose_time_nobody_knows_begins_before_those_that_are_known() -> None:
    known = {name: value for name, value in EARLIER.items() if name != "import d"}
    assert longest_first(CHECKS, known)[0].arguments == ("d", "c", "a", "b")
    assert longest_first(CHECKS, {}) == list(CHECKS)


def test_seconds_are_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outcomes = [
        outcome("import a", 2.5),
        outcome("matmul-fp32", 1.0, "cuda:0 H100"),
        outcome("matmul-bf16", 0.5, "cuda:0 H100"),
    ]
    assert check_seconds.load(Path("/env")) == {}
    check_seconds.keep(Path("/env"), seconds_of(outcomes))
    check_seconds.keep(Path("/env"), {"conv": 2.0})
    assert check_seconds.load(Path("/env")) == {"import a": 2.5, "matmul": 1.5, "conv": 2.0}
    assert check_seconds.load(Path("/other")) == {}


def test_what_cannot_be_kept_or_read_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    check_seconds.keep(Path("/env"), {"conv": 2.0})
    assert check_seconds.load(Path("/env")) == {}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    check_seconds.keep(Path("/env"), {"conv": 2.0})
    (kept,) = (tmp_path / "envmedic" / "check-seconds").iterdir()
    kept.write_text("[1, 2")
    assert check_seconds.load(Path("/env")) == {}
