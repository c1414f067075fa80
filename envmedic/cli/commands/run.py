"""``envmedic run -- CMD…``: the user's command as it is, and a diagnosis beside it when it fails.

stdout is the command's alone. The report goes to stderr, or to ``--report FILE``, and its own troubles leave the
command's exit code as it is.
"""

from __future__ import annotations

import argparse
import errno
import shlex
from pathlib import Path

from msgspec.structs import replace

from envmedic.api import running
from envmedic.api.context.settings import NamedTarget
from envmedic.api.context.target import find_prefix
from envmedic.api.planning import cases
from envmedic.api.recovery import tell_unsettled
from envmedic.cli.context import settings_of, target_of
from envmedic.cli.offer import offer
from envmedic.cli.output import CommandOutput
from envmedic.errors import EnvmedicError, InputError, Interrupted
from envmedic.model.findings import Diagnosis
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.text import line, visible

NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes of shells for a missing program and for one that cannot be started."""


def run(args: argparse.Namespace, output: CommandOutput) -> int:
    """Run the command after ``--``; the exit code is its own."""
    if not args.user_command:
        raise InputError("There is no command to run", hint="Give it after `--`: envmedic run -- python train.py")
    settings = replace(settings_of(args, output), unnamed=False)  # the command runs the environment
    # an environment that was not named is looked for after a failure only: a program that works must not wait
    prefix = find_prefix(target_of(args)) if args.name or args.prefix or args.python else None
    try:
        ran = running.run(args.user_command, prefix=prefix)
    except OSError as error:
        return _not_started(error, args.user_command[0], output)
    if ran.failed:
        try:
            where = prefix or _environment(ran.argv, output)
            output.interrupted = None if where is None else tell_unsettled(settings, where)
            kept = where is not None and _keep(where, ran, output)
            found = running.diagnose_run(settings, where, ran)
            repair = _repair_command(where, found) if where is not None and kept else ""
            _report(args, output, found, ran.how(), repair)
            if repair:
                offer(args, output, found, repair)
        except EnvmedicError as error:
            output.error_beside(error)
        # the command has ended by itself: its exit code counts, not that of the interrupted diagnosis
        except KeyboardInterrupt:
            output.error_beside(Interrupted("The diagnosis was interrupted"))
    return ran.exit_code


def _not_started(error: OSError, name: str, output: CommandOutput) -> int:
    found = error.errno != errno.ENOENT
    output.error_beside(
        InputError(
            f"The command {name} cannot be started" if found else f"There is no command {name}",
            cause=error.strerror,
            hint="Give it as you would in this shell, after `--`",
        )
    )
    return NOT_STARTED if found else NOT_FOUND


def _environment(argv: tuple[str, ...], output: CommandOutput) -> Path | None:
    """The environment that the command ran in: that of its Python or script, else the active one, else none."""
    found = running.environment_of(argv)
    try:
        return find_prefix(NamedTarget(prefix=str(found) if found else None))
    except EnvmedicError as error:
        # the text alone still gives a diagnosis
        output.narrate(f"Only the text is read: {error.summary}")
        return None


def _keep(prefix: Path, ran: running.Ran, output: CommandOutput) -> bool:
    """Keep the failure for `apply --last`; returns whether that was possible."""
    try:
        cases.keep(prefix, ran)
    except OSError as error:
        output.narrate(f"The failure is not kept for `envmedic apply --last`: {error.strerror} ({error.filename})")
        return False
    return True


def _repair_command(prefix: Path, diagnosis: Diagnosis) -> str:
    """The command that repairs the environment and lets the program decide; it says what it would be refused without."""
    try:
        active: Path | None = find_prefix(NamedTarget())
    except EnvmedicError:
        active = None
    unproven = any(item.kind == "unproven" for item in diagnosis.obstacles)
    where = () if active == prefix else ("-p", str(prefix))
    return shlex.join(["envmedic", "apply", "--last", *(["--no-gpu"] if unproven else []), *where])


def _report(args: argparse.Namespace, output: CommandOutput, diagnosis: Diagnosis, how: str, repair: str) -> None:
    where = f" in {diagnosis.prefix}" if diagnosis.prefix else ""
    lines = [
        line(f"envmedic: the command failed{where}: {how}"),
        *diagnosis_lines(diagnosis, repair, detail=output.verbose),
    ]
    output.report(diagnosis, lines, args.report)
    if args.report:
        output.narrate(f"envmedic: the command failed: {how}; why is in {visible(args.report)}")
