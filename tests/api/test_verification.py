"""What `verify` says before its checks run."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from envmedic.api import verification
from envmedic.api.context.settings import Settings
from envmedic.model.checks import VerifyWish
from envmedic.model.events import Event, EventStream, Notice
from envmedic.model.facts import Facts, Host, TorchBuild
from envmedic.probe.machine import driver, gpu
from tests.diagnosis.helpers import environment
from tests.probe.test_driver import full_host


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (
            VerifyWish(),
            "GPU 0 is full (pid 4711 with 143.0 GB; 407 of 144000 MB are free): checks run on 1 of 2 GPUs",
        ),
        (VerifyWish(no_gpu=True), None),
        (VerifyWish(names=("import",)), None),
    ],
)
def test_full_gpus_are_named_as_apply_names_them(
    wish: VerifyWish, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Event] = []
    observed = replace(environment(), torch=TorchBuild(version="2.5.1", cuda="12.4"))
    nvml = full_host(407, 140_000, processes=[[4711, 143 * 10**9]])
    monkeypatch.setattr(driver, "observe", lambda _variables: nvml)
    monkeypatch.setattr(verification, "observe", lambda *_given: Facts(host=Host(), environment=observed))
    monkeypatch.setattr(verification, "check_runner", lambda *_given, **_more: lambda *_checks: ())
    verification.verify(Settings(stream=EventStream([heard.append])), Path(observed.prefix), wish)
    notices = [event.data.message for event in heard if isinstance(event.data, Notice)]
    assert notices == ([message] if message else [])
    assert gpu.usable(nvml, None)[0]
