"""An environment whose packages are gone is no healthy one without a word."""

from __future__ import annotations

import shutil
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import diagnose
from envmedic.model.events import Event, EventStream, Notice
from tests.support.venvs import make_venv


def test_a_diagnosis_says_that_there_is_no_site_packages(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    events: list[Event] = []
    settings = Settings(stream=EventStream([events.append]))
    diagnose(settings, prefix, [])
    assert not _warnings(events)
    shutil.rmtree(prefix / "lib")
    diagnose(settings, prefix, [])
    assert _warnings(events) == [f"{prefix} has no site-packages: whatever was installed in it is gone"]


def _warnings(events: list[Event]) -> list[str]:
    return [
        item.data.message for item in events if isinstance(item.data, Notice) and item.data.code == "no-site-packages"
    ]
