"""Fixtures over the builders; `tests/conftest.py` (or a test module) loads them as a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.index import IndexServer, serve
from tests.support.venvs import make_venv

CERTIFICATES = {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}


@pytest.fixture
def index_server(tmp_path: Path) -> Iterator[IndexServer]:
    """A loopback index over ``tmp_path/index``; write pages there with `write_index`."""
    root = tmp_path / "index"
    root.mkdir()
    with serve(root) as server:
        yield server


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An empty venv without pip."""
    return make_venv(tmp_path / "env")


@pytest.fixture
def clean_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No pip or uv configuration of the machine is seen; returns the empty home that replaces the user's."""
    import os

    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy") or name in CERTIFICATES:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(home / "xdg"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return home
