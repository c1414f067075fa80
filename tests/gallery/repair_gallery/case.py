"""One environment: broken, handed in until nothing more is done, judged after each repair, undone and redone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from .consumers import CONSUMER_PROBES
from .faults import PROBES, Fault
from .judge import Digests, Listing, State, contents, harm, ill_told, lost_programs, observe
from .projects import MANAGERS
from .room import LIMIT_S, Room, base, copy

Verdict = Literal["repaired", "refused", "partial", "untouched", "dishonest", "damaged"]
REPAIRED, PARTIAL = 0, 7


@dataclass(frozen=True)
class Case:
    """Faults of one environment."""

    faults: tuple[Fault, ...]
    pins: tuple[str, ...] = ()
    """Limits that the user states beside the environment."""
    command: bool = False
    """Whether the failing program is handed in as the check, not only its text."""
    last: bool = False
    """Whether it fails under `envmedic run` first, and is repaired by the line that this prints."""

    @property
    def name(self) -> str:
        """All that is broken."""
        return ("run: " if self.last else "") + " + ".join(fault.name for fault in self.faults)

    @property
    def wants(self) -> tuple[str, ...]:
        """What the user asked for besides what `base` says."""
        return tuple(line for fault in self.faults for line in fault.wants)

    @property
    def kind(self) -> str:
        """Row of the table."""
        [first, *more] = self.faults
        if self.last:
            return "run, then apply --last"
        if more:
            return f"{'pairs' if len(more) == 1 else 'triples'} on {first.base}"
        if first.scene and first.fault:
            return first.base if first.base == "conda" else f"projects of {first.base}"
        return first.fault or "controls"


@dataclass(frozen=True)
class Turn:
    """One repair."""

    fault: str
    """Whose failure was handed in."""
    code: int
    outcome: str
    found: str
    """Class of the finding that was acted on, or the verdict."""
    gone: bool
    """Whether the program that was handed in passes now."""
    changed: bool
    lies: tuple[str, ...]
    """What was said and is not so."""
    harm: tuple[str, ...]
    seconds: float
    said: str


@dataclass(frozen=True)
class Result:
    """How a case ended."""

    name: str
    kind: str
    base: str
    ending: str
    """What should have become of it."""
    verdict: Verdict
    gone: tuple[str, ...]
    """Faults whose program passes now."""
    left: tuple[str, ...]
    """Faults whose program fails still, and what the tool that made the environment would change."""
    lost: tuple[str, ...]
    """Programs that worked in the broken environment, and do not at the end."""
    turns: tuple[Turn, ...]
    undone: bool
    """Whether every undo, and every redo after it, gave the same bytes as before."""
    seconds: float
    """Of all repairs."""

    @property
    def ok(self) -> bool:
        """Whether it ended as it should."""
        return self.verdict == self.ending and self.undone


def attempt(case: Case, folder: Path, digests: Digests) -> Result:
    """Break a copy, repair it as a user would, and judge."""
    place = folder / f"case-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        room = sound(case, folder, place)
        spoil(case, room)
        return _treat(case, room, digests)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def sound(case: Case, folder: Path, place: Path) -> Room:
    """The environment before it is broken."""
    first = case.faults[0]
    if first.scene:
        return first.scene(place)
    room = copy(base(folder, first.base), place / "env")
    if case.wants:
        room.install(*case.wants, deps=True)
    return room


def spoil(case: Case, room: Room) -> None:
    """Make the faults, and state the limits of the user."""
    for fault in sorted(case.faults, key=lambda fault: fault.late):
        fault.make(room)
    if case.pins:
        room.pin(*case.pins)


def programs_of(case: Case) -> Mapping[str, str]:
    """What works in the sound environment, and what fails in the broken one."""
    first = case.faults[0]
    probes = first.probes if first.scene else (PROBES | CONSUMER_PROBES)[first.base]
    return {**probes, **{fault.name: fault.program for fault in case.faults}}


def _treat(case: Case, room: Room, digests: Digests) -> Result:
    symptoms = {fault.name: fault.program for fault in case.faults}
    if case.last:  # before the first look: byte code that the user's own program leaves is no change by a repair
        _fail(case.faults[0], room)
    programs = programs_of(case)
    broken = state = observe(room, programs, digests)
    for fault in case.faults:
        if fault.ending == "repaired" and state.works[fault.name]:
            raise AssertionError(f"{case.name}: the program of {fault.name} does not fail, so the fault is not there")
    turns: list[Turn] = []
    trees = [state.files]
    refused: set[str] = set()
    while handed := _next(case, state, refused, turns):
        # On the way only what was broken is run: all that worked is asked for at the end
        turn, state = _turn(case, handed, room, state, partial(observe, room, symptoms, digests))
        turns.append(turn)
        if not turn.gone:
            refused.add(handed.name)
        if turn.changed:
            trees.append(state.files)
    lost = lost_programs(broken, observe(room, programs, digests)) if len(trees) > 1 else []
    undone = _back_and_forth(room, trees, digests)
    gone = tuple(fault.name for fault in case.faults if state.works[fault.name] and fault.ending == "repaired")
    failing = tuple(fault.name for fault in case.faults if not state.works[fault.name])
    left = (*failing, *sorted(state.complaints))
    damaged = bool(lost) or not undone or any(turn.harm for turn in turns)
    return Result(
        case.name, case.kind, case.faults[0].base, case.faults[0].ending,
        "damaged" if damaged else _verdict(case, turns, gone, left),
        gone, left, tuple(lost), tuple(turns), undone, sum(turn.seconds for turn in turns),
    )  # fmt: skip


def _next(case: Case, state: State, refused: set[str], turns: list[Turn]) -> Fault | None:
    """The fault that is handed in next: the first whose program fails, once; then, after progress, the others again."""
    if not turns:
        return case.faults[0]
    failing = [fault for fault in case.faults if fault.ending == "repaired" and not state.works[fault.name]]
    if turns[-1].changed and len(turns) < 2 * len(case.faults):
        refused.clear()
        # A user hands in what still fails; one and the same again only after something else was repaired
        failing.sort(key=lambda fault: fault.name == turns[-1].fault)
    return next((fault for fault in failing if fault.name not in refused), None)


def _turn(case: Case, fault: Fault, room: Room, before: State, look: Callable[[], State]) -> tuple[Turn, State]:
    handed = _handed_in(case, fault, room)
    started = time.monotonic()
    done = envmedic(
        "apply", "-p", str(room.prefix), "--yes", "--no-gpu", "--json", "--keep", "9", "--keep-partial",
        *handed, empty_cache="--offline" in fault.options, variables=room.variables,
    )  # fmt: skip
    seconds = time.monotonic() - started
    document = read(done)
    (room.prefix.parent / "record.json").write_text(done.stdout)
    after = look()
    another = not after.works[fault.name] and _fails_otherwise(fault, handed, room)
    changed = after.files != before.files
    turn = Turn(
        fault.name, done.returncode, str(document.get("outcome") or document.get("code") or "-"), found_in(document),
        after.works[fault.name], changed, tuple(_lies(fault, done.returncode, document, before, after, another=another)),
        tuple(_harm(done.returncode, before, after, document, case.pins)), seconds, said_in(document),
    )  # fmt: skip
    return turn, after


def _fail(fault: Fault, room: Room) -> None:
    done = envmedic(
        "run", "-p", str(room.prefix), "--", str(room.python), "-c", fault.program, variables=room.variables
    )
    if "envmedic apply --last" not in (done.stdout + done.stderr).splitlines()[-1]:
        raise AssertionError(f"{fault.name}: the last line of `run` is no repair: {done.stderr[-300:]}")


def _handed_in(case: Case, fault: Fault, room: Room) -> list[str]:
    """What the user gives: the text, the failing program, or nothing where nobody sees it fail."""
    if fault.silent:
        return list(fault.options)
    if case.last:
        return [*fault.options, "--last"]
    if case.command and fault.log is None:
        return [*fault.options, "--reproduce", "--", str(room.python), "-c", fault.program]
    path = room.prefix.parent / "error.txt"
    failed = None if fault.log else room.smoke(fault.program)
    path.write_text(fault.log or "" if failed is None else failed.stdout + failed.stderr)
    return [*fault.options, "--log", str(path)]


def _fails_otherwise(fault: Fault, handed: Sequence[str], room: Room) -> bool:
    """Whether a program of which only the text was handed in fails by another error than that of the text.

    Nobody has run it then: that the fault of the text is gone is all that can be said.
    """
    if "--log" not in handed or fault.log is not None:
        return False
    said = Path(handed[handed.index("--log") + 1]).read_text().strip().splitlines()[-1:]
    failed = room.smoke(fault.program)
    return said != (failed.stdout + failed.stderr).strip().splitlines()[-1:]


def _lies(
    fault: Fault, code: int, document: dict[str, Any], before: State, after: State, *, another: bool = False
) -> list[str]:
    """What the exit code and the outcome say, against what the judge's programs say.

    With `another` the program fails by another error than that of the text, which is a fault of its own.
    """
    gone = after.works[fault.name] or fault.ending == "untouched"
    better = {name for name, works in after.works.items() if works and not before.works[name]}
    better |= before.unmet - after.unmet
    left = document.get("left") or ()
    outcome = document.get("outcome")
    found = []
    if code == REPAIRED and not (gone or another) and not (fault.silent and better and left):
        found.append("exit 0, and the program still fails")
    if outcome == "repaired" and code != REPAIRED:
        found.append(f"`repaired`, and exit {code}")
    project = (document.get("plan") or {}).get("next_sync")
    if code == REPAIRED and fault.base in MANAGERS and after.complaints and not (left or project):
        found.append(f"exit 0, and nothing is said of this: {min(after.complaints)}")
    if code == PARTIAL and not (left and outcome == "partial"):
        found.append("exit 7 without anything left")
    if code == PARTIAL and not better:
        found.append("exit 7, and nothing is better")
    if code not in (REPAIRED, PARTIAL) and ill_told(document):
        found.append("a refusal without words, or with a placeholder")
    if fault.ending == "refused" and not re.search(fault.says, json.dumps(document)):
        found.append(f"nothing is said of {fault.says}")
    return found


def _harm(code: int, before: State, after: State, document: dict[str, Any], pins: Iterable[str]) -> list[str]:
    if code not in (REPAIRED, PARTIAL):
        return ["changed without a repair"] if after.files != before.files else []
    return harm(before, after, document, pins)


def _verdict(case: Case, turns: Sequence[Turn], gone: Sequence[str], left: Sequence[str]) -> Verdict:
    if any(turn.lies for turn in turns):
        return "dishonest"
    if case.faults[0].ending == "untouched":
        return "damaged" if any(turn.changed for turn in turns) else "untouched"
    if not left:
        return "repaired"
    return "partial" if gone or any(turn.changed for turn in turns) else "refused"


def _back_and_forth(room: Room, trees: list[Listing], digests: Digests) -> bool:
    """Undo every repair and redo it; whether each tree comes back as it was."""
    for verb, expected in [("undo", tree) for tree in trees[-2::-1]] + [("redo", tree) for tree in trees[1:]]:
        done = envmedic(verb, "-p", str(room.prefix), "--yes", "--json", variables=room.variables)
        if done.returncode != 0 or contents(room, digests) != expected:
            return False
    return True


def envmedic(
    *arguments: str, empty_cache: bool = False, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **(variables or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if empty_cache:
        environment |= {"XDG_CACHE_HOME": "/nonexistent/cache", "UV_CACHE_DIR": "/nonexistent/cache/uv"}
    return subprocess.run(
        [sys.executable, "-m", "envmedic", *arguments],
        capture_output=True, text=True, check=False, env=environment, timeout=2 * LIMIT_S,
    )  # fmt: skip


def read(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The document on stdout."""
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"summary": (done.stdout + done.stderr)[-300:]}
    return document


def found_in(document: dict[str, Any]) -> str:
    """The class that was repaired, or the verdict."""
    plan = document.get("plan") or {}
    return str(plan.get("fault") or document.get("verdict") or document.get("code") or "-")


def said_in(document: dict[str, Any]) -> str:
    """What was said of a failure, and what is left."""
    failure = document.get("failure") or document
    left = "; ".join(f"{item['summary']}: {item['why']}" for item in document.get("left") or ())
    words = f"{failure.get('summary', '')}: {failure.get('cause', '')}" if failure.get("summary") else ""
    return f"{words} LEFT {left}" if left else words


def as_document(result: Result) -> str:
    """One line of JSON."""
    return json.dumps(asdict(result))


def from_document(line: str) -> Result:
    """Read it again."""
    raw = json.loads(line)
    turns = tuple(Turn(**{**turn, "lies": tuple(turn["lies"]), "harm": tuple(turn["harm"])}) for turn in raw["turns"])
    return Result(**{**raw, **{key: tuple(raw[key]) for key in ("gone", "left", "lost")}, "turns": turns})
