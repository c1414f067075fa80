"""What people read: each renderer on values, without a process."""

from __future__ import annotations

import argparse
import io
import os
import threading
import time

import msgspec
import pytest

from envmedic.errors import CHANGED, RECOVERABLE, ChecksFailed, EnvmedicError, NoSolution
from envmedic.model.answers.witness import Witness
from envmedic.model.checks import Check, Outcome, Verification
from envmedic.model.events import (
    CheckFinished,
    Event,
    EventData,
    EventStream,
    Notice,
    OutputLine,
    Progress,
    StageFinished,
    StageStarted,
    StepStarted,
)
from envmedic.model.facts import Distribution, Environment, Facts, Gpu, Host, Interpreter, Origin, TorchBuild
from envmedic.model.findings import Alternative, Diagnosis, Evidence, Finding, RepairOutlook, VersionMove
from envmedic.model.plan import Change, Plan, PlanAlternative, Purge
from envmedic.model.record import (
    Difference,
    DistributionChange,
    DistributionState,
    ErrorDocument,
    Generation,
    History,
    Record,
)
from envmedic.render.documents.checks import comparison_lines, verification_lines
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.documents.errors import error_lines
from envmedic.render.documents.facts import facts_lines
from envmedic.render.documents.plan import SHOWN_ALTERNATIVES, plan_lines
from envmedic.render.documents.record import difference_lines, history_lines, record_lines
from envmedic.render.events import PLAIN_EVERY_S, SILENT_S, Narrator
from envmedic.render.next_command import apply_command
from envmedic.render.style import Style, duration, plain, size
from envmedic.render.text import TextPart, line, shortened, table

PLAIN = Style(colour=False)
COLOUR = Style(colour=True)
PLAN = Plan(
    envmedic="0",
    created="2026-01-01T00:00:00Z",
    prefix="/env",
    real_prefix="/env",
    environment_digest="",
    playbook="nms-cuda",
    fault="torchvision-ops",
    host=Host(),
    steps=(Purge(leftovers=("lib/x",)),),
    changes=(
        Change(kind="change", name="torchvision", before="0.18.1", after="0.20.1", owner="pip", size_bytes=7_000_000),
    ),
    stays=("torch 2.5.1",),
    stays_count=3,
)
RECORD = Record(
    transaction="20260101T000000000000Z-abcdef",
    envmedic="0",
    prefix="/my env",
    state="done",
    environment="repaired",
    started="2026-01-01T00:00:00Z",
    plan=PLAN,
    gpu="verified",
    before=(DistributionState(name="torchvision", version="0.18.1", owner="pip"),),
    after=(DistributionState(name="torchvision", version="0.20.1", owner="pip"),),
    checks_before=(Outcome(check="nms", status="fail", device="cpu", role="playbook"),),
    checks_after=(Outcome(check="nms", status="pass", device="cpu", role="playbook", seconds=0.5),),
    seconds={"clone": 1.5, "verify": 70.0},
)
FINDING = Finding(
    fault="torchvision-ops",
    playbook="nms-cuda",
    signature=None,
    confidence=0.85,
    confirmed=True,
    summary="it does not fit",
    fix_kind="reinstall-matching-wheel",
    groups={"what": "kernel"},
    evidence=(
        Evidence(kind="text", where="log:7", what="no \x1b[2Jkernel"),
        Evidence(kind="fact", where="torch.version", what="version of the installed torch: 2.5.1"),
    ),
    alternatives=(Alternative(title="Change torch", why_not="More depends on it."),),
)


def options(**given: object) -> argparse.Namespace:
    """Parsed options, all absent but those given."""
    return argparse.Namespace(**given)


def test_figures_are_in_units_that_people_read() -> None:
    assert [size(count) for count in (None, 0, 999, 1000, 5_500, 7_300_000_000, 2 * 10**15)] == [
        "?", "0 B", "999 B", "1.0 kB", "5.5 kB", "7.3 GB", "2000.0 TB",
    ]  # fmt: skip
    assert [duration(seconds) for seconds in (0.04, 9.94, 12.4, 59.4, 61, 3605)] == [
        "0.0 s", "9.9 s", "12 s", "59 s", "1 min 01 s", "60 min 05 s",
    ]  # fmt: skip


def test_nothing_that_acts_on_a_terminal_is_left() -> None:
    hostile = "a\x1b[31mb\x9b2J\u202ec\rd\x00"
    assert plain(hostile).isprintable()
    assert PLAIN.printed(line(hostile)).isprintable()
    assert COLOUR.printed(line("good", "good")) == "\x1b[32mgood\x1b[0m"
    assert COLOUR.printed(line(hostile)).isprintable()
    assert COLOUR.printed((TextPart(hostile),)).isprintable()  # also where nothing has made it visible
    assert shortened("x" * 500, 10) == "x" * 9 + "\N{HORIZONTAL ELLIPSIS}"


def test_columns_are_aligned() -> None:
    assert PLAIN.text(table([("a", "bbb", "c"), ("aaa", "b", "")])) == ["  a    bbb  c", "  aaa  b"]
    assert table([]) == []


@pytest.mark.parametrize(
    ("environment", "last"),
    [
        ("unchanged", "  The environment is unchanged"),
        (RECOVERABLE, "  A transaction was interrupted; `envmedic recover` settles it"),
        (CHANGED, "  The environment was exchanged before this; see `envmedic history`"),
    ],
)
def test_an_error_says_what_why_and_what_next(environment: str, last: str) -> None:
    error = EnvmedicError("It broke", cause="the disk\nis full", hint="Free some space", environment=environment)
    assert PLAIN.text(error_lines(error)) == [
        "error: It broke", "  cause: the disk", "         is full", "  hint: Free some space", last,
    ]  # fmt: skip


def test_an_error_tells_nothing_twice() -> None:
    only = NoSolution("No way", cause="torch: missing", details=("torch: missing",))
    assert PLAIN.text(error_lines(only))[1:-1] == ["  cause: torch: missing"]
    several = NoSolution("No way", cause="a: 1", details=("a: 1", "b: 2"))
    assert PLAIN.text(error_lines(several))[1:-1] == ["  | a: 1", "  | b: 2"]
    tool = NoSolution("No way", cause="it is gone", details=("error: failed\n", "", "  cause: it is gone"))
    assert PLAIN.text(error_lines(tool))[1:-1] == ["  | error: failed", "  cause: it is gone"]


def test_a_diagnosis_is_a_sentence_with_its_proof_and_the_next_command() -> None:
    diagnosis = Diagnosis(prefix="/my env", facts=None, verdict="env", findings=(FINDING,), log="/tmp/error.log")
    lines = PLAIN.text(diagnosis_lines(diagnosis))
    assert lines[0] == "✗ it does not fit"
    assert "  + version of the installed torch: 2.5.1" in lines
    quoted = lines.index("    error.log:7  no ␛[2Jkernel")
    assert lines[quoted + 1] == " " * (len("    error.log:7  no ␛[2J")) + "^^^^^^"
    assert "torchvision-ops · certain: the text and 1 fact agree; 1 other way to repair it with -v" in lines
    assert lines[-1] == "Next: envmedic plan --playbook nms-cuda -p '/my env'"
    assert "  - Change torch. More depends on it." in PLAIN.text(diagnosis_lines(diagnosis, detail=True))
    advised = msgspec.structs.replace(FINDING, advice=("`envmedic plan --playbook x` shows it",))
    lines = PLAIN.text(diagnosis_lines(msgspec.structs.replace(diagnosis, findings=(FINDING, advised))))
    assert "    `envmedic plan --playbook x -p '/my env'` shows it" in lines
    unknown = Diagnosis(prefix=None, facts=None, verdict="unknown", reason="the text is empty")
    assert PLAIN.text(diagnosis_lines(unknown)) == [
        "? Not recognised by any playbook", "  the text is empty",
    ]  # fmt: skip


def test_the_verdict_names_the_two_versions_that_disagree_and_the_repair() -> None:
    environment = Environment(
        prefix="/env", real_prefix="/env", kind="venv", interpreter=Interpreter(path="/env/bin/python", starts=True),
        distributions=(
            Distribution(name="torch", version="2.5.1", owner="uv", metadata_path="t", site="lib", origin=Origin(kind="index")),
            Distribution(name="torchvision", version="0.18.1", owner="uv", metadata_path="v", site="lib", origin=Origin(kind="index"), requires=("torch==2.3.1",)),
        ),
    )  # fmt: skip
    about = msgspec.structs.replace(FINDING, summary="torchvision's library did not load")
    found = Diagnosis(
        prefix="/env", facts=Facts(host=Host(), environment=environment), verdict="env", findings=(about,),
        repair=RepairOutlook(
            title="torchvision 0.20.1", torch="2.5.1", replaced_bytes=7_000_000,
            moves=(VersionMove(name="torchvision", before="0.18.1", after="0.20.1"),),
        ),
    )  # fmt: skip
    lines = PLAIN.text(diagnosis_lines(found))
    assert lines[0] == "✗ torchvision 0.18.1 does not work with torch 2.5.1"
    assert any(row.endswith("needs torch 2.3.1  ← wrong one") for row in lines)
    repair = "torchvision 0.18.1 → 0.20.1; torch stays 2.5.1; replaces 7.0 MB in a copy; undo goes back"
    assert f"  Repair  {repair}" in lines
    # another fault in the same environment is not about that pair
    other = msgspec.structs.replace(found, findings=(msgspec.structs.replace(FINDING, summary="numpy is too new"),))
    assert PLAIN.text(diagnosis_lines(other))[0] == "✗ numpy is too new"


def test_a_diagnosis_offers_no_repair_of_a_python_that_does_not_start() -> None:
    dead = Interpreter(path="/env/bin/python", starts=False, error="dangling symbolic link to /gone")
    environment = Environment(prefix="/env", real_prefix="/env", kind="venv", interpreter=dead)
    facts = Facts(host=Host(), environment=environment)
    lines = PLAIN.text(diagnosis_lines(Diagnosis(prefix="/env", facts=facts, verdict="env", findings=(FINDING,))))
    assert "Its Python does not start: dangling symbolic link to /gone" in lines
    assert not any(line.startswith("Next:") for line in lines)


def test_a_plan_shows_the_best_few_other_ways() -> None:
    ways = [PlanAlternative(title=f"set {n}", why_not="it replaces torch too") for n in range(9)]
    refused = [PlanAlternative(title=f"no {n}", why_not="a rule", feasible=False) for n in range(9)]
    lines = PLAIN.text(plan_lines(msgspec.structs.replace(PLAN, alternatives=(*refused, *ways))))
    start = lines.index("Other ways  --way TITLE takes one")
    assert lines[start + 1 : start + 1 + SHOWN_ALTERNATIVES] == [
        f"  - set {n}: it replaces torch too" for n in range(SHOWN_ALTERNATIVES)
    ]
    assert lines[-1] == f"  and {18 - 2 * SHOWN_ALTERNATIVES} more, which --json lists"
    assert not any(row.startswith("Other ways") for row in PLAIN.text(plan_lines(PLAN)))


def test_a_plan_says_what_changes_and_what_stays() -> None:
    lines = PLAIN.text(plan_lines(PLAN))
    assert "  torchvision  0.18.1  →  0.20.1  pip  7.0 MB" in lines
    assert "  Unchanged: torch 2.5.1, 2 other packages" in lines
    same = Change(kind="change", name="torchvision", before="0.20.1", after="0.20.1", owner="pip")
    again = PLAIN.text(plan_lines(msgspec.structs.replace(PLAN, changes=(same,))))
    assert "  torchvision  0.20.1  →  0.20.1 again  pip  size unknown" in again
    linked = PLAIN.text(plan_lines(msgspec.structs.replace(PLAN, prefix="/link")))
    assert linked[1] == "  in /link -> /env"


def test_a_plan_says_what_it_costs_what_proves_it_and_what_it_cannot_prove() -> None:
    checks = (
        Check(name="import", role="playbook"), Check(name="torchvision-nms", role="playbook", gpu=True),
        Check(name="conv", role="informative", gpu=True),
    )  # fmt: skip
    plan = msgspec.structs.replace(
        PLAN, checks=checks, download_bytes=1_900_000_000, disk_bytes=7_500_000_000, took_before_s=62.0,
        commands=(("uv", "pip", "install", "x"),), further=("numpy is too new",), unanswered=("it crashes",),
    )  # fmt: skip
    told = "\n".join(PLAIN.text(plan_lines(plan)))
    assert "Download 1.9 GB (about 3 min 10 s at 10.0 MB/s); up to 7.5 GB more on disk while undo is possible." in told
    assert "The last repair here took 1 min 02 s." in told
    assert (
        "Checks  2 must pass in the copy before it takes the environment's place: import, torchvision-nms (GPU). 1 more"
        in told
    )
    assert "2 of the checks need a GPU, and none is visible here: nothing would be proven on one." in told
    assert "Not proven by it: it crashes; no fact would show its end" in told
    assert "Then    Further rounds in the same copy" in told
    assert "\n        numpy is too new" in told
    assert "uv pip install" not in told
    assert "-v shows the commands" in told
    assert "    $ uv pip install x" in PLAIN.text(plan_lines(plan, detail=True))
    gpu = msgspec.structs.replace(plan, host=Host(gpus=(Gpu(index=0, name="H100", visible=True),)))
    assert "nothing would be proven" not in "\n".join(PLAIN.text(plan_lines(gpu)))


def test_conda_packages_and_wheels_stand_in_one_table() -> None:
    channel = "https://conda.example/pytorch"
    changes = (
        Change(kind="remove", name="pytorch-cuda", before="12.1", owner="conda", by="conda", before_build="h7_5", channel=channel),
        Change(
            kind="change", name="pytorch", before="2.3.1", after="2.3.1", owner="conda", by="conda",
            before_build="py3.11_cpu_0", after_build="py3.11_cuda12.1_cudnn8.9.2_0", channel=channel,
        ),
        Change(
            kind="change", name="mkl", before="2024.0", after="2024.0", owner="conda", by="conda",
            before_build="h1_0", after_build="h1_0",
        ),
        Change(kind="change", name="torchvision", before="0.18.1", after="0.24.1", owner="conda", package="torchvision"),
        Change(kind="install", name="triton", after="3.5.0"),
    )  # fmt: skip
    told = [line.split() for line in PLAIN.text(plan_lines(msgspec.structs.replace(PLAN, changes=changes)))]
    assert ["pytorch-cuda", "12.1", "→", "removed", "h7_5", "conda", "(pytorch)", "size", "unknown"] in told
    builds = ["py3.11_cpu_0", "→", "py3.11_cuda12.1_cudnn8.9.2_0"]
    assert ["pytorch", "2.3.1", "→", "2.3.1", *builds, "conda", "(pytorch)", "size", "unknown"] in told
    assert ["mkl", "2024.0", "→", "2024.0", "again", "h1_0", "conda", "size", "unknown"] in told
    moved = ["conda", "(torchvision)", "→", "wheel"]
    assert ["torchvision", "0.18.1", "→", "0.24.1", *moved, "size", "unknown"] in told
    assert ["triton", "none", "→", "3.5.0", "size", "unknown"] in told


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "envmedic apply -p /env"),
        ({"playbook": "nms-cuda"}, "envmedic apply --playbook nms-cuda -p /env"),
        ({"log": "my log"}, "envmedic apply --log 'my log' -p /env"),
        ({"log": "-"}, "envmedic apply --playbook nms-cuda -p /env"),
        (
            {"find_links": ["/a", "/b c"], "offline": True, "no_gpu": True, "installer": "pip", "timeout": 2.5},
            "envmedic apply --find-links /a --find-links '/b c' --offline --no-gpu --installer pip --timeout 2.5 -p /env",
        ),
        (
            {"installer": ["uv", "conda"], "pin": True, "deep": True},
            "envmedic apply --pin --deep --installer conda -p /env",
        ),
        ({"torch_index": "http://m/{variant}", "installer": "uv"}, "envmedic apply --torch-index 'http://m/{variant}' -p /env"),
        ({"output": "plan.json", "no_gpu": True, "find_links": ["/a"]}, "envmedic apply plan.json --no-gpu"),
        ({"user_command": ("python", "a b.py")}, "envmedic apply -p /env --reproduce -- python 'a b.py'"),
    ],
)  # fmt: skip
def test_the_next_command_carries_the_options_that_matter(given: dict[str, object], words: str) -> None:
    assert apply_command(PLAN, options(**given)) == words


def test_a_record_of_a_repair() -> None:
    lines = PLAIN.text(record_lines(RECORD))
    program = [
        "Program      your program was not run. To run it and repair what fails:",
        "  envmedic run -p '/my env' -- CMD",
        "  envmedic apply --last -p '/my env'",
    ]
    assert lines[-6:] == [
        "Environment  repaired and verified in 1 min 12 s",
        "GPU          verified",
        *program,
        "To go back: envmedic undo -p '/my env'",
    ]
    assert "  torchvision  0.18.1  →  0.20.1" in lines
    assert "  nms    cpu     fail    pass   0.5 s" in lines
    waived = msgspec.structs.replace(RECORD, gpu="not verified", gpu_reason="--no-gpu was given")
    assert PLAIN.text(record_lines(waived))[-6:-1] == [
        "Environment  repaired in 1 min 12 s",
        "GPU          not verified (--no-gpu was given)",
        *program,
    ]
    passed = msgspec.structs.replace(RECORD, program="passed")
    assert PLAIN.text(record_lines(passed))[-2] == "Program      passed"
    others = tuple(Witness(machine=name, proved=name != "n3") for name in ("n2", "n3", "n4"))
    shared = PLAIN.text(record_lines(msgspec.structs.replace(passed, witnesses=others)))
    assert shared[-3] == "Machines     proven on n2, n4 too; n3 asked for programs that use it"


def test_a_record_of_going_back_and_coming_again() -> None:
    back = PLAIN.text(record_lines(msgspec.structs.replace(RECORD, environment="restored", state="undone"), moved=True))
    assert "  torchvision  0.20.1  →  0.18.1" in back
    assert "Checks" not in back
    assert back[-1] == "To bring the repair back: envmedic redo -p '/my env'"
    again = PLAIN.text(record_lines(RECORD, moved=True))
    assert "Checks" not in again
    assert "Environment  repaired and verified, brought back" in again


def test_a_record_of_a_failure_is_an_error_with_its_checks() -> None:
    error = ErrorDocument(
        code="checks-failed", exit_code=4, summary="The repaired copy fails", cause="nms on cpu: fail", hint="See above",
        environment="unchanged", details=("nms on cpu: fail",),
    )  # fmt: skip
    failed = msgspec.structs.replace(RECORD, environment="unchanged", state="aborted", failure=error)
    lines = PLAIN.text(record_lines(failed))
    assert lines[lines.index("error: The repaired copy fails") :] == [
        "error: The repaired copy fails",
        "  cause: nms on cpu: fail",
        "  hint: See above",
        "",
        "Environment  unchanged",
    ]
    assert "Checks" in lines
    assert not any("To go back" in line for line in lines)


def test_history_marks_what_is_live_and_what_can_be_done() -> None:
    assert PLAIN.text(history_lines(History(prefix="/env", generations=()))) == ["No transaction of envmedic on /env"]
    one = Generation(
        transaction="tx", parent=None, state="done", live=True, started="2026", finished=None, playbook=None,
        changes=("torchvision 0.18.1 -> 0.20.1",), undo_possible=True, redo_possible=False, size_bytes=0,
    )  # fmt: skip
    assert PLAIN.text(history_lines(History(prefix="/env", generations=(one,))))[-1].split() == [
        "*", "tx", "done", "2026", "torchvision", "0.18.1", "->", "0.20.1", "0", "B", "undo",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "-"), (1, "c0"), (4, "c0, c1, c2, c3"), (5, "c0, c1, c2, 2 more"), (25, "c0, c1, c2, 22 more")],
)
def test_a_row_of_the_history_names_few_changes(count: int, told: str) -> None:
    one = Generation(
        transaction="tx", parent=None, state="done", live=False, started="2026", finished=None, playbook=None,
        changes=tuple(f"c{number}" for number in range(count)), undo_possible=False, redo_possible=False, size_bytes=0,
    )  # fmt: skip
    assert f"2026     {told.ljust(7)}  0 B" in PLAIN.text(history_lines(History(prefix="/env", generations=(one,))))[-1]


def test_a_difference_lists_distributions_and_the_first_files() -> None:
    found = Difference(
        prefix="/env", before="found", after="now", added=tuple(f"f{number}" for number in range(22)), removed=(),
        changed=("bin/x\x1b",), distributions=(DistributionChange(name="six", before=None, after="1.17"),),
    )  # fmt: skip
    lines = PLAIN.text(difference_lines(found))
    assert lines[0] == "From the environment as it was found to the environment as it is now"
    assert lines[2].split() == ["six", "none", "→", "1.17"]
    assert lines[4] == "22 files added"
    assert "  and 2 more" in lines
    assert lines[-2:] == ["1 file changed", "  bin/x␛"]
    same = Difference(prefix="/env", before="a", after="b", added=(), removed=(), changed=(), distributions=())
    assert PLAIN.text(difference_lines(same))[2:] == [
        "No distribution differs",
        "",
        "No file differs, caches of byte code apart",
    ]
    unknown = msgspec.structs.replace(same, files_compared=False)
    assert "Files are not compared" in PLAIN.text(difference_lines(unknown))[-1]
    assert "No file differs" not in "\n".join(PLAIN.text(difference_lines(unknown)))


def test_outcomes_that_say_nothing_new_are_one_line() -> None:
    imports = [Outcome(check=f"import m{n}", status="pass", seconds=0.1) for n in range(9)]
    crash = Outcome(check="conv", device="cuda:0", status="crash", signal="SIGSEGV", reason="died\x1b[2J")
    verification = Verification(
        prefix="/env", gpu="not verified", gpu_reason="crash", passed=False, outcomes=(*imports, crash)
    )
    lines = PLAIN.text(verification_lines(verification))
    assert lines[0].split() == ["conv", "cuda:0", "crash", "(SIGSEGV)", "0.0", "s", "died␛[2J"]
    assert lines[1] == "  9 imports passed in 0.9 s"
    assert lines[-1] == "Verification  not passed, gpu: not verified (crash)"
    assert PLAIN.text(comparison_lines(imports, imports)) == ["Checks", "  9 imports pass as before"]
    assert PLAIN.text(comparison_lines((), imports)) == ["Checks", "  9 imports pass"]


def test_facts_say_what_torch_was_built_for() -> None:
    python = Interpreter(path="/env/bin/python", starts=True, version="3.11.7")
    environment = Environment(prefix="/env", real_prefix="/env", kind="venv", interpreter=python)
    host = Host(
        driver_version="550.1", driver_cuda="12.4", driver_source="nvml",
        gpus=(Gpu(index=0, name="H100", compute_capability="9.0", visible=False),),
    )  # fmt: skip
    lines = PLAIN.text(facts_lines(Facts(host=host, environment=environment)))
    assert any("550.1, runs CUDA up to 12.4 (nvml)" in line for line in lines)
    assert any("0: H100, 9.0 (hidden by CUDA_VISIBLE_DEVICES)" in line for line in lines)
    for build, says in (
        (TorchBuild(version="2.5.1", cuda=None), "built for CPUs"),
        (TorchBuild(version="2.5.1", cuda="12.4", variant="cu124"), "built for cu124, GPU code unknown"),
        (
            TorchBuild(version="2.5.1", cuda="12.4", variant="cu124", arch_list=("9.0",)),
            "built for cu124, GPU code for 9.0",
        ),
    ):
        from envmedic.render.documents.facts import _build

        assert _build(build) == says


class Clock:
    """The time, as a test wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("envmedic.render.events.time.monotonic", lambda: self.now)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def narrated(*data: EventData, verbosity: int = 0) -> list[str]:
    """Lines that a pipe gets."""
    stream = io.StringIO()
    events = EventStream([Narrator(stream, PLAIN, verbosity)], clock=lambda: 0.0)
    for item in data:
        events.emit(item)
    return stream.getvalue().splitlines()


def test_short_stages_and_passing_checks_are_not_narrated() -> None:
    check = CheckFinished(phase="after", outcome=Outcome(check="nms", status="pass"))
    quiet = (StageStarted(stage="probe"), check, StageFinished(stage="probe", seconds=SILENT_S / 2))
    assert narrated(*quiet) == []
    assert len(narrated(*quiet, verbosity=1)) == 2
    assert narrated(StageFinished(stage="clone", seconds=3.0)) == ["cloning the environment: done in 3.0 s"]
    assert narrated(StageFinished(stage="clone", seconds=3.0, ok=False)) == ["cloning the environment: failed in 3.0 s"]


def test_steps_warnings_and_output_by_verbosity() -> None:
    step = StepStarted(index=1, total=2, description="remove x")
    warning = Notice(code="c", message="take \x1b[2Jcare", level="warning")
    output = OutputLine(source="uv", line="Resolved")
    assert narrated(step, warning, output) == [
        "step 1 of 2: remove x",
        "warning: take ␛[2Jcare",
    ]
    assert narrated(step, warning, output, verbosity=1)[-1] == "    Resolved"
    assert narrated(step, warning, output, verbosity=-1) == ["warning: take ␛[2Jcare"]


def test_progress_of_what_takes_long_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(monkeypatch), io.StringIO()
    narrator = Narrator(stream, PLAIN)
    data: list[EventData] = [StageStarted(stage="fetch")]
    data += [Progress(stage="fetch", unit="bytes", done=n * 10**6, total=10**8, label="torch") for n in range(120)]
    for item in data:
        narrator(Event(transaction=None, sequence=0, time=0.0, data=item))
        clock.now += 0.1
    lines = stream.getvalue().splitlines()
    assert len(lines) == int(12 / PLAIN_EVERY_S)
    assert lines[0].startswith("fetching wheels: ")
    assert lines[0].endswith(" of 100.0 MB torch")


def test_on_a_terminal_the_stage_is_shown_and_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(monkeypatch), Terminal()
    narrator = Narrator(stream, PLAIN)
    check = CheckFinished(phase="after", outcome=Outcome(check="nms", status="fail"))
    done = Progress(stage="verify", unit="checks", done=1, label="waits for torch", left_s=12.0)
    for item in (StageStarted(stage="verify"), check, done, StageFinished(stage="verify", seconds=2.0)):
        narrator(Event(transaction=None, sequence=0, time=0.0, data=item))
        clock.now += SILENT_S + 1
    told = "running the checks: 1 check, about 12 s left, waits for torch"
    assert stream.getvalue().startswith(f"⠋ running the checks\r\x1b[K⠙ {told}  4.0 s\r")
    assert stream.getvalue().endswith("running the checks: done in 2.0 s\n")
    long = Progress(stage="clone", unit="files", done=1, label="x" * 500)
    narrator(Event(transaction=None, sequence=0, time=0.0, data=long))
    clock.now += SILENT_S + 1
    narrator(Event(transaction=None, sequence=0, time=0.0, data=long))
    drawn = stream.getvalue().rpartition("\n")[2]
    assert 20 < len(drawn) < 200
    narrator.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_each_download_has_a_bar_and_leaves_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(monkeypatch), Terminal()
    narrator = Narrator(stream, PLAIN)
    parts = [(n * 10**7, 10**8) for n in range(11)]
    data: list[EventData] = [StageStarted(stage="fetch")]
    data += [
        Progress(
            stage="fetch", unit="bytes", done=done, total=2 * 10**8, label="torch.whl", item_done=done, item_total=whole
        )
        for done, whole in parts
    ]
    for item in [*data, StageFinished(stage="fetch", seconds=11.0)]:
        narrator(Event(transaction=None, sequence=0, time=0.0, data=item))
        clock.now += 1.0
    shown = stream.getvalue()
    assert "torch.whl          ━━━━━━━╸────── 50.0 MB of 100.0 MB, 10.0 MB/s, 5.0 s left" in shown
    assert "✓  torch.whl  100.0 MB in 10 s\n" in shown
    assert not [one for one in threading.enumerate() if one is not threading.main_thread() and one.daemon]


def test_a_wait_without_a_report_shows_that_it_goes_on() -> None:
    stream = Terminal()
    narrator = Narrator(stream, PLAIN)
    narrator(Event(transaction=None, sequence=0, time=0.0, data=StageStarted(stage="resolve")))
    while stream.getvalue().count("resolving exact wheels") < 3:
        time.sleep(0.01)
    narrator.close()
    drawn = stream.getvalue()
    assert drawn.startswith("⠋ resolving exact wheels\r\x1b[K⠙ resolving exact wheels")
    assert drawn.endswith("\r\x1b[K")


def test_checks_failed_is_told_with_the_worst_first() -> None:
    error = ChecksFailed("The repaired copy fails its checks", cause="nms: fail", details=("nms: fail", "conv: fail"))
    assert PLAIN.text(error_lines(error))[1:3] == ["  | nms: fail", "  | conv: fail"]


def test_a_gone_reader_ends_the_narration_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        narrator = Narrator(stream, PLAIN)
        slow = Progress(stage="probe", unit="files", done=1)
        data = (StageStarted(stage="probe"), slow, slow, StageFinished(stage="probe", seconds=3.0))
        for item in data:
            narrator(Event(transaction=None, sequence=0, time=0.0, data=item))
            clock.now += PLAIN_EVERY_S + SILENT_S
        narrator.close()
