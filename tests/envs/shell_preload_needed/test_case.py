"""The shell is to be mended: what to set is said, and the environment stays as it is."""

from __future__ import annotations

from pathlib import Path

from tests.support.host_case import HostCase
from tests.support.native_case import NativeCase

HERE = Path(__file__).resolve().parent


def test_the_text_leads_to_advice(sound: NativeCase, tmp_path: Path) -> None:
    log = HERE / "sample_error.log"
    HostCase(
        sound, tmp_path, log, "shell-preload-needed", fault="shell-variable", verdict="shell", code=1
    ).text_leads_to_advice(refused=1)
