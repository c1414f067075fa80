"""The first look at large logs passes over no line that the second one would find something on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.playbook.matching.gate import WINDOW_BYTES, Gate, gate_pattern, windows
from envmedic.playbook.matching.lines import SQUEEZED_AWAY, squeezed
from envmedic.playbook.matching.signatures import Signatures
from envmedic.playbook.schema.loader import load_all

ATOMS = (b"operatortorchvision::nms", b"undefinedsymbol:", b"nvcc", b"schr\xc4g:text", b"libcudart.so")
GATE = Gate(gate_pattern(ATOMS[:-1]))
BETWEEN = st.lists(st.sampled_from([bytes([byte]) for byte in SQUEEZED_AWAY if byte not in b"\x1b\\<&"]), max_size=3)


@st.composite
def spread(draw: st.DrawFn) -> bytes:
    """An atom in any case, with anything between its characters that squeezing takes away."""
    atom = draw(st.sampled_from(ATOMS[:-1]))
    raised = draw(st.booleans())
    parts = [(bytes([byte]).upper() if raised else bytes([byte])) + b"".join(draw(BETWEEN)) for byte in atom]
    return b"".join(parts)


@given(st.binary(max_size=40), spread(), st.binary(max_size=40))
def test_no_spread_out_literal_is_passed_over(before: bytes, literal: bytes, after: bytes) -> None:
    content = before.replace(b"\x1b", b"") + b"\n" + literal + b"\n" + after
    if not any(atom in squeezed(content) for atom in ATOMS[:-1]):
        return
    first = before.count(b"\n") + 1
    assert set(GATE.lines(content)) & set(range(first + literal.count(b"\n") + 1))


def test_each_literal_has_a_window() -> None:
    found = windows(ATOMS)
    assert all(any(window in atom for window in found) for atom in ATOMS)
    assert max(map(len, found)) <= WINDOW_BYTES


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ()),
        (b"nothing\nhere", ()),
        (b"nvcc", (0,)),
        (b"a\n\nNV\ncc b\nnvcc nvcc\n", (2, 4)),
        (b"a\n\x1b[31mnv\x1b[1mcc\x1b[0m", (1,)),
        (b"a\nn<b>v</b>cc\n", (1,)),
        (b"a\nb\nnv\\ncc\n", (2,)),
        (b"a\r\nnvcc\r\nb", (1,)),
    ],
)
def test_lines_on_which_a_literal_begins_are_told(content: bytes, expected: tuple[int, ...]) -> None:
    assert GATE.lines(content) == expected


def test_every_sample_of_the_shipped_signatures_passes_the_gate() -> None:
    signatures = Signatures(load_all())
    gate = signatures.filter.gate
    assert gate is not None
    samples = [sample for _, signature in signatures.entries for sample in (signature.sample,) if sample]
    assert len(samples) > len(signatures.entries) // 2
    assert [sample for sample in samples if not gate.lines(sample.encode())] == []
