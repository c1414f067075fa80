"""Guesses at texts that no signature recognises: that they are told as guesses, and change no verdict."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from envmedic.api import diagnosis
from envmedic.api.context.settings import Settings
from envmedic.diagnosis import resemblance
from envmedic.diagnosis.resemblance import GUESSES, load_table, scored, terms
from envmedic.model.events import EventStream
from envmedic.model.findings import Diagnosis
from envmedic.model.registries.faults import FAULTS
from envmedic.playbook.matching.match import read_text
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.text import bare
from tests.diagnosis.test_noise import NOISE
from tests.docs.howto import shipped

LOADING = """\
Traceback (most recent call last):
  File "serve.py", line 4, in <module>
    import acme.kernels
  File "/env/lib/python3.11/site-packages/acme/kernels.py", line 9, in <module>
    _lib = load_shared("acme")
acme.LoadProblem: the loader of shared libraries did not find what LD_LIBRARY_PATH should lead to: cudart, cublas"""
COMPILING = """\
running build_ext
building 'acme.ops' extension
gcc -pthread -c ops.cpp -o build/temp/ops.o
ops.cpp: the compiler of this host refuses the header
failed"""
SOLVING = """\
Collecting package metadata
Solving environment
acme-solver: every candidate of pytorch needs another cudatoolkit than the channels have, failed"""

HINT_OF_ANOTHER = """\
the training on this host ends in the container
docker run --gpus all: the runtime of nvidia and the driver of the host, permission of the device /dev/nvidia0
RuntimeError: NCCL error: unhandled system error"""
FORM_OF_ANOTHER = """\
running build_ext
building 'acme.ops' extension
gcc -pthread -c ops.cpp -o build/temp/ops.o, compile with ninja, cmake and nvcc
setup.py of the extension: the compiler stopped at the header, build of the wheel ended
acme: boxes 2.1 is too old for lids 3.0"""
PLAIN_BESIDE_ANOTHER = """\
Collecting package metadata
Solving environment: failed with conda, packages of channels, conflicts of pytorch and cudatoolkit
pip: no version of the requirement is found for this python, dependency resolver
AttributeError: module 'numpy' has no attribute 'float'"""


def diagnosed(text: str, folder: Path) -> Diagnosis:
    log = folder / "log"
    log.write_text(text)
    return diagnosis.diagnose_text(Settings(stream=EventStream([])), shipped(), None, str(log), None)


@pytest.mark.parametrize(
    ("text", "fault"),
    [(LOADING, "missing-cuda-library"), (COMPILING, "extension-build-toolchain"), (SOLVING, "unsatisfiable")],
)
def test_the_words_of_an_unknown_message_speak_for_a_class(text: str, fault: str, tmp_path: Path) -> None:
    found = diagnosed(text, tmp_path)
    assert found.verdict == "unknown"
    assert found.findings[0].fault == fault
    assert len(found.findings) <= GUESSES
    for item in found.findings:
        assert item.guessed
        assert item.confidence < 0.5
        assert item.evidence[0].what in text
    confidences = [item.confidence for item in found.findings]
    assert confidences == sorted(confidences, reverse=True)


def test_a_guess_is_told_as_one_and_leads_to_no_repair(tmp_path: Path) -> None:
    found = diagnosed(LOADING, tmp_path)
    told = "\n".join(bare(row) for row in diagnosis_lines(found))
    assert "Not recognised by any playbook: best guess: " in told
    assert "a guess by the words of the text alone" in told
    assert "Next:" not in told
    assert found.repair is None


def test_a_plain_answer_has_no_guesses_beside_it(tmp_path: Path) -> None:
    found = diagnosed("RuntimeError: operator torchvision::nms does not exist", tmp_path)
    assert found.verdict == "env"
    assert [item for item in found.findings if item.guessed] == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HINT_OF_ANOTHER, "shell-variable", "gpu-host-fault"),
        (FORM_OF_ANOTHER, "companion-version", "extension-build-toolchain"),
    ],
)
def test_words_that_speak_for_another_class_go_before_an_unsure_reading(
    text: str, line: str, words: str, tmp_path: Path
) -> None:
    found = diagnosed(text, tmp_path)
    assert found.verdict == "unknown"
    assert found.reason == f"a line of it points to {line}, and its words as a whole to {words}"
    assert [item.fault for item in found.findings[:2]] == [words, line]
    assert found.findings[0].guessed
    assert not found.findings[1].guessed
    confidences = [item.confidence for item in found.findings]
    assert confidences == sorted(confidences, reverse=True)
    assert confidences[0] < 0.5
    told = "\n".join(bare(row) for row in diagnosis_lines(found))
    assert "Nothing sure: best guess: " in told
    assert "Next:" not in told


def test_a_line_alone_is_read_as_its_signature_says(tmp_path: Path) -> None:
    # the words of these are few, and are those of other classes as well
    for text in (HINT_OF_ANOTHER.splitlines()[-1], FORM_OF_ANOTHER.splitlines()[-1]):
        assert not diagnosed(text, tmp_path).findings[0].guessed


def test_a_plain_answer_stands_whatever_the_words_are_and_they_are_told(tmp_path: Path) -> None:
    found = diagnosed(PLAIN_BESIDE_ANOTHER, tmp_path)
    assert (found.verdict, found.findings[0].fault, found.findings[0].guessed) == ("env", "numpy-abi", False)
    assert found.findings[0].confidence == 0.88
    assert [item.guessed for item in found.findings] == [False, True, True]
    assert found.findings[1].fault == "unsatisfiable"


def test_what_facts_decide_is_not_disputed(tmp_path: Path) -> None:
    found = diagnosed(FORM_OF_ANOTHER, tmp_path)
    unsure = found.findings[1]
    read = read_text(FORM_OF_ANOTHER.encode().split(b"\n"), shipped())
    for confirmed in (True, False):
        # a fault that facts show besides, or one that they refute: the text stays unknown, and its words are told behind
        told = replace(found, findings=(replace(unsure, confirmed=confirmed),), reason="as it was")
        assert told.undecided
        again = resemblance.second_opinion(told, read, load_table())
        assert (again.verdict, again.reason) == ("unknown", "as it was")
        assert [item.fault for item in again.findings[:2]] == [unsure.fault, found.findings[0].fault]
    sure = replace(found, findings=(replace(unsure, confirmed=True, confidence=0.9),), verdict="env")
    assert not sure.undecided


@pytest.mark.parametrize(
    "text", ["", "error", "quux.SealError: the seal of shard 3 is gone", "torch.OutOfMemoryError: CUDA out of memory."]
)
def test_nothing_is_guessed_of_few_words_and_of_what_is_no_fault(text: str, tmp_path: Path) -> None:
    assert diagnosed(text, tmp_path).findings == ()


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("text", [LOADING, COMPILING, HINT_OF_ANOTHER, FORM_OF_ANOTHER, PLAIN_BESIDE_ANOTHER])
def test_noise_changes_no_guess(text: str, noise: str, tmp_path: Path) -> None:
    alone = diagnosed(text, tmp_path)
    for noisy in (f"{noise}\n{text}", f"{text}\n{noise}"):
        found = diagnosed(noisy, tmp_path)
        assert [(item.fault, item.confidence) for item in found.findings] == [
            (item.fault, item.confidence) for item in alone.findings
        ]
        assert (found.verdict, found.reason) == (alone.verdict, alone.reason)


def test_what_stands_far_from_a_failure_does_not_count(tmp_path: Path) -> None:
    alone = diagnosed(LOADING, tmp_path).findings
    far = "\n".join([*["the solver of conda compares the versions of packages"] * 4000, "", ""])
    long = diagnosed(f"{far}\n{LOADING}\n\n{far}", tmp_path).findings
    assert [item.fault for item in long] == [item.fault for item in alone]


@pytest.mark.parametrize("text", [LOADING, COMPILING, HINT_OF_ANOTHER, FORM_OF_ANOTHER, PLAIN_BESIDE_ANOTHER])
@pytest.mark.parametrize(
    "line",
    ["Epoch {0} [{0}/50] loss 0.{0} lr 1e-{0}", "10:00:{0} INFO the server of conda solved request {0} in {0} ms"],
)
def test_a_log_in_one_form_counts_nowhere(text: str, line: str, tmp_path: Path) -> None:
    log = "\n".join(line.format(number) for number in range(60))
    alone = diagnosed(text, tmp_path)
    long = diagnosed(f"{log}\n{text}", tmp_path)
    assert [(item.fault, item.confidence) for item in long.findings] == [
        (item.fault, item.confidence) for item in alone.findings
    ]
    assert long.verdict == alone.verdict


def test_secrets_of_the_text_are_not_in_a_guess(tmp_path: Path) -> None:
    secret = "hf_" + "aB3" * 12
    found = diagnosed(LOADING.replace("was not loaded", f"was not loaded, HF_TOKEN={secret}"), tmp_path)
    assert found.findings
    assert secret not in json.dumps([item.evidence[0].what for item in found.findings])


def test_the_shipped_table_fits_the_code() -> None:
    table = load_table()
    assert {*table.classes} <= {None, *FAULTS}
    assert len(table.classes) == len({*table.classes}) == len(table.bias)
    for term, row in table.terms.items():
        assert term in list(terms([term]))
        assert len(row) == 1 + len(table.classes)
        assert row[0] > 0


def test_a_text_that_the_table_knows_no_words_of_has_no_scores() -> None:
    assert scored(terms(["zzyzx qwfp arst"]), load_table()) == {}


def test_bytes_that_are_no_text_have_no_scores() -> None:
    for seed in range(20):
        rubbish = random.Random(seed).randbytes(4000).decode("utf-8", "replace")
        assert scored(terms([rubbish]), load_table()) == {}


def test_words_are_parts_of_names_and_neighbours_on_a_line() -> None:
    assert [*terms(["at::cudaLoader 0x7f3a", "Missing_file 12"])] == [
        "at", "cuda", "loader", "at cuda", "cuda loader", "missing", "file", "missing file",
    ]  # fmt: skip


def test_a_classifier_is_made_from_labelled_texts(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn makes the classifier: install the group `resemblance`")
    from tests.resemblance.__main__ import main

    kinds = {
        "missing-cuda-library": LOADING,
        "extension-build-toolchain": COMPILING,
        "none": "a question about errors and failed runs of a model",
    }
    file, output = tmp_path / "texts.jsonl", tmp_path / "table.json"
    rows = [
        {"labels": [label], "text": f"{text}\nerror of run {number}"}
        for label, text in kinds.items()
        for number in range(5)
    ]
    file.write_text("\n".join(json.dumps(row) for row in [*rows, *({"labels": ["no such class"], "text": "x"},)]))
    other = tmp_path / "others.jsonl"
    other.write_text(file.read_text())
    assert main([str(file), str(other), "-o", str(output)]) == 0
    table = resemblance.table_from(output)
    for label in ("missing-cuda-library", "extension-build-toolchain"):
        scores = scored(terms(kinds[label].splitlines()), table)
        assert max(scores, key=scores.__getitem__) == label
