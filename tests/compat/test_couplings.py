from __future__ import annotations

import pytest

from envmedic.compat import couplings


@pytest.mark.parametrize(
    ("torch", "xformers", "torchcodec", "flash_attention"),
    [
        ("2.0.1", "0.0.22", None, "2.6.3"),
        ("2.4.0", "0.0.27.post2", "0.0.3", "2.8.3.post1"),
        ("2.5.1", "0.0.29.post1", "0.1", "2.8.3.post1"),
        ("2.7.1", "0.0.31.post1", "0.5", "2.8.3.post1"),
        ("2.11.0", "0.0.35", "0.16", None),
        ("1.5.0", None, None, "2.5.8"),
    ],
)
def test_the_newest_release_for_a_torch_is_read_from_rows_for_people(
    torch: str, xformers: str | None, torchcodec: str | None, flash_attention: str | None
) -> None:
    assert couplings.xformers_for(torch) == xformers
    assert couplings.torchcodec_for(torch) == torchcodec
    assert couplings.flash_attention_for(torch) == flash_attention


def test_torchcodec_fits_the_torch_of_its_row() -> None:
    assert couplings.torchcodec_fits("0.1.1", "2.5.1") is True
    assert couplings.torchcodec_fits("0.1.1", "2.6.0") is False
    assert couplings.torchcodec_fits("0.12.0", "2.15.0") is True
    assert couplings.torchcodec_fits("0.17.0", "2.15.0") is None, "the data does not know"
    assert couplings.torchcodec_fits("9.9", "2.15.0") is None
