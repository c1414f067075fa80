"""A plan as text, grouped as conda and uv users know it."""

from __future__ import annotations

import shlex

from envmedic.cli.render.style import Style, plain, size, table
from envmedic.model.plan import Change, Plan

_VERBS = {"remove": "REMOVE", "install": "INSTALL", "change": "CHANGE"}


def plan_lines(plan: Plan, style: Style) -> list[str]:
    """Everything that will run, and what stays."""
    return [
        *_head(plan, style),
        "",
        *_changes(plan, style),
        *_steps(plan, style),
        *_checks(plan, style),
        *_keeps(plan, style),
        *_alternatives(plan, style),
        *(f"Note: {note}" for note in plan.notes),
    ]


def apply_command(plan: Plan) -> str:
    """The command line that carries the same plan out."""
    words = ["envmedic", "apply"]
    if plan.playbook:
        words += ["--playbook", plan.playbook]
    return shlex.join([*words, "-p", plan.prefix])


def _head(plan: Plan, style: Style) -> list[str]:
    lines = [f"{style('Environment', 'bold')}  {plain(plan.prefix)}"]
    if plan.real_prefix != plan.prefix:
        lines[0] += f" -> {plain(plan.real_prefix)}"
    if plan.finding is not None:
        lines.append(f"{style('Fault', 'bold')}        {plan.finding.fault}: {plain(plan.finding.summary)}")
    if plan.playbook:
        lines.append(f"{style('Playbook', 'bold')}     {plan.playbook}")
    return lines


def _changes(plan: Plan, style: Style) -> list[str]:
    if not plan.changes:
        return ["No distribution changes."]
    rows = [(_VERBS[item.kind], item.name, _versions(item), item.owner, size(item.size_bytes)) for item in plan.changes]
    lines = table(rows)
    lines.append(f"  download {size(plan.download_bytes)}, extra disk at most {size(plan.disk_bytes)}")
    return [style("Changes", "bold"), *lines]


def _versions(change: Change) -> str:
    if change.kind == "change":
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
    named = ", ".join(plan.stays)
    return [
        "",
        f"{style('Stays', 'bold')}  {named}" + (f" and all else ({plan.stays_count} distributions)" if named else ""),
    ]


def _alternatives(plan: Plan, style: Style) -> list[str]:
    if not plan.alternatives:
        return []
    lines = ["", style("Considered and not chosen", "bold")]
    return lines + [f"  {plain(item.title)}: {plain(item.why_not)}" for item in plan.alternatives]
