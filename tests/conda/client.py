"""The conda of the gallery, for tests: installed once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conda import cache
from tests.gallery.repair_gallery.conda.client import install, made_of
from tests.gallery.repair_gallery.room import Untried


def conda_program() -> Path:
    """The program ``conda``; tests are skipped where no package index can be reached."""
    try:
        return cache.kept("client", made_of(), install) / "bin" / "conda"
    except Untried as reason:
        pytest.skip(str(reason))
