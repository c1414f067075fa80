"""SIGKILL at every step of what is no plain repair: a snapshot, a command of an installer, and an edit of the project.

Each case starts from the environment as it was found, is killed once, and recovered under further SIGKILLs. Then the
environment and the project's files are wholly those of before or those of after, and the way back gives the former.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from envmedic.engine.generations.generations import FOUND
from envmedic.model.base import from_json, to_json
from envmedic.model.plan import Plan
from envmedic.planner.identity import named
from tests.engine.world import PROJECT, project_around
from tests.faults import armed
from tests.faults.cases import Case
from tests.faults.room import Content, Room, contents, manifest_of
from tests.faults.sigkill import OFTEN

_INSIDE = (0, 2, 5)
"""Steps at which the recoveries are killed, one after the other."""
_EDITING = "apply --edit-project"


@dataclass
class _Operation:
    """What is done, and what it makes of the environment undisturbed."""

    room: Room
    name: str
    arguments: tuple[str, ...]
    after: Content | None = None

    def steps(self) -> list[str]:
        """Run it undisturbed and take it back; returns each step that it has, but those of single checks."""
        ended = armed.run(self.room, self.arguments)
        assert ended.code == 0, ended.done.told()
        self.after = self._now()
        self._go_back()
        return [step for step in dict.fromkeys(ended.steps) if not step.startswith(OFTEN)]

    def survive(self, step: str) -> tuple[str, str]:
        """Kill it as it comes to a step, recover, and look at what is there."""
        room = self.room
        first = armed.run(room, self.arguments, at=0, name=step)
        assert first.killed, f"it did not come to {step}: {first.done.told()}"
        kills = 1
        for number in _INSIDE:
            ended = armed.run(room, room.command("recover"), at=number)
            assert ended.killed or ended.code == 0, ended.done.told()
            kills += ended.killed
        room.whole("recover")
        found, project = self._now(), self._project()
        assert found in (contents(room.old), self.after), "neither the old environment nor the new one"
        live = next((item for item in room.generations() if item["live"]), None)
        changed = found != contents(room.old)
        assert live is not None or not changed
        assert project == (1 if changed and self.name == _EDITING else 0), "the project is not that of the environment"
        left = room.leaks()
        assert not left, left
        self._go_back()
        return "new" if live is not None else "old", f"{kills} SIGKILLs"

    def _now(self) -> Content:
        return contents(manifest_of(self.room.prefix, self.room.hashes))

    def _project(self) -> int:
        """0 for the files of before, 1 for those of after."""
        there = {name: (self.room.prefix.parent / name).read_bytes() for name in PROJECT}
        for side in (0, 1):
            if there == {name: sides[side] for name, sides in PROJECT.items()}:
                return side
        raise AssertionError(f"the project is neither of both: {there}")

    def _go_back(self) -> None:
        room = self.room
        if any(item["live"] for item in room.generations()):
            done = room.run(*room.command("undo", FOUND))
            assert done.code == 0, done.told()
        assert room.side() == "old", "undo did not bring the old environment back"
        assert self._project() == 0
        room.forget()


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every step that a state on disk follows, of each operation."""
    room = Room.build(folder / "room")
    edit = project_around(room.prefix)
    plan = msgspec.structs.replace(from_json(room.plan.read_bytes(), Plan, source="the plan"), project_edit=edit)
    room.plan.write_text(to_json(named(plan)))
    room.remember()
    here = ("-p", str(room.prefix))
    for name, arguments in (
        ("snapshot", ("snapshot", "--json", *here)),
        ("uv pip uninstall", ("uv", "--json", "--yes", *here, "pip", "uninstall", "box-labels")),
        (_EDITING, room.repairing("--edit-project")),
    ):
        operation = _Operation(room, name, arguments)
        steps = operation.steps()
        for step in (step for step in steps if not short or step == "marked"):
            yield f"{name}: {step}", partial(operation.survive, step)
        if short:  # the others take their time
            return
