from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.api.context.settings import Settings
from envmedic.api.generations import undo
from envmedic.model.events import EventStream
from tests.envs.nms_cuda.case import Case, build
from tests.real.manifest import manifest

LOG = Path(__file__).resolve().parent.parent / "envs" / "nms_cuda" / "sample_operator_does_not_exist.log"


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """An environment whose torchvision is of another torch; tests only look at it."""
    return build(tmp_path_factory.mktemp("tui") / "case")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of one user: playbooks are read once."""
    return tmp_path_factory.mktemp("tui-cache")


@pytest.fixture(scope="session")
def repairable(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Another one like it, which tests repair, and bring back as it was."""
    return build(tmp_path_factory.mktemp("tui") / "case")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the app keeps between runs is kept in a home of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def active(broken: Case, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """`broken` is active in a shell of a user who has nothing else."""
    return _activated(broken, cache, tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of a user who repairs: wheels come into it, which plans without an index find."""
    return tmp_path_factory.mktemp("tui-cache")


@pytest.fixture
def patient(repairable: Case, filled_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """`repairable` is active in such a shell; what a test repairs is undone after it."""
    before = manifest(repairable.prefix)
    yield _activated(repairable, filled_cache, tmp_path, monkeypatch)
    if manifest(repairable.prefix) != before:
        # in-use: what the app still asked of this Python when it was left may not have ended yet
        undo(Settings(stream=EventStream([])), repairable.prefix, None, ("in-use",), lambda _losses: True)
    assert manifest(repairable.prefix) == before


def _activated(broken: Case, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    for name in ("CONDA_PREFIX", "CONDA_EXE", "MAMBA_ROOT_PREFIX", "CONDA_ROOT", "NO_COLOR", "ENVMEDIC_THEME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in broken.index_variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("VIRTUAL_ENV", str(broken.prefix))
    monkeypatch.chdir(tmp_path)
    return broken


@pytest.fixture(scope="session")
def error_text() -> str:
    """What the program prints in such an environment."""
    return LOG.read_text()
