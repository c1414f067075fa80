"""Error texts: files, standard input, several at once, and texts that are no texts."""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import ENVMEDIC, ROOT, SAMPLES, Shell, failure
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import make_venv

SAMPLE = SAMPLES / "sample_operator_does_not_exist.log"
LINE = b"RuntimeError: operator torchvision::nms does not exist\n"
RAW_ESCAPE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MEGABYTE = 1 << 20
LARGE = 150
"""Size of the large log in MB; memory that follows the log's size would show at a tenth of it."""
ADDRESS_SPACE_MB = 600
"""What envmedic may map while it reads the large log: libraries, and a few blocks."""


def test_a_file_and_standard_input_say_the_same(reader: Shell, shared: Case) -> None:
    by_file = reader.envmedic("diagnose", "--json", "-p", str(shared.prefix), str(SAMPLE))
    by_pipe = reader.envmedic("diagnose", "--json", "-p", str(shared.prefix), "-", stdin=SAMPLE.read_bytes())
    assert (by_file.code, by_pipe.code) == (1, 1)
    first, second = by_file.document, by_pipe.document
    assert (first["schema"], first["verdict"], first["log"]) == ("envmedic.diagnosis/1", "env", str(SAMPLE))
    assert (first["findings"][0]["playbook"], first["findings"][0]["confirmed"]) == ("nms-cuda", True)
    assert (second["findings"], second["log"]) == (first["findings"], "-")


def test_the_text_alone(reader: Shell) -> None:
    document = reader.envmedic("diagnose", "--log-only", "--json", str(SAMPLE)).document
    assert (document["prefix"], document["facts"]) == (None, None)
    assert document["findings"][0]["confirmed"] is None


def test_several_logs_are_one_document_in_the_order_given(reader: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text("KeyError: 'x'\n")
    done = reader.envmedic("diagnose", "--log-only", "--json", str(other), str(SAMPLE))
    assert (done.code, done.document["schema"]) == (1, "envmedic.diagnoses/1")
    found = done.document["diagnoses"]
    assert [(item["log"], item["verdict"]) for item in found] == [(str(other), "unknown"), (str(SAMPLE), "env")]
    text = reader.envmedic("diagnose", "--log-only", str(other), str(SAMPLE)).out
    assert [line for line in text.splitlines() if line.startswith("==")] == [f"== {other}", f"== {SAMPLE}"]


def test_five_hundred_logs_are_diagnosed_in_one_call_each_on_its_own(reader: Shell, tmp_path: Path) -> None:
    verdicts = {
        "env": LINE,
        "not-an-env-problem": b"torch.OutOfMemoryError: CUDA out of memory.\n",
        "unknown": b"KeyError: 'x'\n",
    }
    texts = list(verdicts.values())
    logs = [tmp_path / f"{number:03}.log" for number in range(500)]
    for number, log in enumerate(logs):
        log.write_bytes(texts[number % 3])
    found = reader.envmedic("diagnose", "--log-only", "--json", *map(str, logs)).document["diagnoses"]
    assert [item["log"] for item in found] == list(map(str, logs))
    assert [item["verdict"] for item in found] == [list(verdicts)[number % 3] for number in range(500)]


def test_what_no_environment_is_to_blame_for_is_told_with_advice(reader: Shell, tmp_path: Path) -> None:
    log = tmp_path / "error.log"
    log.write_text("RuntimeError: CUDA error: device-side assert triggered\n")
    done = reader.envmedic("diagnose", "--log-only", str(log))
    assert done.code == 1
    assert "Not an environment problem: " in done.out
    assert "CUDA_LAUNCH_BLOCKING=1" in done.out
    refused = reader.envmedic("plan", "--playbook", "device-assert", "-p", str(tmp_path), "--json")
    assert refused.code != 0
    listed = reader.envmedic("playbooks", "list").out
    assert re.search(r"^device-assert +none +shipped", listed, re.MULTILINE)


def test_the_environment_alone(reader: Shell, shared: Case) -> None:
    document = reader.envmedic("diagnose", "--json", "-p", str(shared.prefix)).document
    assert (document["log"], document["verdict"]) == (None, "env")
    evidence = [item["where"] for item in document["findings"][0]["evidence"]]
    assert "torchvision.accepts-torch" in evidence


@pytest.mark.parametrize(
    ("make", "says"),
    [(lambda _: None, "No such file"), (Path.mkdir, "Is a directory")],
    ids=["missing", "directory"],
)
def test_a_log_that_cannot_be_read(reader: Shell, tmp_path: Path, make: object, says: str) -> None:
    assert callable(make)
    make(tmp_path / "error.log")
    done = reader.envmedic("diagnose", "--log-only", "--json", str(tmp_path / "error.log"))
    failure(done, code=2, kind="input", says=says)


def test_log_only_needs_a_log(reader: Shell) -> None:
    failure(reader.envmedic("diagnose", "--log-only"), code=2, kind="input", says="needs a LOG")


def test_an_empty_log_is_unknown_and_said_to_be_empty(reader: Shell) -> None:
    done = reader.envmedic("diagnose", "--log-only", "--json", os.devnull)
    assert (done.code, done.document["verdict"], done.document["reason"]) == (1, "unknown", "the text is empty")


def test_binary_rubbish_is_unknown(reader: Shell, tmp_path: Path) -> None:
    rubbish = tmp_path / "core"
    rubbish.write_bytes(random.Random(1).randbytes(2 * MEGABYTE))
    done = reader.envmedic("diagnose", "--log-only", "--json", str(rubbish))
    assert (done.code, done.document["verdict"], done.document["findings"]) == (1, "unknown", [])


def test_a_message_between_rubbish_is_found(reader: Shell, tmp_path: Path) -> None:
    rubbish = random.Random(2).randbytes(MEGABYTE)
    (tmp_path / "core").write_bytes(rubbish + b"\n" + LINE + rubbish)
    assert reader.envmedic("diagnose", "--log-only", "--json", str(tmp_path / "core")).document["verdict"] == "env"


def test_terminal_escapes_of_a_log_never_reach_the_terminal(reader: Shell, shared: Case, tmp_path: Path) -> None:
    hostile = (
        b"\x1b]0;owned\x07\x1b[2J\x1b[31mRuntimeError: operator \x1b[1mtorchvision::nms\x1b[0m does not exist\x1b[0m "
        b"\x1b]8;;http://evil/\x1b\\here\x1b]8;;\x1b\\ \x9b31m \xc2\x9b2J \xe2\x80\xae \x08\x08 \x1bc\r\n"
        b"RuntimeError: No such operator torchvision::nms\x1b[6n \x1bP+q544e\x1b\\ \x7f\x00\n"
    )
    log = tmp_path / "x\x1b[2Jx.log"
    log.write_bytes(hostile)
    for output in ((), ("--json",), ("-v", "--color", "never")):
        done = reader.envmedic("diagnose", *output, "-p", str(shared.prefix), str(log))
        assert done.code == 1
        assert "torchvision-ops" in done.out
        assert not RAW_ESCAPE.findall(done.out + done.err), done.told()
    gone = reader.envmedic("diagnose", "--log-only", str(tmp_path / "\x1b[2J"))
    assert not RAW_ESCAPE.findall(gone.out + gone.err), gone.told()
    coloured = reader.envmedic("diagnose", "--color", "always", "-p", str(shared.prefix), str(log))
    left = re.sub(r"\x1b\[\d{1,2}(;\d{1,2})?m", "", coloured.out)
    assert coloured.out != left
    assert not RAW_ESCAPE.findall(left)


def test_a_large_log_is_read_in_bounded_memory(reader: Shell, tmp_path: Path) -> None:
    log = tmp_path / "large.log"
    block = b"".join(b"step %06d loss 0.%06d lr 1e-4 torch/nn/modules line\n" % (n, n) for n in range(16_000))
    with log.open("wb") as file:
        for _ in range(LARGE * MEGABYTE // len(block)):
            file.write(block)
        file.write(LINE)
        file.seek(64 * MEGABYTE, os.SEEK_CUR)  # zeros without an end of line: one line of 64 MB
        file.write(b"\nthe end\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_MB * MEGABYTE,) * 2)

    done = subprocess.run(
        [*ENVMEDIC, "diagnose", "--log-only", str(log)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=reader.environment(),
        preexec_fn=limit,
    )
    log.unlink()
    assert done.returncode == 1, done.stderr
    assert "torchvision::nms is not registered" in done.stdout


def test_a_text_that_is_none_is_told_beside_what_the_facts_say(reader: Shell, shared: Case, tmp_path: Path) -> None:
    empty, program = tmp_path / "empty.log", tmp_path / "program"
    empty.touch()
    program.write_bytes(b"\x7fELF" + bytes(60) + b"RuntimeError: operator torchvision::nms does not exist\n")
    done = reader.envmedic("diagnose", "-p", str(shared.prefix), str(empty), str(program))
    assert f"warning: The text of {empty} is empty" in done.err
    assert f"warning: {program} is a binary file, where the text of an error was expected" in done.err
    assert "nms-cuda" in done.out


def test_a_text_with_a_few_zeros_is_a_text(reader: Shell, tmp_path: Path) -> None:
    (tmp_path / "cut.log").write_bytes(bytes(8) + b"RuntimeError: operator torchvision::nms does not exist\n")
    done = reader.envmedic("diagnose", "--log-only", str(tmp_path / "cut.log"))
    assert "binary" not in done.err
    assert "nms-cuda" in done.out


def test_a_text_from_another_environment_asks_for_that_one(reader: Shell, tmp_path: Path) -> None:
    other = make_venv(tmp_path / "other")
    told = reader.envmedic("diagnose", "-p", str(other), str(SAMPLE))
    assert told.out.rstrip().endswith(f"Is {other} the environment that the program ran in? -p names another one")
    refused = reader.envmedic("plan", "--json", "-p", str(other), "--log", str(SAMPLE))
    assert refused.document["hint"] == f"Name the environment that the program ran in with -p, if that is not {other}"
