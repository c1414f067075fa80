"""Answers about many machines from the documents that they sent."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import SAMPLES, Done, Shell, failure
from tests.envs.nms_cuda.case import Case

SAMPLE = SAMPLES / "sample_operator_does_not_exist.log"


@pytest.fixture(scope="module")
def document(shared: Case, reader: Shell) -> dict[str, Any]:
    """What a machine sends."""
    return reader.envmedic("facts", "-p", str(shared.prefix), "--json").document


def sent(folder: Path, **documents: object) -> Path:
    """A directory with these documents, by machine."""
    folder.mkdir(exist_ok=True)
    for node, found in documents.items():
        (folder / f"{node}.json").write_text(found if isinstance(found, str) else json.dumps(found))
    return folder


def other(document: dict[str, Any], *, gpu: str = "", torch: str = "", stray: bool = False) -> dict[str, Any]:
    """The facts of a machine that differs."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    content = found["content"]
    if gpu:
        found["host"]["gpus"] = [{"index": 0, "name": "a GPU", "compute_capability": gpu}]
    if torch:
        next(item for item in content["distributions"] if item["name"] == "torch")["version"] = torch
    if stray:
        content["untracked"]["lib/mine"] = "0" * 64
    if torch or stray:
        content["digest"] = f"{torch}{stray}".ljust(64, "0")
    return found


def test_machines_fall_into_classes(reader: Shell, document: dict[str, Any], tmp_path: Path) -> None:
    folder = sent(
        tmp_path / "facts",
        n1=document,
        n2=document,
        n3=other(document, torch="9.0"),
        n4=other(document, gpu="9.0"),
        n5="",
        n6='{"unreachable": true, "msg": "no route to host"}',
        # as `ansible --tree` writes it
        n7={"rc": 0, "stdout": json.dumps(document)},
    )
    (tmp_path / "nodes").write_text("n1\nn2\nn8\n")
    done = reader.envmedic("fleet", "survey", str(folder), "--nodes", str(tmp_path / "nodes"), "--json")
    assert done.code == 1, done.told()
    found = {item["name"]: item for item in done.document["classes"]}
    assert {name: item["nodes"] for name, item in found.items()} == {"A": ["n1", "n2", "n7"], "B": ["n3"], "C": ["n4"]}
    assert [(item["name"], item["after"].split()[0]) for item in found["B"]["content"]] == [("torch", "9.0")]
    assert (found["B"]["machine"], found["C"]["content"]) == ([], [])
    assert found["C"]["machine"] == ["GPUs 9.0 in place of none"]
    silent = {item["node"]: item["why"] for item in done.document["silent"]}
    assert silent == {"n5": "the document is empty", "n6": "no route to host", "n8": "it sent nothing"}
    told = reader.envmedic("fleet", "survey", str(folder)).out
    assert "class A  3 machines" in told
    assert "torch: " in told


def test_each_class_is_diagnosed(reader: Shell, document: dict[str, Any], tmp_path: Path) -> None:
    broken = json.loads(json.dumps(document))
    broken["environment"]["interpreter"] |= {"starts": False, "error": "cannot execute"}
    broken["content"]["digest"] = "0" * 64
    folder = sent(tmp_path / "facts", n1=document, n2=document, n3=broken)
    done = reader.envmedic("fleet", "diagnose", str(folder), "--log", str(SAMPLE), "--json")
    assert done.code == 1, done.told()
    answers = {item["machines"]["name"]: item["diagnosis"] for item in done.document["classes"]}
    found = {name: [one["playbook"] for one in item["findings"]] for name, item in answers.items()}
    assert found["A"][0] == "nms-cuda"
    assert "broken-interpreter" in found["B"]
    assert "broken-interpreter" not in found["A"]
    told = reader.envmedic("fleet", "diagnose", str(folder), "--log", str(SAMPLE))
    assert "class A  2 machines" in told.out
    assert "torchvision-ops" in told.out


def test_drift_names_what_differs(reader: Shell, document: dict[str, Any], tmp_path: Path) -> None:
    folder = sent(
        tmp_path / "facts",
        n1=document,
        n2=document["content"],
        n3=other(document, stray=True),
        n4=other(document, gpu="9"),
    )
    done = reader.envmedic("fleet", "drift", str(folder), "--json")
    assert (done.code, done.document["same"]) == (1, ["n1", "n2", "n4"]), done.told()
    (drifted,) = done.document["drifted"]
    assert drifted["node"] == "n3"
    assert [(item["kind"], item["name"]) for item in drifted["differences"]] == [("untracked", "lib/mine")]
    (folder / "n3.json").rename(tmp_path / "elsewhere.json")
    assert reader.envmedic("fleet", "drift", str(folder)).code == 0
    turned = reader.envmedic("fleet", "drift", str(folder), "--against", str(tmp_path / "elsewhere.json"), "--json")
    assert [item["node"] for item in turned.document["drifted"]] == ["n1", "n2", "n4"]
    wrong = reader.envmedic("fleet", "drift", str(folder), "--against", "n9")
    failure(wrong, code=2, kind="input", says="n9 is neither a machine")


def test_drift_from_a_lock(reader: Shell, shared: Case, document: dict[str, Any], tmp_path: Path) -> None:
    lock = tmp_path / "lock.json"
    written = reader.envmedic("lock", "-p", str(shared.prefix), "--format", "pylock", "--allow-incomplete", "--json")
    lock.write_text(written.out)
    altered = other(document, stray=True)
    next(item for item in altered["content"]["distributions"] if item["name"] == "numpy")["altered"] = ["numpy/x.py"]
    folder = sent(tmp_path / "facts", n1=document, n2=other(document, torch="9.0"), n3=altered)
    done = reader.envmedic("fleet", "drift", str(folder), "--against", str(lock), "--json")
    drifted = {item["node"]: {one["name"] for one in item["differences"]} for item in done.document["drifted"]}
    # a module of Pillow was edited by hand on all of them
    assert (
        "numpy 1.26.4 (uv): other files: numpy/x.py"
        in reader.envmedic("fleet", "drift", str(folder), "--against", str(lock)).out
    )
    assert drifted == {"n1": {"pillow"}, "n2": {"pillow", "torch"}, "n3": {"pillow", "numpy"}}, done.told()


def test_a_thousand_machines(reader: Shell, document: dict[str, Any], tmp_path: Path) -> None:
    folder = sent(
        tmp_path / "facts", **{f"n{number}": document for number in range(999)}, odd=other(document, torch="9")
    )
    done = reader.envmedic("fleet", "drift", str(folder), "--json")
    assert (len(done.document["same"]), [item["node"] for item in done.document["drifted"]]) == (999, ["odd"])


def record(outcome: str, **more: object) -> dict[str, object]:
    """As much of the record of an apply as tells how it ended."""
    plan = {"id": "2" * 64, "class_plan": "1" * 64}
    return {"schema": "envmedic.record/1", "transaction": "t1", "outcome": outcome, "plan": plan, **more}


ERROR = {
    "schema": "envmedic.error/1", "code": "other-class", "exit_code": 8, "summary": "The plan is for another class",
    "cause": "GPUs", "hint": "", "environment": "unchanged", "outcome": "other-class",
}  # fmt: skip


def ended(done: Done) -> dict[str, tuple[str, str]]:
    return {item["node"]: (item["outcome"], item["reason"]) for item in done.document["nodes"]}


def test_status_tells_how_each_machine_ended(reader: Shell, tmp_path: Path) -> None:
    lines = [
        {"node": "n1", "document": ERROR},
        {"node": "n2", "document": record("already")},
        {"node": "n3", "document": record("failed", failure={**ERROR, "summary": "torchvision-nms failed"})},
        {"node": "n1", "document": record("repaired")},
        {"node": "n4", "document": ERROR},
    ]
    results = tmp_path / "results.jsonl"
    # the controller was killed in the middle of a line
    results.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"node": "n5", "docu')
    (tmp_path / "nodes").write_text("n1 n2 n3 n4 n5")
    done = reader.envmedic("fleet", "status", str(results), "--nodes", str(tmp_path / "nodes"), "--json")
    assert done.code == 1
    assert ended(done) == {
        "n1": ("repaired", ""),
        "n2": ("already", ""),
        "n3": ("failed", "torchvision-nms failed"),
        "n4": ("other-class", "The plan is for another class: GPUs"),
        "n5": ("unknown", "it sent nothing"),
    }
    assert done.document["counts"] == {"already": 1, "failed": 1, "other-class": 1, "repaired": 1, "unknown": 1}
    folder = sent(tmp_path / "results", n1=record("repaired"), n2=record("already"))
    assert reader.envmedic("fleet", "status", str(folder)).code == 0
    results.write_text("no line\n{}\n")
    failure(reader.envmedic("fleet", "status", str(results)), code=2, kind="input", says="results.jsonl:1")


def test_the_command_that_collects(reader: Shell, tmp_path: Path) -> None:
    done = reader.envmedic("fleet", "survey", "facts", "--on", "slurm:gpu[1-4]", "-p", "/opt/env", "--json")
    assert done.document["command"] == (
        "srun '--nodelist=gpu[1-4]' --ntasks-per-node=1 "
        "sh -c 'exec envmedic facts -p /opt/env --json --quiet > facts/$SLURMD_NODENAME.json'"
    )
    wrong = reader.envmedic("fleet", "survey", str(tmp_path), "--on", "k8s:x", "-p", "/opt/env")
    failure(wrong, code=2, kind="input", says="k8s:x")


def run_ansible(command: str, user: Shell) -> None:
    """Run what the answer says, in the shell of `user`, with envmedic on its PATH."""
    own = str(Path(sys.executable).parent)
    variables = user.environment()
    variables["PATH"] = f"{own}:{variables['PATH']}"
    done = subprocess.run(shlex.split(command), env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("ansible") is None, reason="ansible-core is not installed")
def test_ansible_collects(reader: Shell, shared: Case, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.ini"
    hosts.write_text(
        "\n".join(
            f"n{number} ansible_connection=local ansible_python_interpreter={sys.executable}" for number in range(3)
        )
    )
    facts = tmp_path / "facts"
    where = ("--on", f"ansible:{hosts}", "-p", str(shared.prefix))
    command = reader.envmedic("fleet", "survey", str(facts), *where, "--json").document["command"]
    run_ansible(command, reader)
    done = reader.envmedic("fleet", "survey", str(facts), "--json")
    assert [item["nodes"] for item in done.document["classes"]] == [["n0", "n1", "n2"]], done.told()
