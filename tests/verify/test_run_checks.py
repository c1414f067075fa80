"""Checks run through a runner, their outcomes stream, and nothing that goes wrong is lost."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from envmedic.engine.verify.verification import merged, run_checks
from envmedic.errors import InputError
from envmedic.model.checks import Check, Outcome, named_check
from envmedic.model.events import CheckFinished, EventData, OutputLine
from envmedic.model.registries.check_kinds import CHECK_NAMES, CHECKS, GPU_CHECKS, PROFILES
from envmedic.model.registries.faults import FAULTS
from tests.kernels.driving import STAND_IN
from tests.support.venvs import make_venv, python_of, site_packages
from tests.verify.runners import LocalRunner

SOUND = {"PYTHONPATH": str(STAND_IN)}


class Heard(list[EventData]):
    """An emit function that keeps what it gets."""

    def __call__(self, data: EventData) -> None:
        self.append(data)

    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(event.outcome for event in self if isinstance(event, CheckFinished))

    def lines(self) -> list[tuple[str, str]]:
        return [(event.source, event.line) for event in self if isinstance(event, OutputLine)]


def _run(*checks: Check, runner: LocalRunner | None = None, **settings: object) -> tuple[Outcome, ...]:
    return run_checks(checks, runner or LocalRunner(SOUND), "after", Heard(), **settings)  # type: ignore[arg-type]


def test_outcomes_come_in_the_order_of_the_checks_with_their_roles_and_as_events() -> None:
    heard = Heard()
    checks = (
        Check(name="torchvision-nms", role="reproduction"),
        Check(name="import", role="regression", arguments=("json", "torchvision", "absent")),
        Check(name="matmul"),
    )
    outcomes = run_checks(checks, LocalRunner(SOUND), "before", heard)
    assert [(outcome.check, outcome.device, outcome.role, outcome.status) for outcome in outcomes] == [
        ("torchvision-nms", "cpu", "reproduction", "pass"),
        ("import json", None, "regression", "pass"),
        ("import torchvision", None, "regression", "pass"),
        ("import absent", None, "regression", "fail"),
        ("matmul-fp32", "cpu", "informative", "pass"),
        ("matmul-bf16", "cpu", "informative", "pass"),
    ]
    assert sorted(heard.outcomes(), key=str) == sorted(outcomes, key=str)
    assert {event.phase for event in heard if isinstance(event, CheckFinished)} == {"before"}


def test_a_failure_carries_reason_detail_signal_and_numbers() -> None:
    crash, *_ = _run(Check(name="torchvision-nms"), runner=LocalRunner({**SOUND, "FAULT": "segfault at nms"}))
    assert (crash.status, crash.signal, crash.reason) == ("crash", "SIGSEGV", "ended by SIGSEGV")
    assert "Segmentation fault" in crash.detail
    wrong, *_ = _run(Check(name="matmul"), runner=LocalRunner({**SOUND, "FAULT": "zeros at float32 matmul"}))
    assert wrong.status == "fail"
    assert wrong.max_relative_error is not None
    assert wrong.tolerance is not None
    assert wrong.max_relative_error > 100 * wrong.tolerance


def test_gpus_are_used_unless_the_user_refuses() -> None:
    runner = LocalRunner({**SOUND, "GPUS": "1", "CUDA_BUILD": "12.4"})
    check = Check(name="torchvision-roi-align", role="playbook", gpu=True)
    assert [o.device for o in _run(check, runner=runner)] == ["cpu", "cuda:0 Stand-in GPU"]
    _, skipped = _run(check, runner=runner, no_gpu=True)
    assert (skipped.device, skipped.status, skipped.reason) == ("cuda", "skip", "--no-gpu was given")


def test_no_byte_code_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "fresh.py").write_text("")
    outcome, *_ = _run(Check(name="import", arguments=("fresh",)), runner=LocalRunner({"PYTHONPATH": str(tmp_path)}))
    assert outcome.status == "pass"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["fresh.py"]


def test_no_temporary_file_of_a_crash_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules, room = tmp_path / "modules", tmp_path / "room"
    modules.mkdir()
    room.mkdir()
    (modules / "untidy.py").write_text("import os, tempfile\ntempfile.mkdtemp()\nos.abort()\n")
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    outcome, *_ = _run(
        Check(name="import", arguments=("untidy",)),
        runner=LocalRunner({"PYTHONPATH": str(modules), "TMPDIR": str(room)}),
    )
    assert outcome.status == "crash"
    assert not list(room.iterdir())


def test_terminal_escapes_do_not_reach_the_outcome(tmp_path: Path) -> None:
    (tmp_path / "rude.py").write_text("raise ImportError('\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07and\\x08 done')")
    outcome, *_ = _run(Check(name="import", arguments=("rude",)), runner=LocalRunner({"PYTHONPATH": str(tmp_path)}))
    assert outcome.reason == "ImportError: red and done"
    assert "\x1b" not in outcome.detail


def test_an_interpreter_that_does_not_start_crashes_every_check(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'No module named encodings' >&2; exit 1\n")
    broken.chmod(0o755)
    checks = (Check(name="import", arguments=("json", "os")), Check(name="matmul", role="playbook"))
    for python in (broken, tmp_path / "missing"):
        heard = Heard()
        outcomes = run_checks(checks, LocalRunner(python=python), "before", heard)
        assert [(o.check, o.status) for o in outcomes] == [
            ("import json", "crash"), ("import os", "crash"), ("matmul", "crash"),
        ]  # fmt: skip
        assert heard.outcomes() == outcomes
        expected = "exit status 1: No module named encodings" if python == broken else "cannot be started"
        assert expected in outcomes[0].reason


def test_a_session_that_is_cut_off_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    runner = LocalRunner({"PYTHONPATH": f"{STAND_IN}:{tmp_path}"}, limit_s=2)
    outcomes = _run(Check(name="import", arguments=("json", "slow")), Check(name="matmul"), runner=runner)
    found = [(outcome.check, outcome.status) for outcome in outcomes]
    assert found[:2] == [("import json", "pass"), ("import slow", "timeout")]
    assert found[-1] == ("matmul", "timeout"), "also where parts of it, which run beside the imports, have passed"
    assert "cut off: no end within" in outcomes[1].reason


def test_a_limit_of_the_user_replaces_each_checks_own(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    runner = LocalRunner({"PYTHONPATH": str(tmp_path)})
    outcome, *_ = _run(Check(name="import", arguments=("slow",)), runner=runner, timeout_s=0.5)
    assert outcome.status == "timeout"


def test_what_else_is_printed_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; print('hello'); print('\\x1b[1mwarning', file=sys.stderr)")
    heard = Heard()
    runner = LocalRunner({"PYTHONPATH": str(tmp_path)})
    outcomes = run_checks((Check(name="import", arguments=("json",)),), runner, "before", heard)
    assert [outcome.status for outcome in outcomes] == ["pass"]
    assert sorted(heard.lines()) == [("checks", "hello"), ("checks", "warning")]


def test_checks_see_the_gpus_that_are_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))")
    heard = Heard()
    runner = LocalRunner({"PYTHONPATH": str(tmp_path)})
    run_checks((Check(name="import", arguments=("json",)),), runner, "before", heard, devices="GPU-1")
    assert heard.lines() == [("checks", "GPU-1")]


def test_an_unknown_check_is_an_error_that_names_near_ones() -> None:
    with pytest.raises(InputError, match="there is no check 'torchvision-nsm'") as caught:
        _run(Check(name="torchvision-nsm"))
    assert caught.value.cause is not None
    assert "torchvision-nms" in caught.value.cause


def test_an_import_check_without_names_is_skipped() -> None:
    (outcome,) = _run(Check(name="import", role="playbook"))
    assert (outcome.status, outcome.role) == ("skip", "playbook")


def test_equal_checks_run_once_in_their_strongest_role() -> None:
    checks = [
        Check(name="matmul", gpu=True, timeout_s=10),
        Check(name="import", arguments=("a",)),
        Check(name="matmul", role="playbook", timeout_s=20),
        Check(name="import", arguments=("b",)),
        Check(name="matmul", role="regression"),
    ]
    assert merged(checks) == [
        Check(name="matmul", role="playbook", gpu=True, timeout_s=300),
        Check(name="import", arguments=("a",)),
        Check(name="import", arguments=("b",)),
    ]


def test_a_name_is_imported_once_for_the_check_that_asks_most_of_it() -> None:
    checks = [
        Check(name="import", role="regression", arguments=("PIL", "torch", "torch")),
        Check(name="import", role="playbook", arguments=("torch", "torchvision")),
        Check(name="import", arguments=("torch",)),
    ]
    assert [(check.role, check.arguments) for check in merged(checks)] == [
        ("regression", ("PIL",)),
        ("playbook", ("torch", "torchvision")),
    ]


def test_imports_side_by_side_are_told_in_the_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envmedic.engine.verify.concurrency.at_once", lambda: 3)
    (tmp_path / "slow.py").write_text("import time; time.sleep(0.5)")
    (tmp_path / "poor.py").write_text("import nowhere_to_be_found")
    heard = Heard()
    check = Check(name="import", arguments=("slow", "poor", "json"))
    outcomes = run_checks((check,), LocalRunner({"PYTHONPATH": str(tmp_path)}), "after", heard)
    assert [outcome.check for outcome in outcomes] == ["import slow", "import poor", "import json"]
    assert [outcome.check for outcome in heard.outcomes()] == ["import json", "import slow", "import poor"]
    assert outcomes[1].excuse == "nowhere_to_be_found is not installed"


def test_profiles_name_checks_and_gpus_belong_to_numerical_ones_alone() -> None:
    assert set(PROFILES["quick"]) < set(PROFILES["standard"]) <= set(CHECK_NAMES)
    assert set(CHECK_NAMES) > GPU_CHECKS
    full = named_check("matmul", cuda_build=True, profile="full")
    assert (full.gpu, full.arguments) == (True, ("rounds=5",))
    assert not named_check("torchvision-dispatch", cuda_build=True).gpu
    assert not named_check("conv", cuda_build=False).gpu


def test_every_check_of_an_environment_says_what_its_failure_points_to() -> None:
    assert {name for name, row in CHECKS.items() if row.points_to} == set(CHECK_NAMES) - {"facts", "command"}
    assert all(set(row.points_to) <= set(FAULTS) for row in CHECKS.values())


def test_a_failure_says_what_it_points_to_and_a_pass_says_nothing() -> None:
    runner = LocalRunner({**SOUND, "FAULT": "zeros at float32 matmul"})
    wrong, right = _run(Check(name="matmul"), runner=runner)
    assert (wrong.status, wrong.points_to) == ("fail", CHECKS["matmul"].points_to)
    assert (right.status, right.points_to) == ("pass", ())


PIP_OUTPUT = """
import sys
print("Using Python 3.11.7 environment at: /env", file=sys.stderr)
print("Checked 3 packages in 5ms", file=sys.stderr)
print("Found 2 incompatibilities", file=sys.stderr)
print("The package `b` requires `c`, but it's not installed", file=sys.stderr)
print("The package `a` requires `b>=2`, but `1.0` is installed", file=sys.stderr)
sys.exit({code})
"""


def test_pip_check_lists_the_problems_alone() -> None:
    argv = (sys.executable, "-c", PIP_OUTPUT.format(code=1))
    (outcome,) = _run(Check(name="pip-check", role="regression"), pip_check=argv)
    assert (outcome.status, outcome.role) == ("fail", "regression")
    assert outcome.detail.splitlines() == [
        "The package `a` requires `b>=2`, but `1.0` is installed",
        "The package `b` requires `c`, but it's not installed",
    ]


@pytest.mark.parametrize(
    ("argv", "status", "reason"),
    [
        ((sys.executable, "-c", ""), "pass", ""),
        ((sys.executable, "-c", PIP_OUTPUT.format(code=2)), "crash", "exit status 2: The package"),
        ((sys.executable, "-c", "import os; os.abort()"), "crash", "ended by SIGABRT"),
        (("/nowhere/uv", "pip", "check"), "crash", "/nowhere/uv cannot be started"),
        (None, "skip", "there is no installer to ask"),
    ],
)
def test_pip_check_tells_how_its_command_ended(argv: tuple[str, ...] | None, status: str, reason: str) -> None:
    (outcome,) = _run(Check(name="pip-check"), pip_check=argv)
    assert outcome.status == status
    assert outcome.reason.startswith(reason)
    assert bool(outcome.reason) == bool(reason)


def test_pip_check_of_uv_names_a_real_unmet_requirement(tmp_path: Path) -> None:
    import uv

    info = tmp_path / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "a-1.dist-info"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\nversion = 3\n")
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a\nVersion: 1\nRequires-Dist: b>=2\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (info / "RECORD").write_text("")
    argv = (uv.find_uv_bin(), "--no-config", "pip", "check", "--python", str(tmp_path / "bin" / "python"))
    (outcome,) = _run(Check(name="pip-check"), pip_check=argv)
    assert (outcome.status, outcome.detail) == ("fail", "The package `a` requires `b>=2`, but it's not installed")


def _command(*argv: str, runner: LocalRunner | None = None, timeout_s: float = 60) -> Outcome:
    (outcome,) = _run(Check(name="command", arguments=argv, timeout_s=timeout_s), runner=runner)
    return outcome


def test_the_users_command_runs_in_the_present_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import sys; print('\\x1b[1mtraining'); sys.exit('no GPU')")
    heard = Heard()
    check = Check(name="command", role="reproduction", arguments=("python", "train.py"))
    (outcome,) = run_checks((check,), LocalRunner(_path()), "before", heard)
    assert (outcome.check, outcome.status, outcome.role) == ("command python train.py", "fail", "reproduction")
    assert outcome.reason == "exit status 1: no GPU"
    assert ("command", "training") in heard.lines()
    (tmp_path / "train.py").write_text("")
    assert _command("python", "train.py", runner=LocalRunner(_path())).status == "pass"


def _path() -> dict[str, str]:
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("argv", "status", "signal", "reason"),
    [
        (("sh", "-c", "kill -SEGV $$"), "crash", "SIGSEGV", "ended by SIGSEGV"),
        (("sh", "-c", "exit 139"), "crash", "SIGSEGV", "ended by SIGSEGV"),
        (("sh", "-c", "echo bye; exit 127"), "fail", None, "exit status 127: bye"),
        (("no-such-program",), "skip", None, "there is no program no-such-program"),
        (("sleep", "60"), "timeout", None, "no end within"),
    ],
)
def test_the_users_command_ends_as_it_ends(argv: tuple[str, ...], status: str, signal: str | None, reason: str) -> None:
    outcome = _command(*argv, timeout_s=2)
    assert (outcome.status, outcome.signal) == (status, signal)
    assert outcome.reason.startswith(reason)


def test_a_command_fails_while_the_python_that_starts_it_does_not_start(tmp_path: Path) -> None:
    outcome = _command("true", runner=LocalRunner(_path(), python=tmp_path / "bin" / "python"))
    assert outcome.status == "crash"
    assert "cannot be started" in outcome.reason


def test_a_program_is_started_without_leaving_byte_code(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    site = site_packages(prefix)
    (site / "hooked.py").write_text("")
    (site / "hooked.pth").write_text("import hooked\n")
    script = prefix / "bin" / "tool"
    script.write_text(f"#!{python_of(prefix)}\n")
    script.chmod(0o755)
    check = Check(name="programs", role="playbook", arguments=("bin/tool",))
    (outcome,) = run_checks((check,), LocalRunner(python=python_of(prefix), tree=prefix), "after", Heard(), home=prefix)
    assert outcome.status == "pass"
    assert not (site / "__pycache__").exists()


def test_a_directory_that_cannot_be_entered_is_no_failure_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setattr(Path, "cwd", lambda: gone)
    gone.rmdir()
    outcome = _command("true")
    assert outcome.status == "skip"
    assert "cannot enter" in outcome.reason


def test_scripts_of_a_cloned_environment_run_with_the_clones_interpreter(tmp_path: Path) -> None:
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "python").symlink_to(sys.executable)
    script = bin_directory / "tool"
    script.write_text("#!/the/live/env/bin/python\nimport sys; sys.exit(sys.argv[1:] != ['--flag'])\n")
    script.chmod(0o755)
    runner = LocalRunner({"PATH": f"{bin_directory}:{os.environ['PATH']}"}, python=bin_directory / "python")
    assert _command("tool", "--flag", runner=runner).status == "pass"
    assert _command("tool", runner=runner).status == "fail"
