"""``envmedic pip …``, ``envmedic uv …`` and ``envmedic conda …``: an installer's command, run in a clone."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial

from envmedic.api.installs import installing
from envmedic.cli.context import agreed, ask, prefix_to_change, print_record, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.model.answers.guard import Guard
from envmedic.model.ports import ApplyOptions, ProcessUser
from envmedic.planner.guard import installer_commands
from envmedic.render.documents.guard import guard_lines
from envmedic.render.text import line


def pip(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic pip install …``."""
    return _run(args, output)


def uv(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic uv pip install …`` and ``envmedic uv sync``."""
    return _run(args, output)


def conda(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic conda install …``."""
    return _run(args, output)


def _run(args: argparse.Namespace, output: CommandOutput) -> int:
    tool = next(item for item in installer_commands.TOOLS if item == args.command)
    # before anything is looked at: a typing mistake is told at once
    command = installer_commands.read(tool, args.words)
    target, settings = agreed(target_of(args), settings_of(args, output))
    output.narrator.shows_output = True
    record = installing.install(
        settings,
        prefix_to_change(target, settings, output),
        command,
        ApplyOptions(
            allow=tuple(args.allow),
            clone=args.clone,
            staging=args.staging,
            offline=args.offline,
            timeout_s=args.timeout,
            keep=args.keep,
            accept_worse=args.force,
        ),
        harmful=partial(_harmful, output=output),
        in_use=partial(_in_use, output=output, yes=args.yes),
    )
    return print_record(record, output)


def _harmful(found: Guard, *, output: CommandOutput) -> bool:
    """Ask about what is foreseen; `--yes` is no answer to that, only `--force` is."""
    output.narrate_lines([*guard_lines(found)[:-2], line("")])
    return sys.stdin.isatty() and ask("Do it all the same? `envmedic undo` goes back")


def _in_use(users: tuple[ProcessUser, ...], *, output: CommandOutput, yes: bool) -> bool:
    if not (yes or sys.stdin.isatty()):
        return False
    output.narrate("These run from the environment, and must be restarted afterwards:")
    output.narrate_lines([line(f"  {item.pid} {shlex.quote(item.command)} ({item.why})") for item in users])
    return not yes and ask("Go on?")
