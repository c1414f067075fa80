"""What is found in a log in which failures are repeated is what is found where each line is looked at by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.model.playbook import LoadedPlaybook, TextMatch
from envmedic.playbook.matching import blocks, signatures
from envmedic.playbook.matching import lines as log_lines
from envmedic.playbook.matching.blocks import joined
from envmedic.playbook.matching.lines import Reading
from envmedic.playbook.matching.match import scan
from envmedic.playbook.matching.signatures import Signatures
from envmedic.playbook.schema.loader import load_all
from tests.playbook.helpers import loaded

PICKY = loaded(
    ("any", r"operator (?P<operator>\w+::\w+) does not exist"),
    ("one", r"CUDA error[: (]{1,3}80[34]\b"),
    ("number", r"rank (?P<rank>\d+) exceeded the deadline"),
    ("some", r"libcudart\.so\.1[12] is missing"),
    ("address", r"comm 0x[0-9a-f]{6,}d is broken"),
    ("letters", r"ed symbol table"),
    ("digits", r"\b[1-9]\d{2} bytes leaked from pool"),
    ("wrapped", r"Could not run the kernel (?P<kernel>\w+) of stage [13579]\b"),
    ("warned", r"the watchdog of worker \d{2} gave up"),
    ("twice", r"segment (?P<first>\d+) overlaps segment (?P<second>\w+)"),
    ("short", r"\bexit status -?9\b"),
)
MESSAGES = (
    "operator torchvision::nms{n} does not exist",
    "RuntimeError: CUDA error: 80{d} while launching",
    "rank {n} exceeded the deadline of {n} ms",
    "ImportError: libcudart.so.1{d} is missing",
    "NCCL WARN comm 0x{h} is broken, rank {n}",
    "at 0x{h} symbol table",
    "{n} bytes leaked from pool 0x{h}",
    "Could not run the kernel k{n} of stage {d}",
    "Could not run the kernel k{n}",
    "of stage {d} on device {n}",
    "Could not run",
    "the kernel k{n} of",
    "stage {d}",
    "the watchdog of worker {n} gave up",
    "segment {n} overlaps segment 0x{h}",
    "process 0x{h} ended, exit status {d}",
    "exit status",
    "-{d} from {n}",
    "epoch {n} loss 0.{n}",
    "",
    "Traceback (most recent call last):",
    "    ~~~^^^^^",
)
PREFIXES = (
    "", "", "", "[rank{n}]: ", "2026-01-05 05:58:{d}1,{n} ", "node-{n} | ", "{n}: ", "WARNING:root:", "(Worker pid={n}) ",
    "\x1b[3{d}m", "| ", '{{"log":"', "0x{h}: ", "&#3{d};", "\\u003{d}", "<h{d}>", "\\x1b[3{d}m", "line\\n", "> ",
)  # fmt: skip
ENDS = (
    "",
    "",
    "",
    "\r",
    " |",
    "\x1b[0m",
    '\\n","stream":"stderr","time":"2026-01-0{d}T0{d}:00:00Z"}}',
    " 0x{h}",
    "\\n {n}",
)
NUMBERS = st.sampled_from(["1", "3", "7", "12", "17", "99", "123", "800", "4711", "1234567"])
ADDRESSES = st.sampled_from(["7f3a91c0", "7f3a91cd", "7fffeed", "ab", "d", "7f3a00000001", "FACE", "deadbeefd"])


@st.composite
def logs(draw: st.DrawFn) -> list[str]:
    """Few lines many times, each time with other numbers."""
    shapes = draw(st.lists(st.tuples(*map(st.sampled_from, (PREFIXES, MESSAGES, ENDS))), min_size=1, max_size=5))
    order = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=60))
    return [
        "".join(shape).format(n=draw(NUMBERS), d=draw(st.sampled_from("0123456789")), h=draw(ADDRESSES))
        for shape in order
    ]


def plainly(text: Sequence[bytes], playbooks: Sequence[LoadedPlaybook]) -> tuple[TextMatch, ...]:
    """What `scan` finds where nothing is remembered of the lines before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "_LOOKED_AT_IN_FULL", len(text) + 1)
        patch.setattr(log_lines, "_message_spans", {})
        patch.setattr(log_lines, "_message_span", lambda *_: None)
        log_lines.readings.cache_clear()
        return scan(text, playbooks)


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    log_lines._message_spans.clear()
    log_lines.readings.cache_clear()


@given(logs(), st.sampled_from([150, 1 << 20]))
def test_the_same_is_found_in_what_is_repeated_with_other_numbers(log: list[str], size: int) -> None:
    text = [line.encode() for line in log]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", size)
        assert scan(text, [PICKY]) == plainly(text, [PICKY])


WRAPPED = (
    ("Could not run", "[rank{n}]: the kernel k{n} of", "[rank{n}]: stage {d}, exit status"),
    ("[rank{n}]: Could not run the kernel k{n}", "    ^^^^^", "node-{n} | of stage {d} on device {n}"),
    ("operator torchvision::nms", "[rank{n}]: does not exist", ""),
    ("at 0x{h} symbol table", "epoch {n}"),
)
"""Where what stands before a line parts the words of a message."""


@given(
    logs() | st.lists(st.sampled_from(WRAPPED), max_size=20).map(lambda parts: [*map(numbered, count(), chain(*parts))])
)
def test_lines_that_were_seen_before_tell_what_they_tell_by_themselves(log: list[str]) -> None:
    remembering = Signatures([PICKY])
    for block in blocks.blocks(joined([line.encode() for line in log])):
        for _, window in block.windows(lambda _: True):
            seen, alone = remembering.hits(window), Signatures([PICKY]).hits(window)
            assert [(hit.key, hit.match(1)) for hit in seen] == [(hit.key, hit.match(1)) for hit in alone]


def numbered(number: int, line: str) -> str:
    """`line` with numbers that are its own."""
    return line.format(n=number % 13, d=number % 10, h=f"{number * 7919:08x}d")


UNDERLINED = ["Could not run", "the kernel k1 of", "    ^^^^^"]
DECIDING = {
    "digits that stand for characters": [
        f"the watchdog of worker 1&#{code}; gave up" for code in (49, 50, 51, 65, 66, 49)
    ],
    "a number that is another failure": [f"RuntimeError: CUDA error: 80{digit} there" for digit in "343545"],
    "a number that is a failure": [f"RuntimeError: CUDA error: 80{digit} there" for digit in "151234"],
    "a number in a wrapped message": [f"Could not run the kernel k1~of stage {digit} on" for digit in "2484637"],
    "an address that is another failure": [f"NCCL WARN comm 0x7f3a91c{digit} is broken" for digit in "dd0dcfd"],
    "an address that is a failure": [f"NCCL WARN comm 0x7f3a91c{digit} is broken" for digit in "000abdc"],
    "words of its own": [f"the watchdog of worker {number} gave up" for number in (1, 12, 17, 12)],
    "lines that underline others": [*(UNDERLINED + UNDERLINED[-1:]) * 9, *(*UNDERLINED, "stage 3") * 9],
}
"""Lines that are alike, where what is masked, or what stands around it, decides."""


@pytest.mark.parametrize("size", [150, 400, 1 << 20])
@pytest.mark.parametrize("log", DECIDING.values(), ids=DECIDING.keys())
def test_what_is_masked_decides_where_it_matters(log: list[str], size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    text = "\n".join(log).replace("~", "\n").encode().split(b"\n")
    found = scan(text, [PICKY])
    assert found
    assert found == plainly(text, [PICKY])


def renumbered(line: str, number: int) -> str:
    """`line` as another process says it at another time."""
    return f"2026-01-05 05:58:{number:02d} [rank{number}]: " + line.replace("0x7f", f"0x{number}f")


def test_the_same_is_found_in_every_sample_that_other_processes_repeat() -> None:
    playbooks = load_all()
    samples = [signature.sample for loaded in playbooks for signature in loaded.playbook.signatures]
    short = [sample for sample in samples if sample and len(sample) < 200][::12]
    assert len(short) > 40
    text = [renumbered(sample, number).encode() for sample in short for number in (1, 2, 30)]
    assert scan(text, playbooks) == plainly(text, playbooks)


HIDDEN = (
    ["RuntimeError: CUDA error: 804 while launching"],
    ["Could not run the kernel k7", "of stage 3 on device 0"],
    ["ImportError: libcudart.so.12 is missing"],
)


@pytest.mark.parametrize("hidden", HIDDEN, ids=["a number", "wrapped", "a version"])
@pytest.mark.parametrize(
    "message",
    [
        "2026-01-05 [rank{n}]: operator torchvision::nms does not exist",
        "Could not run the kernel k{n}",
        "RuntimeError: CUDA error: 80{d} while launching",
        "NCCL WARN comm 0x{h} is broken, rank {n}, libcudart.so.1{d} is missing",
    ],
)
def test_another_failure_between_thousands_of_equal_ones_is_found(message: str, hidden: list[str]) -> None:
    def repeated(start: int) -> list[bytes]:
        return [
            message.format(
                n=number % 997, d=(0, 1, 5, 9)[number % 4] if "80" in message else 0, h=f"{number:x}c"
            ).encode()
            for number in range(start, start + 1000)
        ]

    text = [*repeated(0), *(line.encode() for line in hidden), *repeated(7)]
    matches = scan(text, [PICKY])
    assert 1001 in {item.line_number for item in matches}
    assert matches == plainly(text, [PICKY])


@pytest.mark.parametrize(
    "message",
    [
        "[rank{n}]: RuntimeError: operator torchvision::nms does not exist at step {m}",
        "node{n}:{m} NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory comm 0x{m:x}",
        "rank {n} exceeded the deadline of {m} ms",
    ],
)
def test_lines_alike_are_cleaned_and_looked_at_in_full_a_few_times(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0
    read = log_lines.segment_readings

    def counting(parts: Iterable[bytes]) -> tuple[Reading, ...]:
        nonlocal looked_at
        looked_at += 1
        return read(parts)

    monkeypatch.setattr(log_lines, "segment_readings", counting)
    text = [message.format(n=number % 1000, m=number * 7919).encode() for number in range(5_000)]
    (only,) = scan(text, [PICKY] if "rank {n}" in message else load_all())[:1]
    assert only.line_number == 1
    assert looked_at < 1500
