"""Where nothing was installed, there is nothing to repair: the advice is told and the environment stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure

FOLDERS = Path(__file__).resolve().parents[1]
PLAYBOOKS = {
    "unsatisfiable-requirements": "unsatisfiable",
    "no-matching-distribution": "unsatisfiable",
    "unsatisfiable-conda": "unsatisfiable",
    "download-damaged": "unsatisfiable",
    "conda-cache": "half-installed",
    "python-parts": "half-installed",
}
LOGS = [(name, log) for name in PLAYBOOKS for log in sorted((FOLDERS / name.replace("-", "_")).glob("*.log"))]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> NativeCase:
    """An environment in which nothing is wrong."""
    room = tmp_path_factory.mktemp("healthy")
    return build_native(room, [pure(room / "wheels", "app", "1.0", "")], ["app"], "import app\n")


def test_every_playbook_has_a_log() -> None:
    assert {name for name, _ in LOGS} == set(PLAYBOOKS)


@pytest.mark.parametrize(("playbook", "log"), LOGS, ids=lambda value: getattr(value, "stem", value))
def test_the_text_leads_to_the_advice(healthy: NativeCase, playbook: str, log: Path) -> None:
    found = healthy.envmedic("diagnose", "-p", str(healthy.prefix), "--json", str(log)).document
    best = found["findings"][0]
    assert (found["verdict"], best["fault"], best["playbook"]) == ("env", PLAYBOOKS[playbook], playbook)


def test_apply_changes_nothing(healthy: NativeCase) -> None:
    before = manifest(healthy.prefix)
    done = healthy.apply("--log", str(LOGS[0][1]))
    assert done.code == 1, done.told()
    assert "Nothing was installed" in done.told()
    assert manifest(healthy.prefix) == before
