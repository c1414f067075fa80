"""What is to be run on many machines, and how far it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from envmedic.model.answers.fleet import SilentNode
from envmedic.model.answers.rollout import FleetPlan, Rollout, SharedEnvironment, Stage
from envmedic.model.registries.modes import LAYOUTS
from envmedic.render.documents.answers.fleet import silent_lines, some
from envmedic.render.text import Line, TextPart, joined, line, part, shortened
from envmedic.wording import counted

_MOST = 8


def fleet_plan_lines(made: FleetPlan) -> list[Line]:
    """The classes that get a plan, those that do not, and the command that makes the plans."""
    rows = [
        joined(part(f"class {item.name}", "bold"), f"  {counted(len(item.nodes), 'machine')}, planned on {item.maker}")
        for item in made.classes
    ]
    rows += [
        joined(part(f"class {item.name}", "dim"), f"  left out: {shortened(item.why)}: {some(item.nodes)}")
        for item in made.left_out
    ]
    rows += silent_lines(made.silent)
    if not made.classes:
        return [*rows, line("No class needs a plan", "bold")]
    rows += [line(""), line("Nothing has been changed. This makes the plans:", "bold")]
    return [*rows, (TextPart("  "), part(made.command, "command"))]


def rollout_lines(found: Rollout, place: str) -> list[Line]:
    """How many machines are done, what comes, in which order, and the command that does it."""
    verb = "taken back" if found.kind == "undo" else "repaired"
    what = counted(found.total, "machine") if found.shared is None else "1 shared environment"
    rows = [line(f"{found.done:,} of {what} {verb}", "bold"), *_failures(found.failed), *_shared(found.shared)]
    if found.taken_back:
        rows.append(line(f"  taken back, and left alone: {some(found.taken_back)}"))
    if found.left.stopped:
        again = f"envmedic fleet rollout {shlex.quote(place)} --retry"
        rows += [joined(part("Stopped", "bad"), f": {found.left.stopped}"), line("Nothing further is touched.")]
        return [*rows, line(f"When the cause is gone, `{again}` begins with these machines once more")]
    if not found.left.stages:
        return rows
    stages = found.left.stages if found.kind == "rollout" and found.shared is None else ()
    rows += [_stage_line(stage) for stage in stages]
    rows += [line(""), line("Nothing has been changed. This does it:", "bold")]
    return [*rows, (TextPart("  "), part(found.command, "command"))]


def _shared(who: SharedEnvironment | None) -> list[Line]:
    """Which machine does what."""
    if who is None:
        return []
    rows = [line(f"  {'repairs':<9} {who.holder}")]
    rows += [line(f"  {'prove':<9} {counted(len(who.witnesses), 'machine')}: {some(who.witnesses)}")]
    if who.machines:
        rows.append(line(f"  {'asked':<9} {counted(len(who.machines), 'machine')}: {some(who.machines)}"))
    if who.layout:
        rows.append(line(f"  {'becomes':<9} {LAYOUTS[who.layout]}"))
    return rows


def _stage_line(stage: Stage) -> Line:
    name = stage.name if stage.name == "canary" else f"batch {stage.name}"
    return line(f"  {name:<9} {counted(len(stage.nodes), 'machine')}, {stage.allowed} may fail: {some(stage.nodes)}")


def _failures(failed: Sequence[SilentNode]) -> list[Line]:
    rows = [joined("  ", part(item.node, "bad"), f"  {shortened(item.why)}") for item in failed[:_MOST]]
    more = len(failed) - _MOST
    return rows + ([line(f"  and {more} more; --json lists them")] if more > 0 else [])
