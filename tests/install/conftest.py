"""Packages that several tests look into."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.install.packages import ROOT, build


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Built from the sources by the build backend, in the environment of the tests: the wheel, then the source archive."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    return build(tmp_path_factory.mktemp("dist"), alone=True)
