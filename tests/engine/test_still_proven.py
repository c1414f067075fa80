"""A redo is checked again, unless nothing that the proof of the repair depends on has changed since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit
from envmedic.model.facts import Gpu, Host
from envmedic.model.ports import Runner
from envmedic.tree import fingerprint
from tests.engine.world import World, run_python_checks

GPU = Gpu(index=0, name="H200", uuid="GPU-1")
HOST = Host(driver_version="580.1", gpus=(GPU,))


def undone(world: World) -> list[Phase]:
    """A repair on HOST that was undone; the list gets the phase of each run of checks from now on."""
    assert world.apply(world.plan(host=HOST)).state == "done"
    world.undo()
    world.host = HOST
    phases: list[Phase] = []

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        phases.append(phase)
        return run_python_checks(checks, runner, phase, emit)

    world.checks = run
    return phases


def test_the_same_files_on_the_same_machine_are_not_checked_again(world: World) -> None:
    assert world.apply(world.plan(host=HOST)).state == "done"
    new = fingerprint.manifest(world.prefix)
    world.undo()
    world.host = HOST
    world.checks = lambda *_arguments: pytest.fail("checked")
    assert world.redo().state == "done"
    assert fingerprint.manifest(world.prefix) == new


def another_driver(world: World) -> None:
    world.host = msgspec.structs.replace(HOST, driver_version="590.0")


def another_gpu(world: World) -> None:
    world.host = msgspec.structs.replace(HOST, gpus=(msgspec.structs.replace(GPU, uuid="GPU-2"),))


def unknown_machine(world: World) -> None:
    world.host = None


def a_new_file(world: World) -> None:
    (next(world.store.glob("*/env")) / "new.txt").write_text("new")


def a_changed_file(world: World) -> None:
    site = world.site.relative_to(world.prefix)
    (next(world.store.glob("*/env")) / site / "fam" / "__init__.py").write_text("__version__ = '9.9'\n")


@pytest.mark.parametrize("change", [another_driver, another_gpu, unknown_machine, a_new_file, a_changed_file])
def test_whatever_changed_is_checked_in_place(world: World, change: Callable[[World], None]) -> None:
    phases = undone(world)
    change(world)
    assert world.redo().state == "done"
    assert phases == ["smoke"]
