"""Fixtures of the installer tests: no configuration of the machine, and a quick uv."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fixtures import clean_configuration, index_server, venv

__all__ = ["clean_configuration", "index_server", "quick", "venv"]


@pytest.fixture(autouse=True)
def quick(clean_configuration: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No retries, short waits, and one uv cache for all tests; returns the empty home."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "uv-cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "1")
    return clean_configuration
