"""``envmedic data status|update|pin``."""

from __future__ import annotations

import argparse

from envmedic.api.context.settings import Settings
from envmedic.api.knowledge import data as use_cases
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode
from envmedic.model.answers.data import Data
from envmedic.render.documents.answers.data import data_lines


def data(args: argparse.Namespace, output: CommandOutput) -> int:
    """Run the verb, and print the tables that are in use then; 1 where a file that should be usable is not."""
    found = _found(args, output)
    output.document(found, data_lines(found))
    return int(ExitCode.PROBLEM if any(item.damaged for item in found.ignored) else ExitCode.OK)


def _found(args: argparse.Namespace, output: CommandOutput) -> Data:
    if args.verb == "status":
        return use_cases.status()
    settings = Settings(stream=output.stream, find_links=tuple(args.find_links), offline=args.offline)
    if args.verb == "update":
        return use_cases.update(settings, args.source, sha256=args.sha256)
    return use_cases.pin(settings, args.version, off=args.off)
