"""Root's command on an environment of another user: handed over as a whole, before anything of it is read."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from envmedic.errors import EnvmedicError
from envmedic.owner import acting_for
from envmedic.probe.prefix import targets
from envmedic.proc.as_user import run_as
from envmedic.render.streams import write
from envmedic.render.text import visible


def hand_over(args: argparse.Namespace, given: Sequence[str] | None) -> int | None:
    """Run this command as the owner of its environment and return the exit code; None where this process is to run it.

    Only root's processes call it. `given` is what `main` got instead of the arguments of this process. Raises
    PreflightError where root must not run the command and cannot hand it over.
    """
    prefix = _named(args)
    if prefix is None:
        return None
    words = sys.argv[1:] if given is None else given
    user = acting_for(prefix, ["envmedic", *words])
    if user is None:
        return None
    if not (args.quiet or args.events):
        write(sys.stderr, f"working as {user.name}, who owns {visible(str(prefix))}\n")
    # The words of this very start, with the options of the interpreter, such as -m or -I.
    argv = sys.orig_argv[1:] if given is None else ["-m", "envmedic", *given]
    return run_as(user, [sys.executable, *argv], ["envmedic", *words])


def _named(args: argparse.Namespace) -> Path | None:
    """The prefix that the command is about; None if it names none, or in a way that the command itself is to refuse."""
    options = vars(args)
    if "prefix" not in options or options.get("log_only") or options.get("host_only"):
        return None
    named = args.name or args.prefix or args.python
    if args.command == "run" and not named:
        return None  # found after the command has run
    try:
        if args.command == "create":
            return Path(os.path.abspath(os.path.expanduser(args.prefix))) if args.prefix else None  # noqa: PTH100, PTH111
        if options.get("plan") and not named:
            return _of_plan(Path(args.plan))
        return targets.chosen(name=args.name, prefix=args.prefix, python=args.python)
    # Not reported here: the command finds the same error and reports it in its own form.
    except EnvmedicError:
        return None


def _of_plan(path: Path) -> Path | None:
    """The prefix in a plan file; what can be read only once is left to the command, which then refuses."""
    if not path.is_file():
        return None
    from envmedic.api import repair

    return Path(repair.read_plan(path).prefix)
