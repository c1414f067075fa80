"""The generations of an environment: ``envmedic undo``, ``redo``, ``history``, ``diff``, ``recover`` and ``prune``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from envmedic import api
from envmedic.cli.commands.repair import ask, prefix_of, print_record, require_terminal, settings_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, RepairDeclined
from envmedic.render.text import line

SEE_HISTORY = "see first what there is with `envmedic history`"


def undo(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic undo``."""
    return _travel(args, output, api.undo, "Bring the environment back as it was before")


def redo(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic redo``."""
    return _travel(args, output, api.redo, "Bring the repaired environment back")


def _travel(args: argparse.Namespace, output: CommandOutput, travel: api.UndoOrRedo, question: str) -> int:
    if not args.yes:
        require_terminal(SEE_HISTORY)
    settings = settings_of(args, output)
    prefix = prefix_of(args, settings, output)
    if not (args.yes or ask(f"{question}?")):
        raise RepairDeclined("Declined")

    def accept(losses: tuple[str, ...]) -> bool:
        output.narrate("changed since, and not in the other tree (which keeps them until it is pruned):")
        for path in losses:
            output.narrate(f"  {path}")
        return args.yes or ask("Go on?")

    return print_record(travel(settings, prefix, args.transaction, tuple(args.allow), accept), output, moved=True)


def history(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic history``."""
    from envmedic.render.documents.record import history_lines  # noqa: PLC0415

    settings = settings_of(args, output)
    found = api.history(settings, prefix_of(args, settings, output))
    output.document(found, history_lines(found))
    return int(ExitCode.OK)


def diff(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic diff``."""
    from envmedic.render.documents.record import difference_lines  # noqa: PLC0415

    settings = settings_of(args, output)
    found = api.difference(settings, prefix_of(args, settings, output), args.before, args.after)
    output.document(found, difference_lines(found))
    return int(ExitCode.OK)


def recover(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic recover``."""
    settings = settings_of(args, output)
    target = api.NamedTarget(name=args.name, prefix=args.prefix, python=args.python)
    found = api.recover(settings, target)
    output.narrate(f"environment: {found.prefix}")
    lines = [line(f"{item.transaction}: {item.state}, environment {item.environment}") for item in found.settled]
    output.document(found, lines or [line("Nothing to recover")])
    return int(ExitCode.OK)


def prune(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic prune``."""
    from envmedic.render.documents.record import history_lines  # noqa: PLC0415

    if not args.yes:
        require_terminal(SEE_HISTORY)
    settings = settings_of(args, output)
    prefix = prefix_of(args, settings, output)
    which = f"all kept generations but the {args.keep} nearest" if args.keep else "all kept generations"
    if not (args.yes or ask(f"Remove {which}? There is no way back then")):
        raise RepairDeclined("Declined")
    found = api.prune(settings, prefix, args.keep)
    output.document(found, history_lines(found))
    return int(ExitCode.OK)


RUN: dict[str, Callable[[argparse.Namespace, CommandOutput], int]] = {
    "undo": undo,
    "redo": redo,
    "history": history,
    "diff": diff,
    "recover": recover,
    "prune": prune,
}
