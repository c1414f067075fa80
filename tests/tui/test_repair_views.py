"""What is shown of a repair, from its events and its record: plain values, without Textual."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.errors import ChecksFailed, EnvironmentBusy, PreflightError
from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model.checks import Outcome, Phase, Status
from envmedic.model.events import (
    CheckFinished,
    Event,
    EventData,
    Notice,
    OutputLine,
    Progress,
    RoundStarted,
    StageFinished,
    StageStarted,
    StateChanged,
    StepFinished,
    StepStarted,
    TransactionStarted,
)
from envmedic.model.facts import Host
from envmedic.model.plan import Change, Pin, Plan, Purge
from envmedic.model.ports import Exchange, Means, ProcessUser
from envmedic.model.record import DistributionState, Left, Record, Round, error_document
from envmedic.render.cells import width
from envmedic.render.pages.starting import gpu_missing, means_lines, start_lines
from envmedic.render.progress import repair_state
from envmedic.render.progress.check_table import check_table, evidence
from envmedic.render.progress.repair import cancel_lines, clock, head_lines, log_lines, question_lines, stage_lines
from envmedic.render.progress.repair_state import CheckRow, Repair, RepairLog
from envmedic.render.progress.result import result_page, verdict_line
from envmedic.render.text import Line, bare
from envmedic.tui.panels.lock_choices import tick_lines

PLAN = Plan(
    envmedic="0", created="", prefix="/envs/a", real_prefix="/envs/a", environment_digest="", playbook="nms-cuda",
    fault="torchvision-ops", host=Host(), steps=(Purge(), Pin(constraints=("torch==2.5.1",))), gpu_checks=True,
    changes=(Change(kind="change", name="torchvision", before="0.18.1", after="0.20.1", owner="uv"),),
)  # fmt: skip
BEGUN = Repair("/envs/a", PLAN, "envmedic apply -p /envs/a", 1000.0)
START = 1000.0


def after(*told: EventData | float, repair: Repair = BEGUN) -> Repair:
    """The repair after these events; a number lets so many seconds pass."""
    now = START
    events: list[Event] = []
    for item in told:
        if isinstance(item, float):
            now += item
        else:
            events.append(Event(transaction="t", sequence=len(events), time=now, data=item))
    return repair.after(events)


def outcome(check: str, status: Status = "pass", *, device: str | None = "cpu", **more: object) -> Outcome:
    return Outcome(check=check, status=status, device=device, **more)  # type: ignore[arg-type]


def ran(check: str, status: Status = "pass", phase: Phase = "before", **more: object) -> CheckFinished:
    return CheckFinished(phase=phase, outcome=outcome(check, status, **more))  # type: ignore[arg-type]


def texts(lines: Iterable[Line]) -> list[str]:
    return [bare(line).rstrip() for line in lines]


def record(**changes: object) -> Record:
    given: dict[str, object] = {
        "transaction": "tx", "envmedic": "0", "prefix": "/envs/a", "state": "done", "environment": "repaired",
        "started": "", "plan": PLAN, "exchange": "exchange", "seconds": {"clone": 2.0}, **changes,
    }  # fmt: skip
    return Record(**given)  # type: ignore[arg-type]


def test_stages_show_what_is_done_what_runs_and_what_is_to_come() -> None:
    repair = after(
        StageStarted(stage="preflight"), 0.5, StageFinished(stage="preflight", seconds=0.5), StageStarted(stage="clone")
    )
    lines = texts(stage_lines(repair, START + 3.5, 26))
    assert lines[:3] == ["✓ Can it start?      0.5 s", "▸ Clone               0:03", "· Checks before"]
    assert lines[-1] == "· Checks in place"
    assert max(map(width, lines)) <= 26


def test_a_question_that_comes_before_the_last_events_is_still_open_after_them() -> None:
    exchange = Exchange(record(), "/envs/.envmedic/tx/env", ())
    repair = after(StageStarted(stage="verify")).asking(exchange, START + 1)
    repair = after(ran("fam", phase="after"), StageFinished(stage="verify", seconds=1.0), repair=repair)
    assert [(row.part, row.running) for row in repair.stages] == [("verify", False), ("ask", True)]
    assert repair.stages[0].outcomes == 1
    assert texts(head_lines(repair, START + 9, 80))[0] == "? Waits for your answer  0:09  Your answer"
    assert not repair.answered(START + 9).current


def test_how_long_a_stage_takes_is_told_by_its_rate_or_by_the_same_checks_before() -> None:
    fetching = after(
        StageStarted(stage="fetch"), Progress(stage="fetch", unit="bytes", done=25, total=100, label="torch")
    )
    assert fetching.expected_seconds(START + 10) == 30.0
    assert "25 B of 100 B torch, about 0:30 left" in texts(head_lines(fetching, START + 10, 80))[1]
    checking = after(
        StageStarted(stage="reproduce"), ran("one", "fail", seconds=4.0), ran("two", seconds=8.0),
        StageFinished(stage="reproduce", seconds=12.0), StageStarted(stage="verify"), ran("one", phase="after"),
        Progress(stage="verify", unit="checks", done=1, label="waits for two", left_s=8.0),
    )  # fmt: skip
    assert (checking.expected_checks(), checking.expected_seconds(START)) == (2, 8.0)
    assert "1 of 2 checks, waits for two, about 0:08 left" in texts(head_lines(checking, START, 120))[1]


def test_checks_of_another_round_fill_the_column_again() -> None:
    first = after(
        StageStarted(stage="reproduce"), ran("one", "fail"), StageFinished(stage="reproduce", seconds=1.0),
        StageStarted(stage="verify"), ran("one", "fail", phase="after"), StageFinished(stage="verify", seconds=1.0),
    )  # fmt: skip
    assert first.checks["one", "cpu"].after is not None
    second = after(RoundStarted(round=2, because="one fails still"), StageStarted(stage="verify"), repair=first)
    assert second.checks["one", "cpu"].after is None
    assert "Round 2: one fails still" in texts(stage_lines(second, START, 40))


def test_steps_and_warnings_are_told_and_the_journal_says_what_is_in_place() -> None:
    repair = after(
        TransactionStarted(
            prefix="/envs/a", directory="/envs/.envmedic/tx", clone="link", staging="namespace", exchange="exchange"
        ),
        StageStarted(stage="steps"),
        StepStarted(index=2, total=3, description="install torch", commands=(("uv", "pip", "install"),)),
        Notice(code="x", message="the disk is slow", level="warning"),
    )
    assert "Repair the copy: install torch" in texts(head_lines(repair, START, 80))[0]
    assert "1 of 3 steps" in texts(head_lines(repair, START, 80))[1]
    assert texts(stage_lines(repair, START, 40))[-1] == "! the disk is slow"
    assert repair.stoppable
    repair = after(StepFinished(index=2, seconds=1.0, ok=True), StateChanged(state="exchanged"), repair=repair)
    assert not repair.stoppable
    assert "in place" in texts(head_lines(repair, START, 90))[2]
    assert "too late" in texts(cancel_lines(repair))[0]


def test_the_log_has_what_commands_print_as_text() -> None:
    told: list[EventData] = [
        StageStarted(stage="steps"),
        StepStarted(index=1, total=1, description="remove it", commands=(("rm", "-r"),)),
        OutputLine(source="uv", line="\x1b[31mred [bold]"),
        ran("matmul", max_relative_error=1e-7),
    ]
    events = [Event(transaction=None, sequence=0, time=0.0, data=item) for item in told]
    lines = list(log_lines(events))
    assert lines[:3] == ["── repairing the clone", "step 1 of 1: remove it", "    $ rm -r"]
    assert "[bold]" in lines[3]
    assert "err 1.0e-07" in lines[4]


def test_a_log_keeps_its_newest_lines_and_its_count() -> None:
    log = RepairLog()
    log.add(f"line {number}" for number in range(repair_state.KEPT_LINES + 5))
    assert log.total == repair_state.KEPT_LINES + 5
    assert log.since(0)[0] == "line 5"
    assert log.since(log.total - 2) == [f"line {log.total - 2}", f"line {log.total - 1}"]


def test_the_table_of_checks_fits_and_tells_what_many_share_once() -> None:
    rows = [CheckRow(outcome(f"import m{number}"), outcome(f"import m{number}")) for number in range(4)]
    rows += [CheckRow(outcome("nms", "fail"), outcome("nms", "fail", reason="no kernel", device="cuda:0 NVIDIA H200"))]
    rows += [CheckRow(outcome("roi", "fail"), outcome("roi", "crash", reason="no kernel", signal="SIGSEGV"))]
    rows += [CheckRow(outcome(name, "skip", reason="no GPU")) for name in ("conv", "fft")]
    for cells in (44, 60, 100):
        lines = texts(check_table(rows, cells))
        assert max(width(text) for text in lines[:6]) <= cells
        assert sum("no kernel" in text for text in lines) == 1
        assert any(text.startswith("4 imports") for text in lines)
        assert lines[-1] == "skipped: no GPU: conv, fft"
        assert any("SIGSEGV" in text for text in lines)
    assert "NVIDIA" in "".join(texts(check_table(rows, 100)))
    assert "NVIDIA" not in "".join(texts(check_table(rows, 60)))
    assert check_table([], 60) == []


def test_the_question_says_what_changes_places_and_who_uses_it() -> None:
    asked = record(
        environment="unchanged", gpu="not verified", gpu_reason="--no-gpu",
        checks_before=(outcome("one", "fail"), outcome("two", "fail")),
        checks_after=(outcome("one"), outcome("two", "fail"), outcome("three", "skip")),
    )  # fmt: skip
    users = tuple(ProcessUser(pid=number, command=f"job {number}", why="maps") for number in range(1, 12))
    text = "\n".join(texts(question_lines(Exchange(asked, "/envs/.envmedic/tx/env", users))))
    assert "1 passed, 1 fail as before, 1 skipped; GPU: not verified (--no-gpu)" in text
    assert ".envmedic/tx/env" in text
    assert "11 processes run from it" in text
    assert "8  job 8  (has its libraries loaded)" in text
    assert "and 3 more" in text
    assert "No process runs from it" in texts(question_lines(Exchange(asked, "/x", ())))[-1]


def test_a_result_has_before_and_after_and_the_way_back() -> None:
    sides = [DistributionState(name=name, version="1", owner="uv") for name in ("torch", "numpy")]
    done = record(
        before=(*sides, DistributionState(name="torchvision", version="0.18.1", owner="uv")),
        after=(*sides, DistributionState(name="torchvision", version="0.20.1", owner="uv")),
        checks_before=(outcome("nms", "fail"),), checks_after=(outcome("nms"),), notes=("mind the gap",),
        rounds=(Round(number=1, plan_id="p", failed=("nms: fail",), summary="first"), Round(number=2, plan_id="q", failed=(), summary="second")),
    )  # fmt: skip
    lines = texts(result_page(BEGUN.ending(done, START + 5), 80))
    assert lines[0] == "✓ Repaired and verified  in 2.0 s"
    assert "  torchvision  0.18.1 (uv)  0.20.1 (uv)" in lines
    assert "  2 packages stay as before" in lines
    assert "  $ envmedic undo -p /envs/a" in lines
    assert "  torch==2.5.1" in lines
    assert "  1. ✗ first: nms: fail" in lines
    assert "  2. ✓ second: repaired" in lines
    assert "  mind the gap" in lines
    assert "Program      your program was not run. To run it and repair what fails:" in lines
    left = (Left(summary="numpy is old", why="no wheel fits", reported=True),)
    partly = texts(result_page(BEGUN.ending(record(outcome="partial", left=left, program="passed"), START), 80))
    assert partly[0] == "! Repaired in part  in 2.0 s"
    assert "Not repaired: numpy is old: no wheel fits" in partly
    assert "Program      passed" in partly


def test_what_failed_is_told_with_evidence_and_that_nothing_was_changed() -> None:
    error = ChecksFailed("The repaired copy fails its checks", cause="nms: fail", hint="Try another way")
    failing = outcome("nms", "fail", role="playbook", reason="boom", detail="\n".join(f"line {n}" for n in range(30)))
    failed = record(
        state="aborted", environment="unchanged", failure=error_document(error), error=error.summary,
        checks_after=(failing, outcome("conv", "fail", detail="not asked")),
    )  # fmt: skip
    repair = BEGUN.ending(failed, START)
    lines = texts(result_page(repair, 80))
    assert lines[0] == "✗ Not repaired  your environment is unchanged"
    assert "error: The repaired copy fails its checks" in lines
    assert "  hint: Try another way" in lines
    assert "    line 29" in lines
    assert "    line 3" not in lines
    assert texts(evidence([CheckRow(after=outcome("conv", "fail", detail="not asked"))])) == []
    refused = BEGUN.ending(PreflightError("No room", hint="Make some"), START)
    assert texts(result_page(refused, 80))[0] == "Your environment is unchanged, byte for byte as it was."
    assert bare(verdict_line(refused)) == "✗ Not repaired  your environment is unchanged"
    stuck = BEGUN.ending(ChecksFailed("It broke", environment="recoverable"), START)
    assert "unchanged" not in bare(verdict_line(stuck))


def test_the_go_ahead_says_what_it_accepts() -> None:
    assert gpu_missing(PLAN, Host())
    assert not gpu_missing(PLAN, None)
    busy = EnvironmentBusy("2 processes run from it", details=("42 jupyter",))
    text = "\n".join(texts(start_lines(PLAN, busy, Host())))
    assert "42 jupyter" in text
    assert "--allow in-use" in text
    assert "--no-gpu" in text
    means = Means("link", "namespace", "two-renames", 5_000_000, ("no exchange here",))
    told = "\n".join(texts(means_lines(means)))
    assert "hard links" in told
    assert "5.0 MB" in told
    assert "by two renames" in told
    assert "! no exchange here" in told


def test_times_are_read_at_a_glance() -> None:
    assert [clock(value) for value in (0.4, 62, 3723)] == ["0:00", "1:02", "1:02:03"]


def test_lock_files_are_called_as_they_are_written() -> None:
    for name, form in LOCK_FORMATS.items():
        (told,) = texts(tick_lines(name, ticked=True, cells=80))
        assert told.split() == ["[x]", form.filename, *form.about.split()]
