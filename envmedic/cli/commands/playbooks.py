"""``envmedic playbooks list|show|validate|test|schema``."""

from __future__ import annotations

import argparse

from envmedic.api import playbook_trial
from envmedic.api.context.settings import Settings
from envmedic.api.playbooks import (
    is_playbook_file,
    list_playbooks,
    playbook_schema,
    show_playbook,
    validate_playbooks,
)
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InvalidPlaybook
from envmedic.model.base import to_json
from envmedic.model.playbook import Validation
from envmedic.render.text import line, table

_MARKS = {"pass": "pass", "fail": "FAIL", "note": "note"}


def list_all(args: argparse.Namespace, output: CommandOutput) -> int:
    """The playbooks found."""
    del args
    found = list_playbooks(Settings(stream=output.stream))
    rows = [
        ("playbook", "fault", "from", "title"),
        *((item.id, item.fault or "none", item.origin, item.title) for item in found.playbooks),
    ]
    output.document(found, table(rows, indent=""))
    return int(ExitCode.OK)


def show(args: argparse.Namespace, output: CommandOutput) -> int:
    """One playbook, as its file has it."""
    files = (args.playbook,) if is_playbook_file(args.playbook) else ()
    found, text = show_playbook(Settings(stream=output.stream, playbook_files=files), args.playbook)
    # shown as it is in the file, tabs included, so that it can be saved as a file again
    output.text(found, text.rstrip("\n").splitlines())
    return int(ExitCode.OK)


def validate(args: argparse.Namespace, output: CommandOutput) -> int:
    """All mistakes of all files at once."""
    mistakes = validate_playbooks(args.files)
    if mistakes:
        count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "1 mistake"
        # one error for all files: editors and CI read every mistake from one run
        raise InvalidPlaybook(
            f"{count} in {', '.join(args.files)}", details=mistakes, hint="See `envmedic playbooks schema`"
        )
    output.document(Validation(valid=tuple(args.files)), [line(f"{name}: valid") for name in args.files])
    return int(ExitCode.OK)


def test(args: argparse.Namespace, output: CommandOutput) -> int:
    """Run the samples and conflict tests of a playbook, and print each trial."""
    found = playbook_trial.try_playbook(Settings(stream=output.stream), args.file, args.logs)
    rows = [(_MARKS[item.status], item.about, item.told) for item in found.trials]
    failed = sum(item.status == "fail" for item in found.trials)
    end = f"{found.playbook}: {f'{failed} failed' if failed else 'passed'}, {len(found.trials)} tried"
    output.document(found, [*table(rows, indent=""), line(end)])
    return int(ExitCode.OK if found.passed else ExitCode.PROBLEM)


def schema(args: argparse.Namespace, output: CommandOutput) -> int:
    """The JSON schema; editors check a playbook with it while it is written."""
    del args
    document = playbook_schema()
    output.text(document, to_json(document).splitlines())
    return int(ExitCode.OK)


_VERBS = {"list": list_all, "show": show, "validate": validate, "test": test, "schema": schema}


def playbooks(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic playbooks VERB``."""
    return _VERBS[args.verb](args, output)
