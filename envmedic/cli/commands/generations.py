"""The generations of an environment: ``envmedic snapshot``, ``undo``, ``redo``, ``history``, ``diff``, ``recover`` and ``prune``."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from functools import partial
from pathlib import Path

from envmedic.api import generations, recovery
from envmedic.cli.context import (
    agreed,
    ask,
    prefix_of,
    prefix_to_change,
    print_record,
    require_terminal,
    settings_of,
    target_of,
)
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError, RepairDeclined
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import KeepLimits, KeptTree, NewFiles
from envmedic.render.documents.record import difference_lines, history_lines
from envmedic.render.style import size as disk_size
from envmedic.render.text import line

FOUND = "found"
"""The state before the first repair, as `envmedic history` names it."""
SEE_HISTORY = "see first what there is with `envmedic history`"


def undo(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic undo``."""

    def keep_new(found: NewFiles) -> bool:
        if found.files and not args.keep_new:
            count = f"{len(found.files)} new file{'s' * (len(found.files) != 1)}"
            output.narrate(f"{count} will stay in {found.tree}; --keep-new carries them over")
        return bool(args.keep_new)

    if args.plan:
        return _undo_plan(args, output, partial(generations.undo, keep_new=keep_new))
    if args.dry_run:
        raise InputError(
            "--dry-run is about a plan", hint="Name it with --plan; `envmedic diff` shows what else would go"
        )
    return _travel(
        args, output, partial(generations.undo, keep_new=keep_new), "Bring the environment back as it was before"
    )


def _undo_plan(args: argparse.Namespace, output: CommandOutput, travel: generations.UndoOrRedo) -> int:
    """Take the repair of a plan for a class back, once: where that was done before, nothing is."""
    from envmedic.api import repair
    from envmedic.api.fleet import class_plans

    made = repair.read_plan(Path(args.plan))
    if made.for_class is None or args.transaction:
        raise InputError("--plan takes a plan for a class, and no transaction", hint="Leave out --plan")
    if not (args.name or args.prefix or args.python):
        args.prefix = made.prefix
    if not args.yes and not args.dry_run:
        require_terminal(SEE_HISTORY)
    find = prefix_of if args.dry_run else prefix_to_change
    find(target_of(args), settings_of(args, output), output)  # what was interrupted is settled first
    found = class_plans.to_undo(made)
    if found.outcome == "already" or args.dry_run:
        return print_record(found, output, moved=True)
    args.transaction = found.parent or FOUND
    return _travel(args, output, travel, "Bring the environment back as it was before")


def redo(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic redo``."""
    return _travel(args, output, generations.redo, "Bring the repaired environment back")


def _travel(args: argparse.Namespace, output: CommandOutput, travel: generations.UndoOrRedo, question: str) -> int:
    # a redo that hides no edit needs no yes: it is what an undo takes back
    asks = not args.yes and (travel is not generations.redo or sys.stdin.isatty())
    if asks:
        require_terminal(SEE_HISTORY)
    target, settings = agreed(target_of(args), settings_of(args, output))
    # found before the question: a mistyped name fails before anything is asked
    prefix = prefix_to_change(target, settings, output)
    if asks and not ask(f"{question}?"):
        raise RepairDeclined("Declined")

    def accept(losses: tuple[str, ...]) -> bool:
        output.narrate("changed since, and not in the other tree (which keeps them until it is pruned):")
        for path in losses:
            output.narrate(f"  {path}")
        if not args.yes:
            require_terminal(SEE_HISTORY)
        return args.yes or ask("Go on?")

    return print_record(travel(settings, prefix, args.transaction, tuple(args.allow), accept), output, moved=True)


def snapshot(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic snapshot``."""
    target, settings = agreed(target_of(args), settings_of(args, output))
    prefix = prefix_to_change(target, settings, output)
    options = ApplyOptions(clone=args.clone, allow=tuple(args.allow))
    return print_record(generations.snapshot(settings, prefix, args.message, options), output)


def history(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic history``."""
    settings = settings_of(args, output)
    found = generations.history(settings, prefix_of(target_of(args), settings, output))
    output.document(found, history_lines(found))
    return int(ExitCode.OK)


def diff(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic diff``."""
    settings = settings_of(args, output)
    found = generations.difference(settings, prefix_of(target_of(args), settings, output), args.before, args.after)
    output.document(found, difference_lines(found))
    return int(ExitCode.OK)


def recover(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic recover``."""
    settings = settings_of(args, output)
    found = recovery.recover(settings, target_of(args))
    output.narrate(f"environment: {found.prefix}")
    lines = [line(f"{item.transaction}: {item.state}, environment {item.environment}") for item in found.settled]
    output.done(found, lines or [line("Nothing to recover")])
    return int(ExitCode.OK)


def prune(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic prune``."""
    if not args.yes:
        require_terminal(SEE_HISTORY)
    target, settings = agreed(target_of(args), settings_of(args, output))
    prefix = prefix_to_change(target, settings, output)
    limits = _limits(args)
    if not (args.yes or ask(f"Remove {_which(args, limits)}? There is no way back then")):
        raise RepairDeclined("Declined")

    def drop_new(spared: tuple[KeptTree, ...]) -> bool:
        for item in spared:
            output.narrate(f"Only in {item.tree}:")
            for path in item.only_copies:
                output.narrate(f"  {path}")
        drops = args.drop_new or (not args.yes and ask("Remove these files with their trees?"))
        if not drops:
            output.narrate("These trees stay: to remove them with these files, add --drop-new")
        return drops

    found = generations.prune(settings, prefix, limits, drop_new)
    output.done(found, history_lines(found))
    return int(ExitCode.OK)


def _limits(args: argparse.Namespace) -> KeepLimits:
    """What the options leave: without any, nothing is kept."""
    none = args.keep is None and args.older_than is None and args.max_size is None
    since = None
    if args.older_than is not None:
        oldest = dt.datetime.now(dt.timezone.utc) - dt.timedelta(seconds=args.older_than)
        since = oldest.strftime("%Y-%m-%dT%H:%M:%SZ")
    return KeepLimits(
        count=0 if none else args.keep,
        since=since,
        size_bytes=args.max_size,
    )


def _which(args: argparse.Namespace, limits: KeepLimits) -> str:
    """The generations that go, in words."""
    words = [f"all but the {limits.count} nearest"] if limits.count else []
    words += [f"those from before {limits.since}"] if limits.since else []
    words += [f"the farthest ones beyond {disk_size(args.max_size)}"] if args.max_size is not None else []
    return f"kept generations ({', and '.join(words)})" if words else "all kept generations"
