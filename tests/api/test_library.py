"""The library: five functions of `envmedic.api`, and the application of docs/library.md on a really broken environment."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic import api
from envmedic.engine.store.live_records import live_records
from envmedic.errors import InputError, NothingToRepair, RepairDeclined, StalePlan
from envmedic.model.events import Event, StageStarted
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from tests.cli.support import Shell, user_of
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case, build
from tests.real.manifest import manifest
from tests.support.rooms import in_memory
from tests.support.venvs import site_packages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
FAILURE = "RuntimeError: operator torchvision::nms does not exist\n"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    yield from in_memory(tmp_path)


@pytest.fixture
def user(case: Case, room: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The user of `case`, whose variables this process has too."""
    shell = user_of(case, room / "home")
    for name, value in shell.environment().items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    return shell


@pytest.fixture
def case(room: Path) -> Case:
    return build(room / "case")


def test_a_text_alone_is_diagnosed_and_nothing_at_all_is_refused() -> None:
    found = api.diagnose(text=FAILURE)
    assert (found.verdict, found.prefix, found.findings[0].playbook) == ("env", None, "nms-cuda")
    with pytest.raises(InputError):
        api.diagnose()


@pytest.mark.usefixtures("user")
def test_plan_apply_and_undo_with_events(case: Case) -> None:
    before = manifest(case.prefix)
    made = api.plan(case.prefix, FAILURE)
    assert made is not None
    assert [(item.name, item.before, item.after) for item in made.changes] == [("torchvision", BROKEN, REPAIRED)]
    with pytest.raises(RepairDeclined):
        api.apply(made, confirm=lambda _plan: False, options=ApplyOptions(no_gpu=True))
    seen: list[Event] = []
    record = api.apply(made, options=ApplyOptions(no_gpu=True), events=seen.append)
    assert record is not None
    assert (record.outcome, record.failure) == ("repaired", None)
    assert {"clone", "steps", "verify"} <= {item.data.stage for item in seen if isinstance(item.data, StageStarted)}
    (site_packages(case.prefix) / "mine.py").write_text("")
    with pytest.raises(RepairDeclined):
        api.undo(case.prefix)
    asked: list[tuple[str, ...]] = []

    def accept(paths: tuple[str, ...]) -> bool:
        asked.append(paths)
        return True

    api.undo(case.prefix, accept=accept)
    assert any(path.endswith("mine.py") for path in asked[0])
    assert manifest(case.prefix) == before


@pytest.mark.usefixtures("user")
def test_a_plan_of_another_state_is_refused(case: Case) -> None:
    made = api.plan(case.prefix, FAILURE)
    assert isinstance(made, Plan)
    (site_packages(case.prefix) / "mine.py").write_text("")
    with pytest.raises(StalePlan):
        api.apply(made, options=ApplyOptions(no_gpu=True))


@pytest.mark.usefixtures("user")
def test_a_text_that_is_no_fault_of_the_environment_is_refused_and_a_healthy_one_needs_nothing(room: Path) -> None:
    healthy = build(room / "healthy", torchvision=REPAIRED)
    with pytest.raises(NothingToRepair):
        api.apply(healthy.prefix, "torch.OutOfMemoryError: CUDA out of memory.\n")


def test_the_application_of_the_page_repairs_its_environment(case: Case, user: Shell, room: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert program.count("\n") <= 65
    (room / "app.py").write_text(program)
    argv = [sys.executable, str(room / "app.py"), str(case.prefix), str(case.program)]
    done = subprocess.run(argv, env=user.environment(), input="y\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  torchvision {BROKEN} -> {REPAIRED}" in done.stdout
    assert done.stdout.endswith("kept boxes: [0, 2]\n")
    assert [item.plan.purpose for item in live_records(case.prefix)] == ["repair", "snapshot"]
