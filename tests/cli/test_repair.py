"""The main job through the command line: plan, confirm, apply, verify, undo, redo, history, prune."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import ENVMEDIC, LIMIT_S, REPAIR, ROOT, SAMPLES, Done, Shell, failure, state_of, torchvision
from tests.envs.nms_cuda.case import BROKEN, EDIT, REPAIRED, Case
from tests.support.venvs import make_venv


def on_terminal(user: Shell, *arguments: str, answer: bytes) -> Done:
    """Run envmedic with a terminal as its input and errors, and type `answer` when it asks."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*ENVMEDIC, *arguments], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, cwd=ROOT, env=user.environment()
    ) as process:
        os.close(theirs)
        told, deadline = b"", time.monotonic() + LIMIT_S
        answered = False
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    told += os.read(ours, 4096)
                except OSError:  # its end of the terminal is closed
                    break
            if not answered and told.endswith(b"[y/N] "):
                os.write(ours, answer)
                answered = True
        out = process.stdout.read() if process.stdout else b""
    os.close(ours)
    return Done(process.returncode, out.decode(), told.decode().replace("\r\n", "\n"))


def carried_out_again(user: Shell, case: Case, plan_file: Path, record: dict[str, Any]) -> None:
    """A plan whose repair is in place is told as that; after an edit in the environment it is refused."""
    again = user.envmedic("apply", str(plan_file), "--yes", "--no-gpu", "--json")
    assert (again.code, again.document) == (0, record | {"outcome": "already"})
    told = user.envmedic("apply", str(plan_file), "--yes", "--no-gpu")
    assert "Environment  repaired before, and unchanged since: nothing was done" in told.out
    (edited,) = case.prefix.glob("lib/python*/site-packages/torchvision/version.py")
    content, status = edited.read_bytes(), edited.stat()
    edited.write_bytes(content + b"# edited")
    stale = user.envmedic("apply", str(plan_file), "--yes", "--no-gpu", "--json")
    failure(stale, code=2, kind="stale-plan", says="has changed since the plan was made")
    edited.write_bytes(content)
    os.utime(edited, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_the_whole_story(user: Shell, case: Case, room: Path) -> None:
    prefix, target = case.prefix, ("-p", str(case.prefix))
    plan_file = room / "plan.json"
    (prefix / ".lock").unlink(missing_ok=True)  # of uv, which made the environment
    original = state_of(prefix)
    planned = user.envmedic("plan", "--json", "--playbook", "nms-cuda", "--no-gpu", "-o", str(plan_file), *target)
    assert (planned.code, planned.document["schema"]) == (0, "envmedic.plan/1")
    assert json.loads(plan_file.read_text()) == planned.document
    assert [(item["name"], item["after"]) for item in planned.document["changes"]] == [("torchvision", REPAIRED)]

    applied = user.envmedic("apply", str(plan_file), "--yes", "--no-gpu", "--json")
    assert applied.code == 0, applied.told()
    record = applied.document
    assert (record["schema"], record["environment"], record["gpu"]) == ("envmedic.record/1", "repaired", "not verified")
    assert f"environment: {prefix}" in applied.lines
    assert torchvision(prefix) == REPAIRED
    repaired = state_of(prefix)

    carried_out_again(user, case, plan_file, record)
    assert state_of(prefix) == repaired

    assert not (prefix / ".lock").exists()
    (info,) = prefix.glob("lib/python*/site-packages/torchvision-*.dist-info")
    assert not (info / "uv_cache.json").exists()
    assert "uv_cache.json" not in (info / "RECORD").read_text()
    verified = user.envmedic("verify", "--json", "--no-gpu", *target)
    assert (verified.code, verified.document["schema"]) == (0, "envmedic.verification/1")
    assert verified.document["passed"] is True

    listed = user.envmedic("history", "--json", *target).document
    assert listed["schema"] == "envmedic.history/1"
    assert [(item["live"], item["undo_possible"]) for item in listed["generations"]] == [(True, True)]

    compared = user.envmedic("diff", "found", "--json", *target).document
    assert [(item["name"], item["before"] != item["after"]) for item in compared["distributions"]] == [
        ("torchvision", True)
    ]

    undone = user.envmedic("undo", "--yes", "--json", *target)
    assert (undone.code, undone.document["environment"]) == (0, "restored")
    assert state_of(prefix) == original
    nothing = user.envmedic("undo", "--yes", "--json", *target)
    failure(nothing, code=2, kind="input", says="There is nothing to undo")

    # nothing has changed since the undo: no question, no terminal
    redone = user.envmedic("redo", *target)
    assert redone.code == 0
    assert "repaired, brought back" in redone.out
    assert state_of(prefix) == repaired

    pruned = user.envmedic("prune", "--yes", "--json", *target)
    assert [item["undo_possible"] for item in pruned.document["generations"]] == [False]
    gone = user.envmedic("undo", "--yes", "--json", *target)
    failure(gone, code=2, kind="input", says="can no longer be undone")
    recovered = user.envmedic("recover", "--json", *target)
    assert (recovered.code, recovered.document["settled"]) == (0, [])
    assert f"environment: {prefix}" in recovered.lines


def test_apply_without_a_wish_repairs_what_facts_confirm_then_says_healthy(user: Shell, case: Case) -> None:
    target = ("-p", str(case.prefix))
    applied = user.envmedic("apply", "--yes", "--no-gpu", *target)
    assert applied.code == 0, applied.told()
    assert applied.out.splitlines()[-1] == f"To go back: envmedic undo -p {case.prefix}"
    # a file that somebody edited is told, and left to whoever did it
    edited = user.envmedic("apply", "--yes", "--no-gpu", "--json", *target)
    failure(edited, code=1, kind="not-confirmed", says="PIL/__init__.py")
    case.edited.write_text(case.edited.read_text(encoding="utf-8").removesuffix(EDIT), encoding="utf-8")
    repaired = state_of(case.prefix)
    for command in (("apply", "--yes", "--no-gpu"), ("plan",)):
        healthy = user.envmedic(*command, "--json", *target)
        assert (healthy.code, healthy.document["schema"]) == (0, "envmedic.diagnosis/1")
        assert healthy.document["verdict"] == "healthy"
        assert "Nothing to repair" in user.envmedic(*command, *target).out
    again = user.envmedic(*REPAIR, "--json", *target)
    assert (again.code, again.document["failure"]["code"]) == (1, "not-confirmed"), again.told()
    assert again.document["environment"] == "unchanged"
    log = user.envmedic("apply", "--yes", "--no-gpu", "--json", "--log", os.devnull, *target)
    failure(log, code=1, kind="not-confirmed", says="the text is empty")
    assert state_of(case.prefix) == repaired


def test_apply_by_log_from_standard_input(user: Shell, case: Case) -> None:
    text = (SAMPLES / "sample_operator_does_not_exist.log").read_bytes()
    done = user.envmedic("apply", "--yes", "--no-gpu", "--json", "--log", "-", "-p", str(case.prefix), stdin=text)
    assert (done.code, done.document["environment"]) == (0, "repaired"), done.told()
    assert done.document["plan"]["finding"]["signature"] is not None


@pytest.mark.parametrize("module", ["third_party", "pillow"], ids=["the program's own", "named as a distribution"])
def test_module_that_nothing_brings_is_not_answered_by_what_facts_show_besides(
    user: Shell, case: Case, module: str
) -> None:
    """torchvision's repair would be told as one of this error."""
    text = f"Traceback (most recent call last):\nModuleNotFoundError: No module named '{module}'\n".encode()
    command = ("--no-gpu", "--json", "--log", "-", "-p", str(case.prefix))
    before = state_of(case.prefix)
    refused = user.envmedic("apply", "--yes", *command, stdin=text)
    failure(refused, code=1, kind="not-confirmed", says="is not what was reported")
    assert f"{module} is not installed" in refused.document["cause"]
    assert state_of(case.prefix) == before
    taken = user.envmedic("apply", "--yes", "--keep-partial", *command, stdin=text)
    assert (taken.code, taken.document["outcome"]) == (7, "partial"), taken.told()
    assert any(f"{module} is not installed" in item["summary"] for item in taken.document["left"])


def test_the_users_command_is_the_check(user: Shell, case: Case) -> None:
    command = ("--reproduce", "--", str(case.python), "-B", str(case.program))
    done = user.envmedic("apply", "--yes", "--no-gpu", "--json", "-p", str(case.prefix), *command)
    assert done.code == 0, done.told()
    outcomes = {item["check"]: item["status"] for item in done.document["checks_after"]}
    assert outcomes[next(name for name in outcomes if name.startswith("command"))] == "pass"
    alone = user.envmedic("plan", "-p", str(case.prefix), "--", "true")
    failure(alone, code=2, kind="input", says="belongs to --reproduce")


@pytest.mark.parametrize("facts", [True, False], ids=["facts explain it", "nothing explains it"])
def test_on_a_terminal_a_given_command_is_asked_about_before_it_runs(user: Shell, case: Case, *, facts: bool) -> None:
    ran = case.prefix.parent / "ran"
    prefix = case.prefix if facts else make_venv(case.prefix.parent / "sound")
    program = ("--reproduce", "--", "sh", "-c", f"echo once >> {ran}; exit 1")
    command = ("apply", "--no-gpu", "-p", str(prefix), *program)
    before = state_of(prefix)
    refused = on_terminal(user, *command, answer=b"n\n")
    assert (refused.code, ran.exists()) == (1, False), refused.told()
    assert f"in {ROOT}, in {prefix} as it is" in refused.err
    done = on_terminal(user, *command, answer=b"y\nn\n")
    assert done.code == 1, done.told()
    assert ran.exists() is not facts, "facts alone make the plan, which has a question of its own"
    assert ("Your program decides  sh -c" in done.err) is facts, done.told()
    assert ("in a clone, run your program there, and swap it in" in done.err) is facts
    assert state_of(prefix) == before


def test_dry_run_changes_nothing_and_needs_no_terminal(reader: Shell, shared: Case) -> None:
    before = state_of(shared.prefix.parent)
    done = reader.envmedic("apply", "--dry-run", "--playbook", "nms-cuda", "--no-gpu", "-p", str(shared.prefix))
    assert done.code == 0
    assert done.out.splitlines()[-1].strip() == f"envmedic apply --playbook nms-cuda --no-gpu -p {shared.prefix}"
    assert state_of(shared.prefix.parent) == before


def test_without_a_terminal_a_change_needs_yes(reader: Shell, shared: Case) -> None:
    before = state_of(shared.prefix.parent)
    for command in (("apply", "--playbook", "nms-cuda"), ("undo",), ("prune",)):
        done = reader.envmedic(*command, "--json", "-p", str(shared.prefix))
        failure(done, code=3, kind="confirmation-needed", says="no terminal to ask on")
        assert "--yes" in done.document["hint"]
    assert state_of(shared.prefix.parent) == before


def test_a_redo_that_hides_edits_needs_yes(user: Shell, case: Case) -> None:
    target = ("-p", str(case.prefix))
    assert user.envmedic(*REPAIR, *target).code == 0
    assert user.envmedic("undo", "--yes", *target).code == 0
    (case.prefix / "mine.txt").write_text("mine")
    before = state_of(case.prefix)
    failure(user.envmedic("redo", "--json", *target), code=3, kind="confirmation-needed", says="no terminal to ask on")
    assert state_of(case.prefix) == before
    assert user.envmedic("redo", "--yes", *target).code == 0


def test_on_a_terminal_no_is_no_and_yes_is_yes(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    arguments = ("apply", "--playbook", "nms-cuda", "--no-gpu", "-p", str(case.prefix))
    for answer in (b"n\n", b"\n", b"yellow\n", b"\x04"):
        refused = on_terminal(user, *arguments, answer=answer)
        assert (refused.code, refused.out) == (1, ""), refused.told()
        assert "error: The repair was declined" in refused.err
        assert "The environment is unchanged" in refused.err
        assert state_of(case.prefix) == before
    assert f"torchvision  {BROKEN}  →  {REPAIRED}" in refused.err
    agreed = on_terminal(user, *arguments, answer=b"y\n")
    assert agreed.code == 0, agreed.told()
    assert torchvision(case.prefix) == REPAIRED
    declined = on_terminal(user, "undo", "-p", str(case.prefix), answer=b"n\n")
    assert (declined.code, torchvision(case.prefix)) == (1, REPAIRED)


def test_changes_made_since_are_told_before_undo(user: Shell, case: Case) -> None:
    target = ("-p", str(case.prefix))
    assert user.envmedic(*REPAIR, *target).code == 0
    (case.prefix / "notes.txt").write_text("mine")
    declined = on_terminal(user, "undo", *target, answer=b"y\nn\n")
    assert declined.code == 1, declined.told()
    assert "notes.txt" in declined.err
    assert (case.prefix / "notes.txt").exists()
    done = user.envmedic("undo", "--yes", *target)
    assert done.code == 0
    assert "  notes.txt" in done.err


def test_new_files_come_along_with_an_undo_that_keeps_them(user: Shell, case: Case) -> None:
    target = ("-p", str(case.prefix))
    assert user.envmedic(*REPAIR, *target).code == 0
    notes = case.prefix / "notes.txt"
    notes.write_text("mine")
    (tree,) = case.prefix.parent.glob(".envmedic/*/env")
    asked = on_terminal(user, "undo", *target, answer=b"y\nn\n")
    assert f"1 new file will stay in {tree}; --keep-new carries them over" in " ".join(asked.err.split())
    done = user.envmedic("undo", "--keep-new", "--yes", "--json", *target)
    assert (done.code, done.document["carried"]) == (0, ["notes.txt"]), done.told()
    assert (torchvision(case.prefix), notes.read_text()) == (BROKEN, "mine")
    again = user.envmedic("redo", *target)
    assert again.code == 0, again.told()
    assert (torchvision(case.prefix), notes.read_text()) == (REPAIRED, "mine")


def test_prune_asks_about_files_that_exist_nowhere_else(user: Shell, case: Case) -> None:
    target = ("-p", str(case.prefix))
    assert user.envmedic(*REPAIR, *target).code == 0
    (case.prefix / "notes.txt").write_text("mine")
    assert user.envmedic("undo", "--yes", *target).code == 0
    (tree,) = case.prefix.parent.glob(".envmedic/*/env")
    for arguments, answer in ((("prune",), b"y\nn\n"), (("prune", "--yes"), b"")):
        stays = on_terminal(user, *arguments, *target, answer=answer)
        assert stays.code == 0, stays.told()
        assert f"Only in {tree}:\n  notes.txt\n" in stays.err
        assert "Remove these files with their trees? [y/N]" in stays.err or "--yes" in arguments
        assert "add --drop-new" in stays.err
        assert (tree / "notes.txt").read_text() == "mine"
    gone = on_terminal(user, "prune", *target, answer=b"y\ny\n")
    assert gone.code == 0, gone.told()
    assert not tree.exists()


def test_without_a_gpu_a_repair_that_needs_one_is_not_begun(user: Shell, case: Case) -> None:
    before = state_of(case.prefix.parent)
    done = user.envmedic("apply", "--playbook", "nms-cuda", "--yes", "--json", "-p", str(case.prefix))
    failure(done, code=4, kind="checks-failed", says="must be proven on a GPU")
    assert "--no-gpu" in done.document["hint"]
    assert state_of(case.prefix.parent) == before


def test_verify_names_what_fails_and_knows_its_checks(reader: Shell, shared: Case) -> None:
    before = state_of(shared.prefix)
    target = ("--no-gpu", "-p", str(shared.prefix))
    done = reader.envmedic("verify", "--json", "--check", "torchvision-nms", "--check", "matmul", *target)
    assert (done.code, done.document["passed"]) == (1, False)
    statuses = {item["check"]: item["status"] for item in done.document["outcomes"] if item["device"] == "cpu"}
    assert statuses == {"torchvision-nms": "fail", "matmul-fp32": "pass", "matmul-bf16": "pass"}
    quick = reader.envmedic("verify", "--profile", "quick", *target)
    assert quick.code == 1
    assert "Verification  not passed" in quick.out
    unknown = reader.envmedic("verify", "--json", "--check", "torchvision-nm", *target)
    failure(unknown, code=2, kind="input", says="torchvision-nms")
    assert state_of(shared.prefix) == before
