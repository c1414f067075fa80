"""What probes make is gone afterwards, and taken away later when SIGKILL ended them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from envmedic.engine.fs import exchange, scratch
from envmedic.engine.fs.scratch import left_over, names
from envmedic.engine.stage import runners
from envmedic.model.ports import ApplyOptions
from tests.engine.world import World, in_child


def die(*_arguments: object, **_more: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(("module", "function"), [(exchange, "exchange"), (runners, "proc"), (scratch, "held")])
def test_what_a_killed_probe_left_goes_with_the_next_recovery(
    quick: World, monkeypatch: pytest.MonkeyPatch, module: object, function: str
) -> None:
    beside = {path.name for path in quick.prefix.parent.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(module, function, type("Dies", (), {"__call__": die, "Helper": die})())
        quick.options = ApplyOptions()  # with the probe of namespaces too
        assert not in_child(quick.apply)
    left = [*quick.store.glob(".probe-*"), *quick.prefix.parent.glob(".envmedic-probe-*")]
    assert left
    assert quick.recover() == ()
    assert [path for path in left if path.exists()] == []
    assert {path.name for path in quick.prefix.parent.iterdir()} == {*beside, ".envmedic"}


def test_a_probe_that_runs_is_not_taken_for_left_over(tmp_path: Path) -> None:
    start, _ = names(tmp_path / "env")
    with scratch.scratch(tmp_path, start) as place:
        assert left_over(tmp_path, start) == ()
        assert place.is_dir()
    assert not place.exists()
    (tmp_path / f"{start}left").mkdir()
    (tmp_path / "another").mkdir()
    assert left_over(tmp_path, start) == (tmp_path / f"{start}left",)


def test_probes_of_another_environment_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"{names(tmp_path / 'other')[0]}left").mkdir()
    assert left_over(tmp_path, names(tmp_path / "env")[0]) == ()
