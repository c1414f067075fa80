"""Commands that only read: under any fault they answer as ever, or say that they could not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from envmedic.errors import ExitCode
from tests.cli.support import Done
from tests.faults.room import Room, told

READING: dict[str, tuple[str, ...]] = {
    "diagnose": (),
    "plan": ("--playbook", "nms-cuda"),
    "lock": (),
    "facts": (),
}
"""Command → its options."""
_DIFFERENT = {"created", "id", "seconds"}
"""What no two answers have in common: times, and the id of a plan, which covers its time."""
_ERRORS = {ExitCode.PROBLEM, ExitCode.USAGE, ExitCode.BUSY}


@dataclass(frozen=True)
class Answer:
    """What a command said that nothing disturbed."""

    code: int
    document: Any

    @classmethod
    def of(cls, done: Done) -> Answer:
        """Raises AssertionError where it is an error."""
        document = _same_always(done.document)
        assert not document["schema"].startswith("envmedic.error/"), done.told()
        return cls(done.code, document)


def arguments(room: Room, command: str) -> tuple[str, ...]:
    """The command line of a command of `READING`."""
    return room.command(command, *READING[command])


def judged(done: Done, wanted: Answer, *, heard: bool = True) -> str:
    """Assert that a command answered as `wanted`, or told of an error; returns which.

    Half an answer, or another one, is neither. Unless it can be `heard`, it may say nothing.
    """
    assert done.code != ExitCode.INTERNAL, done.told()
    if not heard and not done.out:
        assert done.code != 0 or wanted.code == 0, done.told()
        return f"no answer, exit code {done.code}"
    try:
        document = _same_always(done.document)
    except json.JSONDecodeError as error:
        raise AssertionError(f"no document: {done.told()}") from error
    if document["schema"].startswith("envmedic.error/"):
        assert done.code in _ERRORS, done.told()
        return told(done, done.code)
    assert done.code == wanted.code, done.told()
    assert document == wanted.document, f"another answer: {_difference(wanted.document, document)}"
    return "the same answer"


def _same_always(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _same_always(value) for key, value in document.items() if key not in _DIFFERENT}
    return [_same_always(item) for item in document] if isinstance(document, list) else document


def _difference(wanted: Any, found: Any, place: str = "") -> str:
    """The first place in which two documents differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in {**wanted, **found}:
            if wanted.get(key) != found.get(key):
                return _difference(wanted.get(key), found.get(key), f"{place}.{key}")
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            if one != other:
                return _difference(one, other, f"{place}[{number}]")
    return f"{place}: {json.dumps(found)[:300]}, not {json.dumps(wanted)[:300]}"
