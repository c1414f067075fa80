"""Lines of noise beside a fault: no finding disappears, and no verdict changes."""

from __future__ import annotations

from functools import cache

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.match import read_text, scan
from envmedic.playbook.schema.loader import load_all
from envmedic.render.documents.diagnosis import diagnosis_lines
from tests.diagnosis.test_texts import LOGS, NONE

NOISE = {
    "OMP_NUM_THREADS": (
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being "
        "overloaded, please further tune the variable for optimal performance in your application as needed."
    ),
    "oneDNN": (
        "2026-05-01 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see "
        "slightly different numerical results due to floating-point round-off errors from different computation orders."
    ),
    "fork": (
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. "
        "Disabling parallelism to avoid deadlocks..."
    ),
    "deprecation": "/env/lib/python3.11/site-packages/a.py:10: FutureWarning: `b` is deprecated\n  warnings.warn(",
    "root": (
        "WARNING: Running pip as the 'root' user can result in broken permissions and conflicting behaviour with the "
        "system package manager. It is recommended to use a virtual environment instead"
    ),
    "another place": "/srv/x/lib/python3.12/site-packages/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated.",
    "Ctrl-C": 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nKeyboardInterrupt',
    "time limit": "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-05-01T10:00:00 DUE TO TIME LIMIT ***",
}
NO_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nso I reinstalled everything:"
FAULTS = [(title, text) for fault, title, text in LOGS if fault != NONE]


@cache
def playbooks() -> tuple[LoadedPlaybook, ...]:
    return load_all()


def judged(text: str) -> Diagnosis:
    return diagnose(read_text(text.encode().splitlines(), playbooks()), None, playbooks(), prefix=None, log="log")


def named(text: str) -> set[tuple[str, str]]:
    """The signatures that match."""
    return {(match.playbook, match.signature) for match in scan(text.encode().splitlines(), playbooks())}


def lost(text: str, noisy: str) -> str | None:
    """What the diagnosis of the noisy text lacks of that of `text`."""
    before, after = judged(text), judged(noisy)
    sure = {item.playbook for item in before.findings if item.confidence >= 0.5}
    missing = sure - {item.playbook for item in after.findings}
    same = before.verdict == after.verdict and not missing
    return None if same else f"{before.verdict} became {after.verdict}, without {sorted(map(str, missing))}"


UNKNOWN = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
quux.SealError: the seal of shard 3 is gone"""


@pytest.mark.parametrize("noise", [*NOISE.values(), NO_MEMORY])
def test_what_is_no_fault_explains_no_error_but_its_own(noise: str) -> None:
    found = judged(f"{noise}\n{UNKNOWN}")
    assert found.verdict == "unknown"
    assert "its last error (quux.SealError: the seal of shard 3 is gone)" in (found.reason or "")
    assert judged(noise).verdict == "not-an-env-problem"


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_a_mere_hint_is_not_decided_by_noise(noise: str) -> None:
    hint = "acme: minimum version of the boxes"
    assert [item.confidence < 0.5 for item in judged(hint).findings] == [True]
    assert judged(hint).verdict == "unknown"
    for noisy in (f"{noise}\n{hint}", f"{hint}\n{noise}"):
        assert judged(noisy).verdict == "unknown"


def test_a_process_that_was_killed_after_an_error_ended_because_of_the_error() -> None:
    assert judged("step 1\nKilled").verdict == "not-an-env-problem"
    assert judged(f"{UNKNOWN}\nKilled").verdict == "unknown"


def test_a_message_of_three_lines_ends_before_another_error_is_raised() -> None:
    text = "quux.SealError: the seal of shard 3 is gone"
    assert judged(f"{NO_MEMORY}\n{text}").verdict == "unknown"


@pytest.mark.parametrize(
    "told", ["so I reinstalled everything and now I get:", "But after an upgrade we see:", "then I got"]
)
def test_what_was_before_the_writer_did_something_explains_nothing_after_it(told: str) -> None:
    cut = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>'
    found = judged(f"torch.OutOfMemoryError: CUDA out of memory.\n{told}\n{cut}")
    assert found.verdict == ("unknown" if told.endswith(":") else "not-an-env-problem")
    assert judged(f"{told}\ntorch.OutOfMemoryError: CUDA out of memory.").verdict == "not-an-env-problem"
    assert judged(f"torch.OutOfMemoryError: CUDA out of memory.\n{told}\nstep 1").verdict == "not-an-env-problem"


def test_frames_of_libraries_raise_no_error() -> None:
    frame = "frame #0: box::Error::Error(box::Place, std::string) + 0x96 (0x1554e8b12f86 in libbox.so)"
    assert "its last error" not in (judged(frame).reason or "")


@pytest.mark.parametrize("text", ["Epoch 1 loss 0.3\nEpoch 2 loss 0.2", "numpy==2.0.2\ntorch==2.5.1", "import torch"])
def test_where_no_line_tells_of_a_failure_a_harmless_line_changes_nothing(text: str) -> None:
    found = judged(text)
    assert (found.verdict, found.findings) == ("not-an-env-problem", ())
    assert "no line of the text tells of a failure" in (found.reason or "")
    for noise in NOISE.values():
        assert lost(text, f"{noise}\n{text}") is None
        assert lost(text, f"{text}\n{noise}") is None
    assert judged("").verdict == "unknown"


@pytest.mark.parametrize(
    "text", ["it hangs", "the run crashes", "GPU 0: ERR!", "CUDA available: False", "0 CUDA devices found"]
)
def test_what_stands_still_or_sees_no_gpu_failed(text: str) -> None:
    assert judged(text).verdict == "unknown"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("段错误 (核心已转储)", "native-crash"),
        ("ImportError: cannot import name 'Lid' from 'boxes.parts.covers", "companion-version"),
    ],
)
def test_messages_cut_short_or_translated_name_the_likeliest_fault(text: str, fault: str) -> None:
    found = judged(text)
    assert found.verdict == "unknown"
    assert [item.fault for item in found.findings] == [fault]


REPEATED = {
    "time limit": """srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-05-01T10:00:00 DUE TO TIME LIMIT ***
slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-05-01T10:00:00 DUE TO TIME LIMIT ***""",
    "optional part": 'a.py:1: UserWarning: xFormers is not available\n  warnings.warn("xFormers is not available")\n'
    * 4,
}


@pytest.mark.parametrize("text", REPEATED.values(), ids=REPEATED.keys())
def test_a_notice_that_is_repeated_is_known_on_each_line(text: str) -> None:
    assert judged(text).verdict == "not-an-env-problem"


def test_the_message_of_an_error_may_be_on_the_next_line() -> None:
    shapes = "mat1 and mat2 shapes cannot be multiplied (4x3 and 5x6)"
    assert (
        judged(f"Exception has occurred: RuntimeError\n{shapes}\n  File 'a.py', line 3").verdict == "not-an-env-problem"
    )
    found = judged("Exception has occurred: SealError\nthe seal of shard 3 is gone")
    assert "SealError: the seal of shard 3 is gone" in (found.reason or "")


def test_what_is_no_fault_is_told_beside_the_fault() -> None:
    found = judged(
        f"{NO_MEMORY}\nNotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."
    )
    assert found.verdict == "env"
    assert [item.text for item in found.also] == [NO_MEMORY.splitlines()[0]]
    lines = ["".join(piece.text for piece in line) for line in diagnosis_lines(found)]
    assert any(line.startswith("  besides, no fault: ") for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "The frobnicator of the device was not found.",
        "cl : Command line error D8021 : invalid numeric argument '/Wno-unused-function'",
        "UserWarning: the frobnicator cannot be initialized",
    ],
)
def test_noise_says_nothing_of_an_unknown_failure(text: str) -> None:
    for noise in NOISE.values():
        assert lost(text, f"{noise}\n{text}") is None
        assert lost(text, f"{text}\n{noise}") is None


@pytest.mark.parametrize(("title", "text"), FAULTS, ids=[title for title, _ in FAULTS])
def test_noise_beside_a_fault_changes_nothing(title: str, text: str) -> None:
    del title
    lines = text.splitlines()
    half = len(lines) // 2
    for name, noise in NOISE.items():
        between = "\n".join([*lines[:half], noise, *lines[half:]])
        for place, noisy in (("before", f"{noise}\n{text}"), ("after", f"{text}\n{noise}"), ("between", between)):
            assert lost(text, noisy) is None, (name, place)
    assert lost(text, f"{NO_MEMORY}\n{text}") is None


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_a_wrapped_message_is_read_across_noise(noise: str) -> None:
    first = "ImportError: /opt/env/lib/python3.11/site-packages/boxes/_C.so: undefined"
    [finding, *_] = judged(f"{first}\n{noise}\nsymbol: _ZN3c105ErrorC2Ev").findings
    assert (finding.signature, finding.groups["symbol"]) == ("torch-symbol", "_ZN3c105ErrorC2Ev")


def test_an_interruption_amid_the_frames_of_an_error_takes_none_of_them() -> None:
    head = (
        'Traceback (most recent call last):\n  File "/opt/env/lib/python3.11/site-packages/boxes/lids_pb2.py", line 3'
    )
    tail = "TypeError: __new__() got an unexpected keyword argument 'lid'"
    [finding, *_] = judged(f"{head}, in <module>\n{NOISE['Ctrl-C']}\n{tail}").findings
    assert finding.signature == "in-generated-code"


def test_a_harmless_line_explains_no_failure_that_something_else_explains() -> None:
    own = "ModuleNotFoundError: No module named 'utils'"
    assert judged(f"{NOISE['time limit']}\n{own}").reason == judged(own).reason


def test_what_a_program_did_without_the_gpu_is_no_root_of_what_failed_before() -> None:
    raised = "RuntimeError: Unable to load cuSPARSE. Is it installed?"
    warned = "WARNING: a GPU may be present, but a CUDA-enabled jaxlib is not installed. Falling back to cpu."
    assert judged(f"{raised}\n{warned}").findings[0].fault == "missing-cuda-library"
    assert judged(warned).findings[0].fault == "cpu-only-torch"


def test_an_error_just_before_a_build_does_not_explain_its_failure() -> None:
    build = (
        "      /opt/env/bin/ld: bin/libbox.so: undefined reference to `box_init'\n"
        "      collect2: error: ld returned 1 exit status\n      ninja: build stopped: subcommand failed.\n"
        "  ERROR: Failed building wheel for box\nFailed to build box"
    )
    assert judged(build).verdict == "env"
    assert judged(f"{NO_MEMORY}\n{build}").verdict == "env"
