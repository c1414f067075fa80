"""The host is at fault: it is said what to do, and the environment stays as it is."""

from __future__ import annotations

from pathlib import Path

from tests.support.host_case import HostCase
from tests.support.native_case import NativeCase

HERE = Path(__file__).resolve().parent


def test_the_text_alone_leads_to_advice(sound: NativeCase, tmp_path: Path) -> None:
    HostCase(
        sound, tmp_path, HERE / "sample_error.log", "system-packages", fault="unsatisfiable"
    ).text_leads_to_advice()
