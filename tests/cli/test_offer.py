"""The offer to repair after a failure under ``run``: whom it asks, what it does, and what stays the program's own."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence

import pytest

from envmedic.cli.offer import line_within
from tests.cli.support import LIMIT_S, Shell, torchvision
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case

OFFER = b"/N/details] "
GO_AHEAD = b"[y/N] "


def ran(user: Shell, case: Case, answers: Sequence[tuple[bytes, bytes]], *options: str) -> tuple[int, str, str]:
    """Run the failing program on a terminal whose user answers each question; stdout is a pipe.

    Returns exit code, stdout, and what the terminal showed.
    """
    (case.project / "train.py").write_text("print('begins', flush=True)\nimport torchvision\n")
    controller, terminal = pty.openpty()
    argv = [*user.program, "run", *options, "--", str(case.python), "-B", "train.py"]
    child = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *argv], cwd=case.project, env=user.environment(),
        stdin=terminal, stdout=subprocess.PIPE, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    shown, waiting = b"", list(answers)
    while chunk := _read(controller):
        shown += chunk
        if waiting and shown.endswith(waiting[0][0]):
            os.write(controller, waiting.pop(0)[1])
    out, _ = child.communicate(timeout=LIMIT_S)
    os.close(controller)
    return child.returncode, out.decode(), shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: nobody has the other end any more
        return b""


def test_a_yes_repairs_and_the_exit_code_stays_the_programs(user: Shell, case: Case) -> None:
    answers = [(OFFER, b"details\n"), (OFFER, b"y\n"), (GO_AHEAD, b"y\n")]
    code, out, shown = ran(user.having(ENVMEDIC_NO_GPU="1", **case.index_variables()), case, answers)
    assert (code, out) == (1, "begins\n"), shown
    assert "Other ways to repair it" in shown.partition("details]")[2]
    assert "To go back: " in shown
    assert torchvision(case.prefix) == REPAIRED


@pytest.mark.parametrize("answer", [b"n\n", b"\n"])
def test_anything_else_is_a_no(user: Shell, case: Case, answer: bytes) -> None:
    code, out, shown = ran(user, case, [(OFFER, answer)])
    assert (code, out, torchvision(case.prefix)) == (1, "begins\n", BROKEN)
    assert shown.count("Repair a copy now") == 1


def test_nobody_is_asked_who_did_not_want_it_or_is_not_there(user: Shell, case: Case) -> None:
    code, _, shown = ran(user, case, [], "--no-ask")
    assert code == 1
    assert "Repair a copy now" not in shown
    assert "Next: envmedic apply --last" in shown
    piped = user.envmedic("run", "--", str(case.python), "-B", str(case.project / "train.py"))
    assert piped.code == 1
    assert "Repair a copy now" not in piped.err


def test_no_answer_is_a_no() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, encoding="utf-8") as stream, os.fdopen(writer, "w", encoding="utf-8") as answers:
        assert line_within(stream, 0.01) is None
        answers.write("y\n")
        answers.flush()
        assert line_within(stream, 60) == "y\n"
