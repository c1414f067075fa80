"""Sequences of imports run in interpreters of their own, as often as asked, and a crash of any of them is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.driving import drive

NOTED = "open({notes!r}, 'a').write('{sign}')\n"


def write(directory: Path, **modules: str) -> Path:
    for name, source in modules.items():
        (directory / f"{name}.py").write_text(source)
    return directory


def sequence(path: Path, *names: str, timeout: str = "60", workers: str = "2") -> dict[str, object]:
    """The one outcome of importing `names` in this order."""
    check = "import-sequence:" + "+".join(names)
    ((_, outcome),) = drive("--checks", check, "--timeout", timeout, "--workers", workers, path=path).items()
    assert outcome["check"] == " ".join(["import-sequence", *[name for name in names if "=" not in name]])
    return outcome


def test_ten_processes_import_all_names_in_their_order(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    write(tmp_path, a=NOTED.format(notes=str(notes), sign="a"), b=NOTED.format(notes=str(notes), sign="b"))
    assert sequence(tmp_path, "a", "b", workers="1")["status"] == "pass"
    assert notes.read_text() == "ab" * 10


def test_the_interpreters_are_started_anew(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    write(tmp_path, a=f"open({str(notes)!r}, 'a').write(str(hash('a')) + chr(10))")
    assert sequence(tmp_path, "a", "runs=4")["status"] == "pass"
    assert len(set(notes.read_text().splitlines())) == 4


def test_what_crashes_in_one_order_alone_is_a_crash_in_it(tmp_path: Path) -> None:
    write(tmp_path, a="", b="import sys, os\nif 'a' in sys.modules: os.kill(os.getpid(), 11)")
    bad, good = sequence(tmp_path, "a", "b"), sequence(tmp_path, "b", "a")
    assert (bad["status"], bad["signal"], bad["reason"]) == ("crash", "SIGSEGV", "ended by SIGSEGV")
    assert "Fatal Python error: Segmentation fault" in str(bad["detail"])
    assert good["status"] == "pass"


def test_a_crash_tells_which_import_was_under_way_however_long_its_stack_is(tmp_path: Path) -> None:
    long_name = "f" * 90
    deep = (
        f"import os\ndef {long_name}(n): return {long_name}(n - 1) if n else os.kill(os.getpid(), 11)\n{long_name}(90)"
    )
    write(tmp_path, a="", b=deep, c="")
    for names, under_way in ((("a", "b", "c"), "b"), (("b", "a"), "b")):
        detail = str(sequence(tmp_path, *names)["detail"])
        told = [line for line in detail.splitlines() if line.startswith("importing ")]
        assert told[-1] == f"importing {under_way}"
        assert len(detail) > 4000
    assert "File" in detail


def test_one_crash_in_many_runs_is_enough(tmp_path: Path) -> None:
    first = tmp_path / "first"
    write(tmp_path, a=f"import os\nif os.path.exists({str(first)!r}): os.abort()\nopen({str(first)!r}, 'w').close()")
    outcome = sequence(tmp_path, "a")
    assert (outcome["status"], outcome["signal"]) == ("crash", "SIGABRT")


def test_a_crash_at_the_end_of_python_counts(tmp_path: Path) -> None:
    write(tmp_path, a="import atexit, os\natexit.register(os.abort)")
    assert sequence(tmp_path, "a")["status"] == "crash"


@pytest.mark.parametrize(
    ("source", "reason"),
    [("raise ImportError('no')", "ImportError: no"), ("raise SystemExit('gone')", "SystemExit: gone")],
)
def test_an_error_is_no_crash_but_a_failure(tmp_path: Path, source: str, reason: str) -> None:
    outcome = sequence(write(tmp_path, a=source), "a")
    assert (outcome["status"], outcome["reason"]) == ("fail", reason)


def test_what_is_no_longer_installed_is_left_out_but_not_everything_may_be(tmp_path: Path) -> None:
    write(tmp_path, a="")
    assert sequence(tmp_path, "gone_since", "a")["status"] == "pass"
    outcome = sequence(tmp_path, "gone_since")
    assert (outcome["status"], outcome["reason"]) == ("fail", "none of these is installed")


def test_a_module_that_itself_lacks_another_fails(tmp_path: Path) -> None:
    outcome = sequence(write(tmp_path, a="import gone_since"), "a")
    assert (outcome["status"], outcome["reason"]) == ("fail", "ModuleNotFoundError: No module named 'gone_since'")


def test_a_hang_ends_at_the_limit(tmp_path: Path) -> None:
    assert sequence(write(tmp_path, a="import time; time.sleep(60)"), "a", "runs=1", timeout="1")["status"] == "timeout"
