"""The user's own command of an installer as the one step of a transaction: no fault is to be proven, nothing may get worse."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from envmedic.engine.transaction.repair_stages import (
    Run,
    add_notes,
    add_part,
    leave,
    moved_by_command,
    reasons,
    take_steps,
    verify,
)
from envmedic.engine.verify.verdict import FAILURES
from envmedic.errors import ChecksFailed
from envmedic.model.checks import Check
from envmedic.model.record import Left
from envmedic.tree import fingerprint

_NEW_TRIED = 20
"""New packages that are imported once: those of one command, not those of a whole environment."""


class NothingChanged(Exception):  # no error: everything is installed already
    """The command left the clone as it was."""


def install(run: Run) -> None:
    """Run the command in the clone and check it. Raises InstallerError with its words, ChecksFailed, NothingChanged."""
    command = run.session.ports.command
    add_part(run, run.plan)
    take_steps(run, run.parts[-1])
    if not fingerprint.changes(run.original, run.transaction.directory.tree):
        raise NothingChanged
    if command is not None:
        add_notes(run, command.outside())
        _miss_no_more(run, command.imports_of(moved_by_command(run, gone=True)))
    judgement = verify(run)
    worse = reasons(judgement)
    if worse and not run.session.options.accept_worse:
        raise ChecksFailed(
            "What worked before would not work after it",
            cause=worse[0],
            hint="Install what fits the rest, or keep it all the same with --force before the command: `envmedic undo` goes back",
            details=worse,
        )
    leave(run, *(Left(summary=text, why="kept by --force", reported=False) for text in worse))
    add_notes(run, _new_that_fails(run))
    run.transaction.note(outcome="installed")


def _new_that_fails(run: Run) -> list[str]:
    """What was installed and cannot be imported: nothing that worked before is worse for it, so it is told."""
    command = run.session.ports.command
    tree = run.transaction.directory.tree
    known = {item.name for item in run.transaction.record.before}
    new = {item.name for item in run.session.ports.distributions(tree)} - known
    if command is None or command.new_imports is None or not new:
        return []
    check = Check(name="import", arguments=command.new_imports(tree, new)[:_NEW_TRIED])
    if not check.arguments:
        return []
    with run.session.stage("verify"):
        outcomes = run.session.checks((check,), run.runner, "after", run.session.emit)
    failed = [item for item in outcomes if item.status in FAILURES]
    return [f"It is installed, and `{item.check}` fails: {item.reason}" for item in failed]


def _miss_no_more(run: Run, names: Collection[str]) -> None:
    """Take the imports of removed distributions out of the checks."""
    part = run.parts[-1]
    found = []
    for check in part.checks:
        if check.name != "import":
            found.append(check)
            continue
        left = tuple(name for name in check.arguments if name not in names)
        if left:
            found.append(msgspec.structs.replace(check, arguments=left))
    part.checks = tuple(found)
