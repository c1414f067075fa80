"""The host is at fault: it is said what to do, and the environment stays as it is."""

from __future__ import annotations

from pathlib import Path

from tests.support.host_case import HostCase
from tests.support.native_case import NativeCase

HERE = Path(__file__).resolve().parent
HOST: dict[str, object] = {"lost_gpus": ["GPU 1: GPU is lost"]}


def test_the_text_alone_leads_to_advice(sound: NativeCase, tmp_path: Path) -> None:
    HostCase(sound, tmp_path, HERE / "sample_error.log", "gpu-hardware").text_leads_to_advice()


def test_facts_of_the_host_confirm_it(sound: NativeCase, tmp_path: Path) -> None:
    HostCase(sound, tmp_path, HERE / "sample_error.log", "gpu-hardware", HOST).facts_confirm_it(alone=True)
