"""A plan, grouped as conda and uv users know it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from envmedic.model.checks import Check
from envmedic.model.content import EnvironmentClass
from envmedic.model.pins import LiftedPin, NextSync, ProjectEdit
from envmedic.model.plan import Change, Plan
from envmedic.render.documents.diagnosis import obstacle_lines
from envmedic.render.style import duration, size
from envmedic.render.text import Line, Tone, joined, line, part, shortened, table

SHOWN_ALTERNATIVES = 3
_FAMILY = frozenset({"torch", "torchvision", "torchaudio", "pytorch"})
_VERBS = {"remove": "REMOVE", "install": "INSTALL", "change": "CHANGE"}


def plan_lines(plan: Plan, *, alternatives: bool = True) -> list[Line]:
    """Everything that will run, the distributions that stay, and the alternatives where the user can still choose."""
    return [
        *_head(plan),
        line(""),
        *_changes(plan),
        line(""),
        line("Steps, in a clone of the environment", "bold"),
        *(line(f"  {number}. {step.describe()}") for number, step in enumerate(plan.steps, start=1)),
        *(joined("     ", part(f"$ {shlex.join(argv)}", "dim")) for argv in plan.commands),
        *_checks(plan),
        *_keeps(plan),
        *(_class(plan.for_class) if plan.for_class is not None else ()),
        *(_alternatives(plan) if alternatives else ()),
        *(line(f"Note: {note}") for note in plan.notes),
        *pin_lines(plan.lifted),
        *(sync_lines(plan.next_sync) if plan.next_sync is not None else ()),
        *(edit_lines(plan.project_edit) if plan.project_edit is not None else ()),
        *obstacle_lines(plan.obstacles),
    ]


def _class(wanted: EnvironmentClass) -> list[Line]:
    """The machines that the plan is for."""
    gpus = f"GPUs of compute capability {', '.join(wanted.gpus)}" if wanted.gpus else "no GPU"
    driver = f"driver {wanted.driver}" if wanted.driver else "no driver"
    return [
        line(
            f"For every machine with this content ({wanted.content[:12]}) at this path, {wanted.machine}, "
            f"glibc {wanted.glibc or '?'}, {wanted.python}, {driver}, {gpus}."
        )
    ]


_WANTED_BACK: Mapping[str, str] = {
    "conda": "the next solve of conda wants",
    "constraint": "the next installation by pip or uv that reads it wants",
    "requirement": "the next installation or sync from it wants",
    "variant": "the next installation from it wants",
}


def pin_lines(pins: Iterable[LiftedPin]) -> list[Line]:
    """The user's pins that a repair does not keep, who reads them, and what to write in their place."""
    lines = []
    for item in pins:
        back = f"{_WANTED_BACK[item.kind]} that version back"
        lines.append(line(f"Walks around a pin (--allow pinned): {item.source} says {item.pin}; {back}.", "warn"))
        change = f"change `{item.pin}` there to `{item.instead}`" if item.instead else f"take `{item.pin}` out there"
        lines.append(line(f"  To keep the repair, {change}; envmedic does not edit it"))
    return lines


def sync_lines(found: NextSync, *, after: bool = False) -> list[Line]:
    """One line on the next sync of the project; `after` says that the repair is done."""
    command = f"`{shlex.join(found.command)}` in {found.folder}"
    if not found.undoes:
        told = f"The lock has these versions, and the environment has not: {command} is the repair of the tool itself"
        return [] if after else [line(told)]
    word = "undoes" if found.known else "may undo"
    keep = f". To keep it: `{shlex.join(found.keeps)}`" if found.keeps else ""
    rest = [line(f"  envmedic does not do that itself: {found.unedited}")] if found.unedited and not after else []
    return [line(f"The next {command} {word} this: {'; '.join(found.undoes)}{keep}", "warn"), *rest]


def edit_lines(edit: ProjectEdit) -> list[Line]:
    """What manifest and lock of the project would say, file by file."""
    commands = " && ".join(map(shlex.join, (edit.command, *edit.more)))
    lines = [line(f"With --edit-project, the files in {edit.folder} say so too, as `{commands}` has it:")]
    for item in edit.files:
        lines += [line(f"  {item.name}", "bold"), *diff_lines(item.diff)]
    return lines


def diff_lines(diff: str) -> list[Line]:
    """The lines of a difference, without its head."""
    tones: dict[str, Tone] = {"+": "good", "-": "warn"}
    shown = (text for text in diff.splitlines() if not text.startswith(("--- ", "+++ ")))
    return [line(f"    {text}", tones.get(text[:1], "plain")) for text in shown]


def _head(plan: Plan) -> list[Line]:
    moved = f" -> {plan.real_prefix}" if plan.real_prefix != plan.prefix else ""
    lines = [joined(part("Environment", "bold"), f"  {plan.prefix}{moved}")]
    if plan.finding is not None:
        lines.append(joined(part("Fault", "bold"), f"        {plan.finding.fault}: {plan.finding.summary}"))
    else:  # nothing is at fault: the torch family before and after
        moves = ", ".join(f"{item.name} {_versions(item)}" for item in plan.changes if item.name in _FAMILY)
        lines.append(joined(part("Moves", "bold"), f"        {moves or 'what belongs to torch'}"))
    if plan.playbook:
        lines.append(joined(part("Playbook", "bold"), f"     {plan.playbook}"))
    return lines


def _changes(plan: Plan) -> list[Line]:
    if not plan.changes:
        return [line("No distribution changes.")]
    return [
        line("Changes", "bold"),
        *table(change_rows(plan.changes)),
        *([line(f"  chosen because it {plan.choice.why}")] if plan.choice is not None else ()),
        line(f"  download {size(plan.download_bytes)}, extra disk at most {size(plan.disk_bytes)}"),
    ]


def change_rows(changes: Iterable[Change]) -> list[tuple[str, ...]]:
    """A row for each change: what happens, name, versions, builds where conda has a part, owner, size."""
    listed = list(changes)
    # wheels have no build strings: without conda packages the column would be empty
    builds = any(item.by == "conda" for item in listed)
    return [
        (_verb(item), item.name, _versions(item), *((_builds(item),) if builds else ()), _owner(item), _size(item))
        for item in listed
    ]


def _verb(change: Change) -> str:
    # the same version again: its files were changed or removed
    same = change.before == change.after and change.before_build == change.after_build
    return "REINSTALL" if same else _VERBS[change.kind]


def _builds(change: Change) -> str:
    """The build strings of a conda package."""
    if change.kind == "change" and change.before_build != change.after_build:
        return f"{change.before_build} -> {change.after_build}"
    return change.after_build or change.before_build


def _owner(change: Change) -> str:
    """The owner, with the channel of a conda package; both owners where ownership changes."""
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


def _checks(plan: Plan) -> list[Line]:
    required, informative = (
        sorted({check.name + (" (GPU)" if check.gpu else "") for check in plan.checks if check.required is deciding})
        for deciding in (True, False)
    )
    lines = [line(""), line("Checks that decide", "bold"), line(f"  required: {', '.join(required) or 'none'}")]
    lines += [line(f"  informative: {', '.join(informative)}")] if informative else []
    return [*lines, *(row for check in plan.checks for row in program_lines(check))]


def program_lines(check: Check) -> list[Line]:
    """How often, where and until when the user's program runs; nothing for other checks."""
    program = check.program
    if program is None:
        return _command_lines(check) if check.name == "command" else []
    passed = f"after {duration(program.pass_after_s)} without the reported error (it failed after"
    return [
        line(""),
        joined(part("Your program decides", "bold"), f"  {shlex.join(check.arguments)}"),
        line(f"  runs in {program.directory}, with the clone in the place of the environment"),
        line("  once before the steps, where it must fail, and again after each round of the repair (--max-rounds)"),
        line(f"  passes with exit code 0, or {passed} {duration(program.failed_after_s)})"),
        line("  and is then stopped with all its children; before the steps it may run for"
             f" {duration(program.limit_s(repaired=False))}"),
        line("  whatever it writes, also outside the environment, stays written"),
    ]  # fmt: skip


def _command_lines(check: Check) -> list[Line]:
    """The same for a command that was given without a failure that was kept."""
    return [
        line(""),
        joined(part("Your program decides", "bold"), f"  {shlex.join(check.arguments)}"),
        line("  runs in the directory that the repair is started in, with the clone in the place of the environment"),
        line("  once before the steps, where it must fail, and again after each round of the repair (--max-rounds)"),
        line(f"  passes with exit code 0; after {duration(check.timeout_s)} (--timeout) it is stopped, and has failed"),
        line("  whatever it writes, also outside the environment, stays written"),
    ]


def _keeps(plan: Plan) -> list[Line]:
    if not plan.stays_count:
        return []
    # the plan names a few of the distributions that stay, and counts all
    others = plan.stays_count - len(plan.stays)
    more = [f"{others} other distribution{'s' * (others != 1)}"] if others > 0 else []
    return [line(""), joined(part("Stays", "bold"), f"  {', '.join([*plan.stays, *more])}")]


def _alternatives(plan: Plan) -> list[Line]:
    """The best few feasible ones, and the first few that are not; JSON has them all."""
    ways = [item for item in plan.alternatives if item.feasible][:SHOWN_ALTERNATIVES]
    ways += [item for item in plan.alternatives if not item.feasible][:SHOWN_ALTERNATIVES]
    if not ways:
        return []
    lines = [line(""), line("Considered and not chosen", "bold")]
    lines += [line(shortened(f"  {item.title}: {item.why_not}")) for item in ways]
    more = len(plan.alternatives) - len(ways)
    return lines + ([line(f"  and {more} more, which --json lists")] if more else [])
