"""``envmedic create``: an environment made from a lock."""

from __future__ import annotations

import argparse
from pathlib import Path

from envmedic.api.locking import creation
from envmedic.cli.context import settings_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode
from envmedic.render.documents.checks import verification_lines


def create(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic create --lock FILE -p NEW``."""
    settings = settings_of(args, output)
    place = creation.NewPrefix(prefix=args.prefix, name=args.name, python=args.python)
    found = creation.create(settings, Path(args.lock), place, profile=args.profile, no_gpu=args.no_gpu)
    output.narrate(f"environment: {found.prefix}")
    (output.done if found.passed else output.document)(found, verification_lines(found))
    return int(ExitCode.OK if found.passed else ExitCode.PROBLEM)
