"""A plan, grouped as conda and uv users know it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from envmedic.model.answers.content import EnvironmentClass
from envmedic.model.checks import Check
from envmedic.model.pins import LiftedPin, NextSync, ProjectEdit
from envmedic.model.plan import Plan
from envmedic.render.changes import change_lines, move_text
from envmedic.render.documents.diagnosis import obstacle_lines
from envmedic.render.style import duration, size
from envmedic.render.text import Line, TextPart, Tone, joined, line, part, shortened

SHOWN_ALTERNATIVES = 3
_FAMILY = frozenset({"torch", "torchvision", "torchaudio", "pytorch"})
_CHANGES_SHOWN = 16
"""Rows of the table; a torch brings a dozen libraries along."""
_PACE = 10_000_000
"""Bytes in a second, for how long a download may take: no network is known before it is used."""
_WORTH_SAYING_S = 5


def plan_lines(
    plan: Plan, *, alternatives: bool = True, detail: bool = False, unfolds: str = "-v shows the commands"
) -> list[Line]:
    """What changes and what it costs, what proves it and what cannot be proven here, the steps; `detail` has commands.

    `unfolds` tells how to see them.
    """
    return [
        *_head(plan),
        line(""),
        *_changes(plan, detail=detail),
        *_checks(plan, detail=detail),
        *_further(plan),
        *_steps(plan, "" if detail else unfolds),
        *(_class(plan.for_class) if plan.for_class is not None else ()),
        *(_alternatives(plan) if alternatives else ()),
        *([line("")] if plan.notes else []),
        *(line(f"Note: {note}") for note in plan.notes),
        *pin_lines(plan.lifted),
        *(sync_lines(plan.next_sync) if plan.next_sync is not None else ()),
        *(edit_lines(plan.project_edit) if plan.project_edit is not None else ()),
        *([line("")] if plan.obstacles else []),
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
    keep = f". To keep it: `{_commands(found.keeps, found.more)}`" if found.keeps else ""
    rest = [line(f"  envmedic does not do that itself: {found.unedited}")] if found.unedited and not after else []
    return [line(f"The next {command} {word} this: {'; '.join(found.undoes)}{keep}", "warn"), *rest]


def _commands(first: Sequence[str], more: Iterable[Sequence[str]]) -> str:
    return " && ".join(map(shlex.join, (first, *more)))


def edit_lines(edit: ProjectEdit) -> list[Line]:
    """What manifest and lock of the project would say, file by file."""
    commands = _commands(edit.command, edit.more)
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
    if plan.finding is not None:
        what, playbook = plan.finding.summary, f"  {plan.fault}, playbook {plan.playbook}" if plan.playbook else ""
    else:  # nothing is at fault: the torch family before and after
        moves = ", ".join(move_text(item) for item in plan.changes if item.name in _FAMILY)
        what, playbook = f"Move {moves or 'what belongs to torch'}", ""
    return [
        line(what, "bold"),
        *([line(playbook, "dim")] if playbook else []),
        joined(part("  in ", "dim"), f"{plan.prefix}{moved}"),
    ]


def _changes(plan: Plan, *, detail: bool) -> list[Line]:
    if not plan.changes:
        return [line("No package changes.")]
    shown = plan.changes if detail else plan.changes[:_CHANGES_SHOWN]
    more = len(plan.changes) - len(shown)
    return [
        *change_lines(shown),
        *([line(f"  and {more} more, which -v lists", "dim")] if more else []),
        *([line(f"  chosen because it {plan.choice.why}", "dim")] if plan.choice is not None else []),
        line(""),
        *_unchanged(plan),
        joined("  ", cost_text(plan)),
    ]


def cost_text(plan: Plan) -> str:
    """What the repair takes: download, disk while undo is possible, and time as far as it is known."""
    seconds = plan.download_bytes / _PACE
    pace = f" (about {duration(seconds)} at {size(_PACE)}/s)" if seconds >= _WORTH_SAYING_S else ""
    download = f"Download {size(plan.download_bytes)}{pace}" if plan.download_bytes else "Nothing to download"
    before = f" The last repair here took {duration(plan.took_before_s)}." if plan.took_before_s is not None else ""
    return f"{download}; up to {size(plan.disk_bytes)} more on disk while undo is possible.{before}"


def _unchanged(plan: Plan) -> list[Line]:
    if not plan.stays_count:
        return []
    # the plan names a few of the distributions that stay, and counts all
    others = plan.stays_count - len(plan.stays)
    more = [f"{others} other package{'s' * (others != 1)}"] if others > 0 else []
    return [line(f"  Unchanged: {', '.join([*plan.stays, *more])}")]


def _checks(plan: Plan, *, detail: bool) -> list[Line]:
    """One sentence on what proves the repair, and one on what cannot be proven here."""
    deciding = sorted({check.name + (" (GPU)" if check.gpu else "") for check in plan.checks if check.required})
    watched = sorted({check.name + (" (GPU)" if check.gpu else "") for check in plan.checks if not check.required})
    names = f": {', '.join(deciding)}" if deciding else ""
    told = f"{len(deciding)} must pass in the copy before it takes the environment's place{names}."
    if watched:
        told += f" {len(watched)} more are watched: only a worse result than before stops the swap."
    lines = [line(""), joined(part("Checks", "bold"), f"  {told}")]
    if detail and watched:
        lines.append(line(f"  watched: {', '.join(watched)}"))
    return [*lines, *_unproven(plan), *(row for check in plan.checks for row in program_lines(check))]


def _unproven(plan: Plan) -> list[Line]:
    """What no check of the plan shows on the host that it is for."""
    lines = [line(f"        Not proven by it: {text}; no fact would show its end", "warn") for text in plan.unanswered]
    gpu = {check.name for check in plan.checks if check.gpu}
    if gpu and not any(item.visible for item in plan.host.gpus):
        told = f"{len(gpu)} of the checks need a GPU, and none is visible here: nothing would be proven on one."
        lines.append(line(f"        {told}", "warn"))
    return lines


def _further(plan: Plan) -> list[Line]:
    """Faults that are left to further rounds."""
    if not plan.further:
        return []
    head = "Further rounds in the same copy repair what is confirmed besides, each asked about first:"
    return [line(""), joined(part("Then", "bold"), f"    {head}"), *(line(f"        {text}") for text in plan.further)]


def _steps(plan: Plan, unfolds: str) -> list[Line]:
    fold = f"  {unfolds}" if unfolds and plan.commands else ""
    lines = [line(""), joined(part("Steps, in a copy of the environment", "bold"), part(fold, "dim"))]
    lines += [line(f"  {number}. {step.describe()}") for number, step in enumerate(plan.steps, start=1)]
    if plan.commands and not unfolds:
        # no commands to paste: outside of envmedic they would change the environment itself
        lines.append(line("  by these commands, which find the copy at the environment's path:"))
        lines += [line(f"    $ {shlex.join(argv)}", "dim") for argv in plan.commands]
    return lines


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


def _alternatives(plan: Plan) -> list[Line]:
    """The best few feasible ones, and the first few that are not; JSON has them all."""
    ways = [item for item in plan.alternatives if item.feasible][:SHOWN_ALTERNATIVES]
    ways += [item for item in plan.alternatives if not item.feasible][:SHOWN_ALTERNATIVES]
    if not ways:
        return []
    can = any(item.feasible for item in ways)
    lines = [line(""), (TextPart("Other ways", "bold"), TextPart("  --way TITLE takes one" if can else "", "dim"))]
    for item in ways:
        mark = TextPart("  - ") if item.feasible else TextPart("  ✗ ", "bad")
        lines.append((mark, part(item.title), part(shortened(f": {item.why_not}"), "dim")))
    more = len(plan.alternatives) - len(ways)
    return lines + ([line(f"  and {more} more, which --json lists", "dim")] if more else [])
