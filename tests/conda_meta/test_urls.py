"""Addresses of channels as conda's records and history spell them."""

from __future__ import annotations

import pytest

from envmedic.conda_meta.urls import canonical, without_credentials


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://me:secret@example.org/t/ab-123/channel", "https://example.org/channel"),
        ("https://example.org/t/ab-123/team/channel", "https://example.org/team/channel"),
        ("file:///srv/t/team/channel", "file:///srv/t/team/channel"),
    ],
)
def test_a_token_is_left_out_and_a_directory_is_not(url: str, clean: str) -> None:
    assert (without_credentials(url), canonical(f"{url}/noarch")) == (clean, clean)
