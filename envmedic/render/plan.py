"""A plan as text, grouped as conda and uv users know it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from envmedic.model.plan import Change, Plan
from envmedic.render.style import Style, plain, shortened, size, table

SHOWN_ALTERNATIVES = 3
_FAMILY = frozenset({"torch", "torchvision", "torchaudio", "pytorch"})
_VERBS = {"remove": "REMOVE", "install": "INSTALL", "change": "CHANGE"}


def plan_lines(plan: Plan, style: Style, *, alternatives: bool = True) -> list[str]:
    """Everything that will run, what stays, and (for somebody who still chooses) what else there is."""
    return [
        *_head(plan, style),
        "",
        *_changes(plan, style),
        *_steps(plan, style),
        *_checks(plan, style),
        *_keeps(plan, style),
        *(_alternatives(plan, style) if alternatives else ()),
        *(f"Note: {plain(note)}" for note in plan.notes),
    ]


def _head(plan: Plan, style: Style) -> list[str]:
    lines = [f"{style('Environment', 'bold')}  {plain(plan.prefix)}"]
    if plan.real_prefix != plan.prefix:
        lines[0] += f" -> {plain(plan.real_prefix)}"
    if plan.finding is not None:
        lines.append(f"{style('Fault', 'bold')}        {plan.finding.fault}: {plain(plan.finding.summary)}")
    else:
        lines.append(f"{style('Moves', 'bold')}        {_moves(plan)}")
    if plan.playbook:
        lines.append(f"{style('Playbook', 'bold')}     {plan.playbook}")
    return lines


def _moves(plan: Plan) -> str:
    """The torch family before and after, where nothing is at fault."""
    moved = [f"{item.name} {_versions(item)}" for item in plan.changes if item.name in _FAMILY]
    return ", ".join(moved) or "what belongs to torch"


def _changes(plan: Plan, style: Style) -> list[str]:
    if not plan.changes:
        return ["No distribution changes."]
    lines = table(change_rows(plan.changes))
    lines.append(f"  download {size(plan.download_bytes)}, extra disk at most {size(plan.disk_bytes)}")
    return [style("Changes", "bold"), *lines]


def change_rows(changes: Iterable[Change]) -> list[tuple[str, ...]]:
    """A row for each change: what happens, name, versions, builds where conda has a part, owner, size."""
    listed = list(changes)
    builds = any(item.by == "conda" for item in listed)
    return [
        (_verb(item), item.name, _versions(item), *((_builds(item),) if builds else ()), _owner(item), _size(item))
        for item in listed
    ]


def _verb(change: Change) -> str:
    same = change.before == change.after and change.before_build == change.after_build
    return "REINSTALL" if same else _VERBS[change.kind]


def _builds(change: Change) -> str:
    """The build strings of a conda package."""
    if change.kind == "change" and change.before_build != change.after_build:
        return f"{change.before_build} -> {change.after_build}"
    return change.after_build or change.before_build


def _owner(change: Change) -> str:
    """Who has it, with the channel of a conda package; for one that changes hands both."""
    if change.by == "conda":
        channel = change.channel.rstrip("/").rpartition("/")[2]
        return f"conda ({channel})" if channel else "conda"
    return f"conda ({change.package}) -> wheel" if change.package else change.owner


def _size(change: Change) -> str:
    return "size unknown" if change.size_bytes is None else size(change.size_bytes)


def _versions(change: Change) -> str:
    if change.kind == "change" and change.before != change.after:
        return f"{change.before} -> {change.after}"
    return change.before or change.after or ""


def _steps(plan: Plan, style: Style) -> list[str]:
    lines = ["", style("Steps, in a clone of the environment", "bold")]
    lines += [f"  {number}. {plain(step.describe())}" for number, step in enumerate(plan.steps, start=1)]
    lines += [f"     {style('$ ' + plain(shlex.join(argv)), 'dim')}" for argv in plan.commands]
    return lines


def _checks(plan: Plan, style: Style) -> list[str]:
    required = sorted({check.name + _on(check.gpu) for check in plan.checks if check.required})
    informative = sorted({check.name + _on(check.gpu) for check in plan.checks if not check.required})
    lines = ["", style("Checks that decide", "bold"), f"  required: {', '.join(required) or 'none'}"]
    if informative:
        lines.append(f"  informative: {', '.join(informative)}")
    return lines


def _on(gpu: bool) -> str:  # noqa: FBT001
    return " (GPU)" if gpu else ""


def _keeps(plan: Plan, style: Style) -> list[str]:
    if not plan.stays_count:
        return []
    others = plan.stays_count - len(plan.stays)
    more = [f"{others} other distribution{'s' * (others != 1)}"] if others > 0 else []
    return ["", f"{style('Stays', 'bold')}  {plain(', '.join([*plan.stays, *more]))}"]


def _alternatives(plan: Plan, style: Style) -> list[str]:
    """The best few that could be had, and the first few that could not; JSON has them all."""
    ways = [item for item in plan.alternatives if item.feasible][:SHOWN_ALTERNATIVES]
    ways += [item for item in plan.alternatives if not item.feasible][:SHOWN_ALTERNATIVES]
    if not ways:
        return []
    lines = ["", style("Considered and not chosen", "bold")]
    lines += [shortened(f"  {item.title}: {item.why_not}") for item in ways]
    more = len(plan.alternatives) - len(ways)
    return lines + ([f"  and {more} more, which --json lists"] if more else [])
