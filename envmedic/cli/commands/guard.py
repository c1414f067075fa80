"""``envmedic guard CMD``: would this command undo a repair."""

from __future__ import annotations

import argparse

from envmedic.api import guarding
from envmedic.cli.context import prefix_of, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError
from envmedic.render.documents.guard import guard_lines


def guard(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic guard 'pip install X'`` or ``envmedic guard -- pip install X``."""
    if bool(args.words) == bool(args.user_command):
        raise InputError(
            "guard takes one command",
            hint="Give it as one text, or after `--`: envmedic guard -- pip install -U torch",
        )
    settings = settings_of(args, output)
    found = guarding.guard(settings, prefix_of(target_of(args), settings, output), args.user_command or args.words)
    output.document(found, guard_lines(found))
    return int(ExitCode.OK if found.ok else ExitCode.PROBLEM)
