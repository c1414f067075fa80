"""What the data say of extension packages, in the words of their rows."""

from __future__ import annotations

import pytest

from envmedic.compat.guides import covers, fitting, guides


@pytest.mark.parametrize(
    ("words", "torch", "expected"),
    [
        ("2.4.0 to 2.8.0", "2.5.1+cu124", True),
        ("2.4.0 to 2.8.0", "2.8.0", True),
        ("2.4.0 to 2.8.0", "2.8.1", False),
        ("2.1 to 2.3", "2.3.1", True),
        ("up to 2.3.0", "2.2.2", True),
        ("up to 2.3.0", "2.4.0", False),
        ("2.4, 2.5", "2.5.1", True),
        ("2.4, 2.5", "2.6.0", False),
        (">=2.10 (stable ABI)", "2.11.0", True),
        (">=2.10 (stable ABI)", "2.9.1", False),
        ("1.12.1, 1.13.1, 2.0.1, 2.1.0", "2.0.1", True),
        ("1.12.1, 1.13.1, 2.0.1, 2.1.0", "2.0.0", False),
    ],
)
def test_ranges_are_read_as_they_are_written(words: str, torch: str, *, expected: bool) -> None:
    assert covers(words, torch) is expected


def test_each_package_has_its_source_and_knows_its_torch() -> None:
    assert all(guide.source for guide in guides().values())
    assert [row.release for row in fitting(guides()["torchcodec"], "2.5.1")] == ["0.1"]
    assert not fitting(guides()["flash-attn"], "2.11.0")


def test_a_least_capability_is_one() -> None:
    assert guides()["flash-attn"].capability_min == "8.0"
    assert guides()["auto-gptq"].capability_min is None
