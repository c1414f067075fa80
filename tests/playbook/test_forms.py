"""Sentences that no signature knows: their form tells of the cause, and gives way to every signature that knows more."""

from __future__ import annotations

import re
from functools import cache

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook, Signature
from envmedic.playbook.matching.forms import FORMS, SAID, TOPICS, cause_of, form_sentences
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all


@cache
def books() -> tuple[LoadedPlaybook, ...]:
    return load_all(())


def judged(text: str) -> Diagnosis:
    return diagnose(read_text(text.encode().split(b"\n"), books()), None, books(), prefix=None, log="log")


def by_form() -> list[Signature]:
    return [item for book in books() for item in book.playbook.signatures if item.id.startswith("form")]


# Nobody's messages: programs that do not exist, in words that no signature has.
UNKNOWN = [
    ("boxd: the graphics driver of this machine is outdated, boxes want a later one", "driver-too-old"),
    ("boxd[12]: could not query the GPU at slot 3", "gpu-host-fault"),
    ("boxd: failure while calling nvml for slot 3", "gpu-host-fault"),
    ("packer.so: no such symbol fold_lid", "extension-undefined-symbol"),
    ("[boxd] failed to locate cusolver at start", "missing-cuda-library"),
    ("the box runtime was compiled against a cudnn that is older than the installed one", "cudnn-mismatch"),
    ("boxes: outdated cufft installation", "nvidia-wheel-conflict"),
    ("boxd: this card is too old, boxes only work on Hopper", "no-kernel-image"),
    ("boxd: target architecture sm_199 is not supported by these boxes", "no-kernel-image"),
    ("BoxError: these boxes were built without CUDA", "cpu-only-torch"),
    ("packing.cu: no CUDA compiler to fold boxes with", "extension-build-toolchain"),
    ("packer: there is no suitable release of lids for these boxes", "unsatisfiable"),
    ("BoxError: lids 3.1 is too new for boxes", "companion-version"),
    ("BoxError: boxes requires lids >=4, which is not what it met", "companion-version"),
    ("boxd ended by abnormal termination", "native-crash"),
    ("boxes.so is a truncated file", "half-installed"),
]


@pytest.mark.parametrize(("text", "fault"), UNKNOWN)
def test_the_form_of_a_sentence_tells_of_its_cause(text: str, fault: str) -> None:
    finding = judged(text).findings[0]
    assert (finding.fault, finding.signature and finding.signature[:4]) == (fault, "form")
    assert 0.5 <= finding.confidence < 0.6, "a guess, however clear the form is"
    assert any(text.rsplit("] ", maxsplit=1)[-1] in evidence.what for evidence in finding.evidence), (
        "the line itself is quoted"
    )


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'torch==2.5.1'",
        "Successfully opened dynamic library libcudart.so.12",
        "Requirement already satisfied: numpy>=1.26 in /opt/env/lib/python3.11/site-packages",
        "export CUDA_HOME=/usr/local/cuda",
        "nvcc -gencode=arch=compute_90,code=sm_90 -c fold.cu -o fold.o",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64",
        "GCC version: (Ubuntu 11.4.0) 11.4.0",
        "cuDNN version: 9.1.0",
        "epoch 3 loss 0.25 throughput 1024/s",
    ],
)
def test_what_tells_of_no_failure_has_no_form(text: str) -> None:
    assert cause_of(text) is None


def test_a_sentence_that_two_causes_share_claims_nothing() -> None:
    found = judged("boxd: running on the CPU, since no accelerator was given")
    assert found.verdict == "unknown"
    assert [(finding.fault, finding.confidence < 0.5) for finding in found.findings] == [("cpu-only-torch", True)]


KNOWN = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


def test_known_words_are_told_alone() -> None:
    found = judged(f"{KNOWN}\npacker: there is no suitable release of lids for these boxes")
    assert [finding.fault for finding in found.findings] == ["no-kernel-image"]


def test_a_form_goes_before_what_was_only_warned_of() -> None:
    warned = "WARNING: torchvision 0.15.2 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible."
    found = judged(f"{warned}\nBoxError: these boxes were built without CUDA")
    assert found.findings[0].fault == "cpu-only-torch"


def test_what_is_known_to_do_no_harm_has_no_form() -> None:
    found = judged(
        "object '/opt/lib/fast.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored."
    )
    assert not [finding for finding in found.findings if finding.signature and finding.signature.startswith("form")]


def test_a_flood_of_one_message_is_read_once() -> None:
    lines = [(number, b"boxd: 0x%x is a truncated file" % number) for number in range(5000)]
    assert [number for number, *_ in form_sentences(lines)] == [0]


def test_every_cause_has_one_signature_and_every_signature_a_cause() -> None:
    patterns = [re.compile(signature.pattern) for signature in by_form()]
    causes = dict.fromkeys(form.cause for form in (*FORMS, *TOPICS))
    for cause in causes:
        matching = [pattern for pattern in patterns if pattern.search(f"{SAID}, {cause}: boxes")]
        assert len(matching) == 1, cause
    assert all(any(pattern.search(f"{SAID}, {cause}: boxes") for cause in causes) for pattern in patterns)
    assert all(signature.confidence <= 0.55 for signature in by_form()), "below words that are known"


def test_a_guess_about_what_was_only_warned_of_establishes_nothing() -> None:
    said = "boxes 2.1 is too old for lids 3.0"
    assert judged(f"BoxError: {said}").findings[0].confidence >= 0.5
    assert judged(f"WARNING! {said}").findings[0].confidence < 0.5


def test_what_a_failure_is_about_is_a_hint_where_no_form_tells_of_a_cause() -> None:
    told = "ERROR: nvcc and the lid of box 3 do not go together, must stop"
    hint = judged(told)
    assert (hint.verdict, hint.findings[0].fault) == ("unknown", "extension-build-toolchain")
    assert hint.findings[0].confidence <= 0.3
    assert not judged("nvcc folds box 3").findings, "nothing failed"
    # a form, known words, and what is no fault go before it
    assert judged(f"{told}\nlids 3.1 is too new for boxes").findings[0].fault == "companion-version"
    assert judged(f"{told}\ntorch.OutOfMemoryError: CUDA out of memory.").verdict == "not-an-env-problem"


APPLE = (
    "tried: '/x/torch/lib/libc10.dylib' (mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64')), "
    "'/System/Volumes/Preboot/Cryptexes/OS/x/torch/lib/libc10.dylib' (no such file)"
)
"""Apple's loader names a file a second time, where it never is."""


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("There were two versions of PyTorch in the environment.", ["duplicate-install"]),
        ("I have tried several versions of torch, and none of them works.", []),
        ("INFO: pip is looking at multiple versions of transformers to determine which version fits.", []),
        ("ModuleNotFoundError: No module named 'triton'", ["companion-version"]),
        ("Error caught was: No module named 'triton'", []),
        ("ImportError: Cannot initialize a EGL device display. The EGL driver does not support this.", ["gpu-host-fault"]),
        ("boxd: the graphics driver here does not support OpenGL 3.3", ["gpu-host-fault"]),
        ("boxd: the graphics driver here does not support boxes of CUDA 13", ["driver-too-old"]),
        ("进程已结束,退出代码-1073741819 (0xC0000005)", ["native-crash"]),
        ("ImportError: libtorch_cuda.so: cannot open shared object file", ["cpu-only-torch", "extension-undefined-symbol"]),
        ("A conflict occurs when I use `pip install -r requirements.txt`.", ["unsatisfiable"]),
        ("HINT: This error might have occurred since this system does not have Windows Long Path support enabled.", []),
        ("InvalidArgumentError: Incompatible shapes: [8,13,80] vs. [8,13,1]", []),
        (APPLE, ["half-installed"]),
    ],
)  # fmt: skip
def test_words_that_two_causes_share(text: str, faults: list[str]) -> None:
    assert [item.fault for item in judged(text).findings if item.confidence >= 0.4] == faults


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("boxd: the graphics driver of this machine is outdated, boxes want a later one", True),
        ("and then I read that the graphics driver of this machine is outdated", False),
        ("OSError: the graphics driver is outdated, as I said", True),
        ("你是否读到过: the graphics driver is outdated", False),
        ("boxd: 警告: the graphics driver is outdated", True),
    ],
)
def test_what_somebody_tells_is_surer_in_a_message_than_in_a_tale(*, text: str, certain: bool) -> None:
    best = judged(text).findings[0]
    assert best.fault == "driver-too-old"
    assert (best.confidence >= 0.5) is certain
