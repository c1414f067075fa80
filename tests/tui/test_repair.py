"""From a pasted text to a repaired environment and back, with the real engine on a real small environment."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot
from textual.widgets import OptionList

from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model.events import CheckFinished, Event, Progress, StageStarted
from envmedic.model.ports import ApplyOptions
from envmedic.render.progress.repair_state import Repair
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.panels.base import AskPanel, QuestionPanel
from envmedic.tui.panels.choosing import ChoicePanel
from envmedic.tui.panels.locking import LockPanel
from envmedic.tui.panels.starting import StartPanel
from envmedic.tui.screens.finding import FindingScreen
from envmedic.tui.screens.home import HomeScreen
from envmedic.tui.screens.plan import PlanScreen
from envmedic.tui.screens.repair import RepairScreen
from envmedic.tui.screens.result import ResultScreen
from envmedic.tui.widgets.bars import CommandLine
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.log_view import LogView
from tests.cli.support import torchvision
from tests.cli.test_repair_loop import FIRST_FAULT
from tests.envs.driver_library_mismatch.test_case import HOST
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case
from tests.real.manifest import manifest
from tests.support.cuda_family import host_file
from tests.tui.support import LARGE, PATIENCE_S, SMALL, app, drive, shown, until, until_shown

Moment = Callable[[Event], bool]


class Gate:
    """A sink that holds the repair at a moment until it is let go on."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._reached = threading.Event()
        self._open = threading.Event()

    def __call__(self, event: Event) -> None:
        if self._moment(event) and not self._reached.is_set():
            self._reached.set()
            assert self._open.wait(PATIENCE_S)

    def reached(self) -> bool:
        return self._reached.is_set()

    def open(self) -> None:
        self._open.set()


def stage(name: str) -> Moment:
    return lambda event: isinstance(event.data, StageStarted) and event.data.stage == name


def first_check(event: Event) -> bool:
    return isinstance(event.data, CheckFinished) and event.data.phase == "before"


def some_files(event: Event) -> bool:
    return isinstance(event.data, Progress) and event.data.stage == "clone" and event.data.done > 0


STOPPED: dict[str, Moment] = {
    "before anything is fetched": stage("fetch"),
    "while the clone is made": some_files,
    "during the checks before the steps": first_check,
    "before the first step": stage("steps"),
    "before the checks": stage("verify"),
}


def the(opened: EnvmedicApp) -> Repair:
    repair = opened.session.repair
    assert repair is not None
    return repair


def page(opened: EnvmedicApp) -> str:
    return opened.screen.query_one("#page", LineView).text


async def to_plan(opened: EnvmedicApp, pilot: Pilot[int], text: str, *, can: bool = True) -> PlanScreen:
    """Paste `text`, open what is found first, and its plan, which can be carried out or not yet."""
    await until(pilot, lambda: opened.session.current is not None and opened.session.current.phase == "read")
    opened.post_message(events.Paste(text))
    await until(pilot, lambda: opened.session.source is not None and opened.session.source.joined is not None)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(opened.screen, FindingScreen))
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(opened.screen, PlanScreen))
    screen = opened.screen
    assert isinstance(screen, PlanScreen)
    how = "swap" if can else "It could not begin now"
    await until(pilot, lambda: "How, on this machine" in page(opened) and how in page(opened), "the plan")
    return screen


async def start(opened: EnvmedicApp, pilot: Pilot[int], text: str, *gates: Gate, key: str = "y") -> None:
    """Go to the plan, and give the go-ahead; the repair stops at the gates."""
    await begin(opened, pilot, await to_plan(opened, pilot, text), *gates, key=key)


async def begin(opened: EnvmedicApp, pilot: Pilot[int], screen: PlanScreen, *gates: Gate, key: str = "y") -> None:
    """Give the go-ahead for the plan that is shown."""
    assert screen._prepared is not None
    for gate in gates:
        screen._prepared.settings.stream.add(gate)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(opened.screen, StartPanel))
    await pilot.press(key)
    await until(pilot, lambda: isinstance(opened.screen, RepairScreen))


def asked(opened: EnvmedicApp) -> Callable[[], bool]:
    return lambda: isinstance(opened.screen, AskPanel)


def at_result(opened: EnvmedicApp) -> Callable[[], bool]:
    return lambda: isinstance(opened.screen, ResultScreen)


@contextmanager
def reader(patient: Case) -> Iterator[int]:
    """A process of somebody else that runs from the environment: no child of this one."""
    command = f"'{patient.python}' -c 'import time; time.sleep(600)' >/dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)


def test_from_the_pasted_error_to_a_repaired_environment(patient: Case, error_text: str, tmp_path: Path) -> None:
    before = manifest(patient.prefix)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        steps = Gate(stage("steps"))
        await start(opened, pilot, error_text, steps)
        await until(pilot, steps.reached)
        await until(pilot, lambda: "Checks before" in shown(opened) and "Repair the copy" in shown(opened))
        assert "Your environment is untouched" in shown(opened)
        assert "torchvision-nms" in opened.screen.query_one("#checks", LineView).text
        await leave_and_return(opened, pilot)
        with reader(patient) as pid:
            steps.open()
            await until(pilot, asked(opened), "the question")
            question = opened.screen.query_one(LineView).text
            assert f"{pid}  {patient.python} -c import time; time.sleep(600)  (runs a program of it)" in question
        assert f"torchvision  {BROKEN}  →  {REPAIRED}" in question
        assert manifest(patient.prefix) == before
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(opened.screen, RepairScreen))
        await until_shown(pilot, "Waits for your answer")
        await pilot.press("enter")
        await until(pilot, asked(opened))
        await pilot.press("y")
        await until(pilot, at_result(opened), "the result")
        text = page(opened)
        assert "Repaired, not verified on a GPU" in text
        assert f"{BROKEN} (uv)" in text
        assert f"{REPAIRED} (uv)" in text
        assert opened.screen.query_one(CommandLine).line == f"envmedic undo -p {patient.prefix}"
        assert torchvision(patient.prefix) == REPAIRED
        await pilot.press("l")
        await until(pilot, lambda: isinstance(opened.screen, LockPanel))
        await until(pilot, lambda: opened.screen.query_one(OptionList).option_count == len(LOCK_FORMATS) + 1)
        await pilot.press("up", "space", "w")
        await until(pilot, lambda: "locked  " in page(opened), "the lock")
        assert f"{tmp_path}/pylock.toml: " in page(opened)
        assert "detector 0.1" in page(opened)
        await pilot.press("s")
        await until_shown(pilot, "The directory for Markdown")
        await pilot.press("enter")
        await until(pilot, lambda: "| torchvision |" in opened.clipboard, "the report")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(opened.screen, HomeScreen))
        await until(pilot, lambda: nothing_failed(opened), "the environment is read again")

    drive(scenario, SMALL)
    assert {path.suffix for path in tmp_path.glob("envmedic-report.*")} == {".md", ".svg", ".html"}
    assert f'version = "{REPAIRED}"' in (tmp_path / "pylock.toml").read_text()


def nothing_failed(opened: EnvmedicApp) -> bool:
    """Whether the environment was read and has no finding but the file that was edited before the repair."""
    current = opened.session.current
    found = current.diagnosis if current is not None else None
    return found is not None and [item.latent for item in found.findings] == [True]


async def leave_and_return(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
    """Go home while it runs, see that it runs, and come back to all of its log."""
    log = opened.screen.query_one(LogView).lines
    assert log
    for screen in (PlanScreen, FindingScreen, HomeScreen):
        await pilot.press("escape")
        await until(pilot, lambda screen=screen: isinstance(opened.screen, screen))  # type: ignore[misc]
    assert "repairing " in shown(opened).splitlines()[0]
    assert "a repair runs" in shown(opened)
    await pilot.press("g")
    await until(pilot, lambda: isinstance(opened.screen, RepairScreen))
    await until(pilot, lambda: opened.screen.query_one(LogView).lines[: len(log)] == log)


@pytest.mark.long
def test_a_cancel_at_any_stage_a_no_and_quitting_leave_the_environment_as_it_was(
    patient: Case, error_text: str
) -> None:
    before, kept = manifest(patient.prefix), clones(patient)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        screen = await to_plan(opened, pilot, error_text)
        for name, moment in STOPPED.items():
            gate = Gate(moment)
            await begin(opened, pilot, screen, gate)
            await until(pilot, gate.reached)
            await cancel(opened, pilot, "has not been touched")
            gate.open()
            await until(pilot, at_result(opened), f"the result of a cancel {name}")
            assert "unchanged" in page(opened)
            assert "You stopped it before anything changed places." in page(opened)
            assert manifest(patient.prefix) == before
            await pilot.press("r")
            await until(pilot, lambda: opened.screen is screen and "Other ways" in page(opened), "a new plan")
        await begin(opened, pilot, screen)
        await until(pilot, asked(opened), "the question")
        await pilot.press("n")
        await until(pilot, at_result(opened), "the result")
        assert page(opened).startswith("■ Declined  your environment is unchanged")
        await pilot.press("r")
        await until(pilot, lambda: opened.screen is screen and "Other ways" in page(opened), "a new plan")
        await quit_during(opened, pilot, screen)

    drive(scenario)
    assert manifest(patient.prefix) == before
    assert clones(patient) == kept


async def quit_during(opened: EnvmedicApp, pilot: Pilot[int], screen: PlanScreen) -> None:
    """Quit while it repairs: it asks, and waits until the repair has ended."""
    gate = Gate(stage("clone"))
    await begin(opened, pilot, screen, gate)
    await until(pilot, gate.reached)
    await pilot.press("q")
    await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
    await pilot.press("n")
    await until(pilot, lambda: isinstance(opened.screen, RepairScreen))
    assert the(opened).running
    await pilot.press("q")
    await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
    await pilot.press("y")
    gate.open()
    await until(pilot, lambda: not opened.jobs.unfinished())


def clones(patient: Case) -> set[Path]:
    """The trees beside it."""
    return set(patient.prefix.parent.glob(".envmedic/*/env"))


async def cancel(opened: EnvmedicApp, pilot: Pilot[int], told: str) -> None:
    await pilot.press("c")
    await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
    assert told in shown(opened)
    await pilot.press("y")
    await until(pilot, lambda: the(opened).stopping)


@pytest.mark.long
def test_another_way_is_planned_in_place_and_after_the_swap_it_is_too_late(patient: Case, error_text: str) -> None:
    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        screen = await to_plan(opened, pilot, error_text)
        await other_way(opened, pilot, screen)
        await until(pilot, lambda: "There is no plan for this." in page(opened), "that there is no wheel for it")
        assert f"--way '{screen._wish.way}'" in opened.screen.query_one(CommandLine).line
        await other_way(opened, pilot, screen)
        await until(pilot, lambda: f"torchvision  {BROKEN}  →  {REPAIRED}" in page(opened), "the best way again")
        assert "--way" not in opened.screen.query_one(CommandLine).line
        gate = Gate(stage("smoke"))
        await begin(opened, pilot, screen, gate, key="a")
        await until(pilot, gate.reached)
        await until_shown(pilot, "is in place and is checked there")
        await cancel(opened, pilot, "It is too late to stop")
        gate.open()
        await until(pilot, at_result(opened), "the result")
        assert torchvision(patient.prefix) == REPAIRED
        assert "Repaired" in page(opened)
        assert not opened.session.asks

    drive(scenario, LARGE)


async def other_way(opened: EnvmedicApp, pilot: Pilot[int], screen: PlanScreen) -> None:
    """Take the first of the other ways."""
    before = screen._wish.way
    await pilot.press("a")
    await until(pilot, lambda: isinstance(opened.screen, ChoicePanel))
    await until(pilot, lambda: isinstance(opened.focused, OptionList))
    await pilot.press("enter")
    await until(pilot, lambda: opened.screen is screen and screen._wish.way != before)


@pytest.mark.long
def test_the_program_that_was_watched_decides(patient: Case, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import torch, torchvision\n"
        "boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])\n"
        "torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8]), 0.5)\n"
        f"open({str(tmp_path / 'trained.txt')!r}, 'w').close()\n"
    )

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.current is not None and opened.session.current.phase == "read")
        await pilot.press("w", *f"python {program}", "enter")
        await until(pilot, lambda: opened.session.source is not None and opened.session.source.kept, "the failure")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, FindingScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, PlanScreen))
        await until(pilot, lambda: "swap" in page(opened), "the plan")
        screen = opened.screen
        assert isinstance(screen, PlanScreen)
        assert opened.screen.query_one(CommandLine).line.startswith("envmedic apply --last")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, StartPanel))
        question = opened.screen.query_one(LineView).text
        assert f"Your program decides  python {program}" in question
        assert "once before the steps, where it must fail" in question
        assert "is then stopped with all its children" in question
        assert not (tmp_path / "trained.txt").exists()
        await pilot.press("y")
        await until(pilot, asked(opened), "the question before the swap")
        assert "Program      passed" in opened.screen.query_one(LineView).text
        await pilot.press("y")
        await until(pilot, at_result(opened), "the result")
        assert "Program      passed" in page(opened)

    drive(scenario, LARGE)
    assert (tmp_path / "trained.txt").exists()
    assert torchvision(patient.prefix) == REPAIRED


def first_fault(tmp_path: Path) -> str:
    """A fault of the user's own playbook, which hides the real one; returns the text that tells of it."""
    folder = tmp_path / "config" / "envmedic" / "playbooks"
    folder.mkdir(parents=True)
    (folder / "detector-pin.yaml").write_text(FIRST_FAULT)
    return "DetectorError: gives up\n"


@pytest.mark.long
def test_two_faults_need_two_rounds_and_one_alone_proves_nothing(patient: Case, tmp_path: Path) -> None:
    before, text = manifest(patient.prefix), first_fault(tmp_path)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        screen = await to_plan(opened, pilot, text)
        opened.update(replace(opened.session, options=ApplyOptions(max_rounds=1)))
        await begin(opened, pilot, screen, key="a")
        await until(pilot, at_result(opened), "the result of one round")
        tell_what_failed(page(opened))
        assert manifest(patient.prefix) == before
        await save_log(opened, pilot, tmp_path / "repair.log")
        opened.update(replace(opened.session, options=ApplyOptions(), asks=True))
        await pilot.press("r")
        await until(pilot, lambda: opened.screen is screen and "How, on this machine" in page(opened), "a new plan")
        await begin(opened, pilot, screen)
        await until(pilot, asked(opened), "the question about the second round")
        question = opened.screen.query_one(LineView).text
        assert question.startswith("In the copy there is more to repair.")
        assert "remove torchvision 0.18.1" in question
        await pilot.press("y")
        await until(pilot, lambda: asked(opened)() and "Swap it in?" in shown(opened), "the question before the swap")
        assert "Round 2: " in stages(opened)
        await pilot.press("y")
        await until(pilot, at_result(opened), "the result")
        assert "\nRounds\n" in page(opened)
        assert "detector<2" in page(opened)
        assert torchvision(patient.prefix) == REPAIRED

    drive(scenario)
    assert "── running the checks\n" in (tmp_path / "repair.log").read_text()


def tell_what_failed(result: str) -> None:
    assert result.startswith("✗ Not repaired  your environment is unchanged")
    assert "The repaired copy fails its checks" in result
    assert "torchvision-nms" in result
    assert "hint: " in result
    assert "What they printed" in result


async def save_log(opened: EnvmedicApp, pilot: Pilot[int], target: Path) -> None:
    """From the result to the log, into a file, and back."""
    await pilot.press("v")
    await until(pilot, lambda: isinstance(opened.screen, RepairScreen))
    keys = {active.binding.description for active in opened.screen.active_bindings.values()}
    assert "Result" in keys, "where nothing is asked any more, Enter goes on to the result"
    assert "Answer" not in keys
    await pilot.press("s")
    await until_shown(pilot, "Save the log")
    await pilot.press("ctrl+u", *str(target), "enter")
    await until(pilot, target.exists)
    await until(pilot, lambda: isinstance(opened.screen, RepairScreen) and not opened.jobs.running)
    await pilot.press("escape")
    await until(pilot, lambda: at_result(opened)() and opened.focused is not None)


def stages(opened: EnvmedicApp) -> str:
    below = next(screen for screen in opened.screen_stack if isinstance(screen, RepairScreen))
    return below.query_one("#stages", LineView).text


def test_a_fault_of_the_host_is_no_matter_for_a_plan(patient: Case, tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parent.parent / "envs" / "driver_library_mismatch" / "sample_error.log"

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: opened.session.current is not None and opened.session.current.phase == "read")
        opened.post_message(events.Paste(sample.read_text()))
        await until(pilot, lambda: opened.session.source is not None and opened.session.source.joined is not None)
        assert opened.session.findings[0].fault == "gpu-host-fault"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, FindingScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(opened.screen, PlanScreen))
        await until(pilot, lambda: "There is no plan for this." in page(opened), "why there is no plan")
        assert "fault of the host" in page(opened)
        await pilot.press("enter", "a")
        await pilot.pause()
        assert isinstance(opened.screen, PlanScreen)

    drive(scenario, driven=app(host_file=host_file(tmp_path, **HOST)))
    assert torchvision(patient.prefix) == BROKEN
