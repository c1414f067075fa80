"""``envmedic lock``: what is installed, as a lock file."""

from __future__ import annotations

import argparse
from pathlib import Path

from envmedic.api.locking import locks
from envmedic.cli.context import prefix_of, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError
from envmedic.model.lock import LockFormatName
from envmedic.render.documents.lock import incomplete_lines, lock_lines

_LOOSE = "What was asked for has no builds and no hashes, which only an environment.yml can do without"


def lock(args: argparse.Namespace, output: CommandOutput) -> int:
    """Print the lock, or write it and print what was written; exit 1 where entries are missing."""
    settings = settings_of(args, output)
    chosen: LockFormatName | None = args.format or ("environment" if args.from_history else None)
    if args.from_history and chosen != "environment":
        hint = "Leave out one of them"
        raise InputError(f"--from-history does not go with --format {chosen}", cause=_LOOSE, hint=hint)
    if args.platform:
        locks.require_platforms(args.platform, chosen)
    prefix = prefix_of(target_of(args), settings, output)
    if args.platform:
        found = locks.lock_for(settings, prefix, args.platform, must_ask=args.fetch_hashes)
    else:
        found = locks.lock(settings, prefix, must_ask=args.fetch_hashes)
    path = Path(args.output) if args.output else None
    found = locks.as_requested(found) if args.from_history else found
    form = chosen or locks.default_format(found)
    done, text = locks.write_lock(found, form, path, allow_incomplete=args.allow_incomplete)
    # on stderr, since stdout may be the lock file itself
    output.narrate_lines(incomplete_lines(done, written=bool(text)))
    if output.json or path is not None:
        output.document(done, lock_lines(done))
    elif text:
        output.text(done, text.rstrip("\n").split("\n"))
    return int(ExitCode.PROBLEM if done.incomplete else ExitCode.OK)
