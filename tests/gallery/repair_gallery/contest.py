"""The same broken environments, repaired by any tool, and judged by what its programs and files say afterwards."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from .case import Case, programs_of, sound, spoil
from .faults import Fault
from .judge import Digests, State, kept, lost_programs, observe
from .room import BASES, Room, Untried
from .tools import OWN, Handed, Tool, pinned

Ending = Literal["repaired", "partly", "not repaired", "left alone", "changed", "damaged"]


@dataclass(frozen=True)
class Ended:
    """How one tool left one environment."""

    tool: str
    case: str
    kind: str
    ending: Ending
    mended: int
    """Faults whose program passes now."""
    faults: int
    harm: tuple[str, ...]
    """What works, is met or is there no more."""
    moved: int
    """Distributions in another version than before the repair."""
    files: int
    """Files that are other than before it."""
    seconds: float
    left: tuple[str, ...] = ()
    """What the tool that made it finds wrong, or would change."""

    @property
    def good(self) -> bool:
        """Whether nobody could have done better."""
        return self.ending in ("repaired", "left alone")


@dataclass(frozen=True)
class Broken:
    """A broken environment, of which each tool gets a copy at the same path: what a tool of projects makes takes a minute."""

    case: Case
    room: Room
    place: Path
    kept: Path
    before: State
    look: Callable[[], State]
    handed: Callable[[Fault], Handed]


@contextmanager
def broken(case: Case, folder: Path, digests: Digests) -> Iterator[Broken]:
    """Make it, and take it away at the end."""
    first = case.faults[0]
    place, kept = folder / f"contest-{os.getpid()}", folder / f"broken-{os.getpid()}"
    try:
        _empty(place).mkdir(parents=True)
        room = sound(case, folder, place)
        asked = pinned((*BASES.get(first.base, room.asked), *case.wants), room)
        mended = first.reference or (lambda room: sound(case, folder, room.prefix.parent))
        spoil(case, room)
        look = partial(observe, room, programs_of(case), digests)
        before = look()
        if hidden := [fault.name for fault in case.faults if fault.ending == "repaired" and before.works[fault.name]]:
            raise AssertionError(f"the program of {hidden} does not fail, so the fault is not there")
        _empty(kept)
        place.rename(kept)
        yield Broken(case, room, place, kept, before, look, partial(_handed, room, mended, asked))
    finally:
        _empty(place)
        _empty(kept)


def contest(broken: Broken, name: str, tool: Tool) -> Ended:
    """Let a tool repair a copy as long as that gets on, and judge."""
    first = broken.case.faults[0]
    # Copies of an environment by hard links are made of such copies; what tools made of links to their caches is copied
    shutil.copytree(
        broken.kept, _empty(broken.place), symlinks=True, copy_function=shutil.copy2 if first.scene else os.link
    )
    if name in OWN and name not in broken.room.ways:
        raise Untried(f"{first.base} has no such way")
    after, seconds = _repaired(broken.case, tool, broken.handed, broken.look, broken.before)
    return ended_as(broken.case, name, broken.before, after, seconds)


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _repaired(
    case: Case, tool: Tool, handed: Callable[[Fault], Handed], look: Callable[[], State], before: State
) -> tuple[State, float]:
    """The state after as many repairs as get on, and the seconds of all of them."""
    state, seconds = before, 0.0
    for _ in range(2 * len(case.faults)):
        failing = [fault for fault in case.faults if not state.works[fault.name]] or list(case.faults)
        given = handed(failing[0])
        started = time.monotonic()
        tool(given)
        seconds += time.monotonic() - started
        last, state = state, look()
        left = [fault for fault in case.faults if not state.works[fault.name]]
        if not left or len(left) >= len(failing) or state.files == last.files:
            break
    return state, seconds


def _handed(room: Room, mended: Callable[[Room], object], asked: Sequence[str], fault: Fault) -> Handed:
    log = room.prefix.parent / "error.txt"
    failed = None if fault.log else room.smoke(fault.program)
    log.write_text(fault.log or "" if failed is None else failed.stdout + failed.stderr)
    return Handed(room, mended, tuple(asked), log, fault.program)


def ended_as(case: Case, tool: str, before: State, after: State, seconds: float) -> Ended:
    """What a tool made of an environment, by its states."""
    harm = [
        *lost_programs(before, after),
        *(f"unmet now: {line}" for line in sorted(after.unmet - before.unmet)),
        *[f"missing now: {path}" for path in sorted(after.damaged - before.damaged)][:5],
        *(f"pin not kept: {line}" for line in case.pins if kept(line, before) and not kept(line, after)),
    ]
    broken = [fault for fault in case.faults if fault.ending == "repaired"]
    mended = sum(after.works[fault.name] for fault in broken)
    names = before.versions.keys() | after.versions.keys()
    paths = before.files.keys() | after.files.keys()
    return Ended(
        tool=tool,
        case=case.name,
        kind=case.kind,
        ending=_ending(
            len(broken), mended, harmed=bool(harm), same=before.files == after.files, agreed=not after.complaints
        ),
        mended=mended,
        faults=len(broken),
        harm=tuple(harm),
        moved=sum(before.versions.get(name) != after.versions.get(name) for name in names),
        files=sum((before.files.get(path) or ())[:2] != (after.files.get(path) or ())[:2] for path in paths),
        seconds=seconds,
        left=tuple(sorted(after.complaints)),
    )


def _ending(broken: int, mended: int, *, harmed: bool, same: bool, agreed: bool) -> Ending:
    if harmed:
        return "damaged"
    if not broken:
        return "left alone" if same else "changed"
    return "repaired" if mended == broken and agreed else "partly" if mended else "not repaired"


def as_line(ended: Ended) -> str:
    """One line of JSON."""
    return json.dumps(asdict(ended))


def from_line(line: str) -> Ended:
    """Read it again."""
    raw = json.loads(line)
    return Ended(**{**raw, "harm": tuple(raw["harm"]), "left": tuple(raw["left"])})


def compared(every: Iterable[Ended]) -> str:
    """A table in Markdown: one row for each tool, over the cases that all of them had."""
    by_tool: dict[str, dict[str, Ended]] = {}
    for ended in every:
        by_tool.setdefault(ended.tool, {})[ended.case] = ended
    common = set.intersection(*(set(cases) for cases in by_tool.values())) if by_tool else set()
    heads = ("tool", *get_args(Ending), "faults mended", "versions moved", "files changed", "median s")
    rows = [heads, ("---", *["---:"] * (len(heads) - 1))]
    rows += [_row(tool, [ended for case, ended in cases.items() if case in common]) for tool, cases in by_tool.items()]
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([*lines, "", f"{len(common)} environments, of {_kinds(by_tool, common)}"])


def _row(tool: str, cases: Sequence[Ended]) -> tuple[str, ...]:
    endings = [str(sum(ended.ending == ending for ended in cases) or "") for ending in get_args(Ending)]
    faults = f"{sum(ended.mended for ended in cases)} of {sum(ended.faults for ended in cases)}"
    middle = sorted(ended.seconds for ended in cases)[len(cases) // 2] if cases else 0.0
    moved, files = (sum(getattr(ended, name) for ended in cases) for name in ("moved", "files"))
    return (tool, *endings, faults, str(moved), str(files), f"{middle:.1f}")


def _kinds(by_tool: Mapping[str, Mapping[str, Ended]], common: set[str]) -> str:
    cases = next(iter(by_tool.values()), {})
    kinds = [ended.kind for name, ended in cases.items() if name in common]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
